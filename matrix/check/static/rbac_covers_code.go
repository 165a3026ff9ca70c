package static

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// RBACCoversCode is the check that the chart grants the operator what its code needs.
var RBACCoversCode = check.Check{
	ID:    "rbac-covers-code",
	Claim: "The rendered chart grants the operator every right that its code asks for, and none beyond, in all namespaces and in a watched one.",
}

// use says which pods run a package's code, and where it needs its rights.
type use struct {
	// workload is the kind of object that runs them.
	workload   string
	namespaces compat.Namespaces
}

// usual is any package of which nothing else is declared.
var usual = use{kindDeployment, compat.NamespacesWatched}

const kindDeployment = "Deployment"

// watchedNamespace is the namespace of the example in which the operator is told to watch one.
const watchedNamespace = "inference"

// JudgeRBAC judges RBACCoversCode for the target: with its default values and, if it knows the
// value, with one namespace to watch.
func JudgeRBAC(ctx context.Context, e Edge) (check.Result, error) {
	var r check.Result
	needed, err := neededRights(ctx, e.Subject.Rights.Packages, e.Target.Tree)
	if err != nil {
		return r, err
	}
	examples := []string{""}
	value := e.Subject.Chart.WatchNamespace
	if _, known := e.Target.Chart.Values()[value]; known {
		examples = append(examples, watchedNamespace)
	}
	for _, namespace := range examples {
		var values map[string]any
		if namespace != "" {
			values = map[string]any{value: namespace}
		}
		rendered, err := e.renderInstall(ctx, values)
		if err != nil {
			return refused(err)
		}
		objects, err := objectsOf(rendered)
		if err != nil {
			return refused(err)
		}
		judged, err := judgeRights(needed, objects, e.Namespace, namespace)
		if err != nil {
			return refused(err)
		}
		r.Add(judged)
	}
	return r, nil
}

// need are the rights that the code of one package asks for.
type need struct {
	use
	from  string
	rules []rbacv1.PolicyRule
}

// neededRights are those of the markers, and the reading of every kind that the code caches: it
// can't start without, whatever its markers say. Not every code can be asked for the latter.
func neededRights(ctx context.Context, declared []compat.PackageRights, tree *Tree) ([]need, error) {
	marked, err := tree.rights(ctx)
	if err != nil {
		return nil, err
	}
	var needs []need
	for _, rights := range marked {
		n := need{use: usual, from: rights.dir, rules: rights.rules}
		for _, special := range declared {
			if special.Package == rights.dir {
				n.use = use{special.Workload, special.Namespaces}
			}
		}
		needs = append(needs, n)
	}
	told, err := tree.introspect(ctx, nil)
	if errors.Is(err, check.ErrNotApplicable) {
		return needs, nil
	}
	if err != nil {
		return nil, err
	}
	cached := need{use: usual, from: "the operator's caches"}
	for _, kind := range told.Cached {
		cached.rules = append(cached.rules, rbacv1.PolicyRule{
			APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}, Verbs: []string{"get", "list", "watch"},
		})
	}
	return append(needs, cached), nil
}

// account is a ServiceAccount.
type account struct{ namespace, name string }

func (a account) String() string { return a.namespace + "/" + a.name }

func (a account) compare(b account) int { return strings.Compare(a.String(), b.String()) }

// grants are the rules that an account has, by namespace; "" is all of them.
type grants map[account]map[string][]rbacv1.PolicyRule

// judgeRights compares what the code needs with what the rendered objects grant to the accounts
// of the workloads, when the operator watches a namespace ("" for all).
func judgeRights(needs []need, objects []object, release, watching string) (check.Result, error) {
	var r check.Result
	where := "all namespaces watched"
	if watching != "" {
		where = "namespace " + watching + " watched"
	}
	accounts := accountsOf(objects, release)
	granted, err := grantsOf(&r, objects, release, where)
	if err != nil {
		return r, err
	}
	needed := grants{}
	for _, n := range needs {
		if len(accounts[n.workload]) == 0 {
			r.Fail("%s: the chart has no %s to run the code of %s", where, n.workload, n.from)
		}
		namespace := map[compat.Namespaces]string{compat.NamespacesWatched: watching, compat.NamespacesRelease: release}[n.namespaces]
		for _, holder := range accounts[n.workload] {
			needed.add(holder, namespace, n.rules)
			_, missing := validation.Covers(granted.of(holder, namespace), n.rules)
			for _, rights := range phrases(missing) {
				r.Fail("%s: %s in %s is needed by %s, and ServiceAccount %s may not", where, rights, place(namespace), n.from, holder)
			}
		}
	}
	for _, holder := range slices.SortedFunc(maps.Keys(granted), account.compare) {
		for _, namespace := range slices.Sorted(maps.Keys(granted[holder])) {
			_, extra := validation.Covers(needed.of(holder, namespace), granted[holder][namespace])
			for _, rights := range phrases(extra) {
				r.Fail("%s: ServiceAccount %s may %s in %s, and no code needs it", where, holder, rights, place(namespace))
			}
		}
	}
	count := 0
	for _, n := range needs {
		for _, rule := range n.rules {
			count += len(validation.BreakdownRule(rule))
		}
	}
	r.See("%s: %d rights of %d parts of the code against the grants of %d ServiceAccounts", where, count, len(needs), len(granted))
	return r, nil
}

