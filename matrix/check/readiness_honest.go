package check

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReadinessHonest is the check that Ready means something. An operator that can't list one of
// its kinds can't reconcile; releases 0.6.0 to 1.0.4 were Ready all the same, for two minutes,
// and fooled everyone who waited for the rollout.
var ReadinessHonest = Check{
	ID:    "readiness-honest",
	Claim: "A copy of the new operator without the right to list Deployments never becomes Ready, and its readiness names the kind.",
}

// JudgeReadiness starts a copy of the operator's pod under a service account that lacks the
// rights to one kind, and judges ReadinessHonest. The copy can't become the leader while the
// operator holds the Lease, so it changes nothing. Everything made here is removed again.
func JudgeReadiness(ctx context.Context, t Target) (result Result, err error) {
	workload, err := t.Subject.workload()
	if err != nil {
		return result, err
	}
	deployment, err := t.operatorDeployment(ctx)
	if err != nil {
		return result, err
	}
	copyOf := &restrictedCopy{target: t, name: "readiness-" + rand.String(6), withheld: workload.resource}
	objects, err := copyOf.objects(ctx, deployment)
	if err != nil {
		return result, err
	}
	defer func() {
		for _, object := range slices.Backward(objects) {
			removal := t.Client.Delete(context.WithoutCancel(ctx), object, client.GracePeriodSeconds(0))
			if client.IgnoreNotFound(removal) != nil && err == nil {
				err = fmt.Errorf("remove %T %s: %w", object, object.GetName(), removal)
			}
		}
	}()
	for _, object := range objects {
		if err := t.Client.Create(ctx, object); err != nil {
			return result, fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	probe := deployment.Spec.Template.Spec.Containers[0].ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		result.Fail("the operator's container has no HTTP readiness probe")
		return result, nil
	}
	return copyOf.judge(ctx, probe)
}

type restrictedCopy struct {
	target Target
	name   string
	// withheld is the resource whose rights the copy lacks.
	withheld string
}

// objects are the copy's account, its rights, and its pod, in the order of their making.
func (c *restrictedCopy) objects(ctx context.Context, deployment *appsv1.Deployment) ([]client.Object, error) {
	namespace := c.target.OperatorNamespace
	meta := metav1.ObjectMeta{Name: c.name, Namespace: namespace}
	clusterMeta := metav1.ObjectMeta{Name: c.name}
	account := deployment.Spec.Template.Spec.ServiceAccountName
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: c.name}}
	clusterRules, err := c.clusterRules(ctx, account)
	if err != nil {
		return nil, err
	}
	rules, err := c.namespacedRules(ctx, account)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	pod.Spec.ServiceAccountName = c.name
	pod.Spec.DeprecatedServiceAccount = ""
	grace := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.ClusterRole{ObjectMeta: clusterMeta, Rules: without(clusterRules, c.withheld)},
		&rbacv1.ClusterRoleBinding{ObjectMeta: clusterMeta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.name}},
		&rbacv1.Role{ObjectMeta: meta, Rules: without(rules, c.withheld)},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: c.name}},
		pod,
	}, nil
}

