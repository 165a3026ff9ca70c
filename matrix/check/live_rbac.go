package check

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// LiveRBAC is the check of what the API server lets the operator do.
var LiveRBAC = Check{
	ID:    "live-rbac",
	Claim: "The API server grants the operator every right it needs, and none of those it must not have.",
}

// right is a verb on a resource. An empty namespace means the runtimes' namespace.
type right struct {
	group, resource string
	verbs           []string
	namespace       string
}

var allVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// neededRights are those of the contract, section 6.
func neededRights(operatorNamespace string) []right {
	rights := []right{
		{group: RuntimeKind.Group, resource: "trussiumruntimes", verbs: []string{"get", "list", "watch"}},
		{group: RuntimeKind.Group, resource: "trussiumruntimes/status", verbs: []string{"get", "update", "patch"}},
		{resource: "secrets", verbs: []string{"get", "list", "watch"}},
		{group: "events.k8s.io", resource: "events", verbs: []string{"create", "patch"}},
		{group: "coordination.k8s.io", resource: "leases", verbs: []string{"get", "create", "update"}, namespace: operatorNamespace},
	}
	for _, kind := range managedKinds {
		rights = append(rights, right{group: kind.gvk.Group, resource: kind.resource, verbs: allVerbs})
	}
	return rights
}

// refusedRights are those that the contract rules out: no pods, ReplicaSets, nodes, secret
// writes, finalizers, nor changes of what the user wrote.
var refusedRights = []right{
	{resource: "pods", verbs: allVerbs},
	{resource: "nodes", verbs: []string{"get", "list", "watch"}},
	{resource: "secrets", verbs: []string{"create", "update", "patch", "delete"}},
	{group: "apps", resource: "replicasets", verbs: allVerbs},
	{group: RuntimeKind.Group, resource: "trussiumruntimes", verbs: []string{"create", "update", "patch", "delete"}},
	{group: RuntimeKind.Group, resource: "trussiumruntimes/finalizers", verbs: []string{"update", "patch"}},
	{group: "rbac.authorization.k8s.io", resource: "clusterroles", verbs: []string{"create", "update", "patch", "bind", "escalate"}},
}

// ReviewRights judges LiveRBAC by SubjectAccessReviews for the operator's service account.
func ReviewRights(ctx context.Context, t Target) (Result, error) {
	var r Result
	deployment, err := t.operatorDeployment(ctx)
	if err != nil {
		return r, err
	}
	account := deployment.Spec.Template.Spec.ServiceAccountName
	for _, side := range []struct {
		rights []right
		want   bool
	}{{neededRights(t.OperatorNamespace), true}, {refusedRights, false}} {
		count := 0
		for _, right := range side.rights {
			wrong, err := t.review(ctx, account, right, side.want)
			if err != nil {
				return r, err
			}
			count += len(right.verbs)
			switch {
			case len(wrong) == 0:
			case side.want:
				r.Fail("%s may not %s %s", account, strings.Join(wrong, ", "), right)
			default:
				r.Fail("%s may %s %s, and must not", account, strings.Join(wrong, ", "), right)
			}
		}
		if side.want {
			r.See("%d rights that the operator needs were reviewed", count)
		} else {
			r.See("%d rights that it must not have were reviewed", count)
		}
	}
	return r, nil
}

// review returns the verbs whose answer is not the wanted one.
func (t Target) review(ctx context.Context, account string, right right, want bool) ([]string, error) {
	namespace := right.namespace
	if namespace == "" {
		namespace = t.Namespace
	}
	resource, subresource, _ := strings.Cut(right.resource, "/")
	var wrong []string
	for _, verb := range right.verbs {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + t.OperatorNamespace + ":" + account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + t.OperatorNamespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: right.group, Resource: resource, Subresource: subresource,
			},
		}}
		if err := t.Client.Create(ctx, review); err != nil {
			return nil, fmt.Errorf("review whether %s may %s %s: %w", account, verb, right, err)
		}
		if review.Status.Allowed != want {
			wrong = append(wrong, verb)
		}
	}
	return wrong, nil
}

func (r right) String() string {
	if r.group == "" {
		return r.resource
	}
	return r.resource + "." + r.group
}