// accountsOf are the accounts of the pods, by the kind of their workload.
func accountsOf(objects []object, release string) map[string][]account {
	accounts := map[string][]account{}
	for _, o := range objects {
		spec, ok := podSpec(o)
		if !ok {
			continue
		}
		holder := account{namespace: o.GetNamespace(), name: "default"}
		if holder.namespace == "" {
			holder.namespace = release
		}
		if name, ok := spec["serviceAccountName"].(string); ok && name != "" {
			holder.name = name
		}
		if kind := o.GetKind(); !slices.Contains(accounts[kind], holder) {
			accounts[kind] = append(accounts[kind], holder)
		}
	}
	return accounts
}

// grantsOf follows the bindings. What can't be followed is a failure: nobody knows what it grants.
func grantsOf(r *check.Result, objects []object, release, where string) (grants, error) {
	roles := map[ref]*rbacv1.ClusterRole{}
	for _, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		role, err := as[rbacv1.ClusterRole](o.Object) // a Role is one without aggregation
		if err != nil {
			return nil, refusedError{fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)}
		}
		roles[refOf(o, release)] = role
	}
	granted := grants{}
	for _, o := range objects {
		if o.GroupVersionKind().Group != rbacv1.GroupName || o.GetKind() != "ClusterRoleBinding" && o.GetKind() != "RoleBinding" {
			continue
		}
		binding, err := as[rbacv1.ClusterRoleBinding](o.Object) // a RoleBinding has the same fields
		if err != nil {
			return nil, refusedError{fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)}
		}
		name := refOf(o, release)
		wanted := ref{GroupKind: name.GroupKind, name: binding.RoleRef.Name}
		wanted.Kind = binding.RoleRef.Kind
		if wanted.Kind == "Role" {
			wanted.namespace = name.namespace
		}
		role := roles[wanted]
		if role == nil || role.AggregationRule != nil {
			r.Fail("%s: %s grants %s, whose rules are not in the chart", where, name, wanted)
			continue
		}
		namespace := ""
		if o.GetKind() == "RoleBinding" {
			if namespace = o.GetNamespace(); namespace == "" {
				namespace = release
			}
		}
		for _, subject := range binding.Subjects {
			if subject.Kind != rbacv1.ServiceAccountKind {
				r.Fail("%s: %s grants rights to %s %s", where, name, subject.Kind, subject.Name)
				continue
			}
			granted.add(account{subject.Namespace, subject.Name}, namespace, role.Rules)
		}
	}
	return granted, nil
}

func (g grants) add(holder account, namespace string, rules []rbacv1.PolicyRule) {
	if g[holder] == nil {
		g[holder] = map[string][]rbacv1.PolicyRule{}
	}
	g[holder][namespace] = append(g[holder][namespace], rules...)
}

// of are the rules that count in a namespace: those for all count too.
func (g grants) of(holder account, namespace string) []rbacv1.PolicyRule {
	rules := slices.Clone(g[holder][""])
	if namespace != "" {
		rules = append(rules, g[holder][namespace]...)
	}
	return rules
}

func place(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// phrases puts the verbs of each resource together, as in "get, list pods".
func phrases(single []rbacv1.PolicyRule) []string {
	verbs := map[string][]string{}
	for _, rule := range single {
		object := strings.Join(rule.NonResourceURLs, ", ")
		if len(rule.Resources) > 0 {
			object = rule.Resources[0]
			if group := rule.APIGroups[0]; group != "" {
				object += "." + group
			}
			if len(rule.ResourceNames) > 0 {
				object += " " + rule.ResourceNames[0]
			}
		}
		verbs[object] = append(verbs[object], rule.Verbs[0])
	}
	var told []string
	for _, object := range slices.Sorted(maps.Keys(verbs)) {
		told = append(told, strings.Join(verbs[object], ", ")+" "+object)
	}
	return told
}