// clusterRules are the rules of all ClusterRoles bound to the account in the whole cluster.
func (c *restrictedCopy) clusterRules(ctx context.Context, account string) ([]rbacv1.PolicyRule, error) {
	var bindings rbacv1.ClusterRoleBindingList
	if err := c.target.Client.List(ctx, &bindings); err != nil {
		return nil, fmt.Errorf("list ClusterRoleBindings: %w", err)
	}
	var rules []rbacv1.PolicyRule
	for _, binding := range bindings.Items {
		if !c.binds(binding.Subjects, account) {
			continue
		}
		var role rbacv1.ClusterRole
		if err := c.target.Client.Get(ctx, client.ObjectKey{Name: binding.RoleRef.Name}, &role); err != nil {
			return nil, fmt.Errorf("read ClusterRole %s: %w", binding.RoleRef.Name, err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}

// namespacedRules are the rules of all Roles bound to the account in the operator's namespace.
func (c *restrictedCopy) namespacedRules(ctx context.Context, account string) ([]rbacv1.PolicyRule, error) {
	var bindings rbacv1.RoleBindingList
	if err := c.target.Client.List(ctx, &bindings, client.InNamespace(c.target.OperatorNamespace)); err != nil {
		return nil, fmt.Errorf("list RoleBindings: %w", err)
	}
	var rules []rbacv1.PolicyRule
	for _, binding := range bindings.Items {
		if binding.RoleRef.Kind != "Role" || !c.binds(binding.Subjects, account) {
			continue
		}
		var role rbacv1.Role
		if err := c.target.Client.Get(ctx, client.ObjectKey{Namespace: binding.Namespace, Name: binding.RoleRef.Name}, &role); err != nil {
			return nil, fmt.Errorf("read Role %s: %w", binding.RoleRef.Name, err)
		}
		rules = append(rules, role.Rules...)
	}
	return rules, nil
}

func (c *restrictedCopy) binds(subjects []rbacv1.Subject, account string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Name == account && s.Namespace == c.target.OperatorNamespace
	})
}

// without returns the rules with the resource left out.
func without(rules []rbacv1.PolicyRule, resource string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		kept := *rule.DeepCopy()
		kept.Resources = slices.DeleteFunc(kept.Resources, func(r string) bool { return r == resource })
		if len(kept.Resources) > 0 || len(kept.NonResourceURLs) > 0 {
			out = append(out, kept)
		}
	}
	return out
}

// judge watches the copy for as long as an operator with all its rights would take to become
// Ready several times over.
func (c *restrictedCopy) judge(ctx context.Context, probe *corev1.Probe) (Result, error) {
	var r Result
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.target.OperatorNamespace, Name: c.name}}
	started, seen, err := c.target.eventually(ctx, readyTimeout, func(ctx context.Context) (bool, string, error) {
		if err := c.target.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, "", err
		}
		return running(pod), fmt.Sprintf("pod %s: %+v", c.name, pod.Status.ContainerStatuses), nil
	})
	if err != nil {
		return r, err
	}
	if !started {
		return r, fmt.Errorf("the copy %s of the operator's pod did not start within %s: %s", c.name, readyTimeout, seen)
	}
	hold := time.Duration(probe.InitialDelaySeconds+3*max(probe.PeriodSeconds, 1)) * time.Second
	answer := ""
	end := time.Now().Add(hold)
	for time.Now().Before(end) {
		if err := c.target.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return r, fmt.Errorf("read the copy %s: %w", c.name, err)
		}
		if podReady(pod) {
			r.Fail("the copy without rights to %s is Ready: readiness does not tell whether the operator can work", c.withheld)
			return r, nil
		}
		if told := c.readyz(ctx, pod, probe.HTTPGet); told != "" {
			answer = told
		}
		if err := pause(ctx, pollInterval); err != nil {
			return r, err
		}
	}
	if !strings.Contains(answer, c.withheld) {
		r.Fail("the readiness of the copy without rights to %s does not name the kind: %q", c.withheld, answer)
	}
	r.See("without rights to %s the copy was not Ready for %s", c.withheld, hold)
	r.See("its readiness says: %s", strings.Join(strings.Fields(answer), " "))
	return r, nil
}

// readyz is the body of the copy's failing readiness answer; empty if it gave none.
func (c *restrictedCopy) readyz(ctx context.Context, pod *corev1.Pod, get *corev1.HTTPGetAction) string {
	port := get.Port.String()
	for _, p := range pod.Spec.Containers[0].Ports {
		if p.Name == port {
			port = fmt.Sprint(p.ContainerPort)
		}
	}
	status, body, err := c.target.get(ctx, pod.Namespace, "pods", pod.Name+":"+port, get.Path)
	if err != nil {
		return err.Error()
	}
	if status == http.StatusOK {
		return ""
	}
	return body
}

func running(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
