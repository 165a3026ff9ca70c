package check

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
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

// neededRights follow from what the operator reads and manages; the rest is declared.
func (s Subject) neededRights(operatorNamespace string) []right {
	rights := []right{
		{group: s.Kind.Group, resource: s.Plural, verbs: []string{"get", "list", "watch"}},
		{group: s.Kind.Group, resource: s.Plural + "/status", verbs: []string{"get", "update", "patch"}},
		{group: "coordination.k8s.io", resource: "leases", verbs: []string{"get", "create", "update"}, namespace: operatorNamespace},
	}
	for _, kind := range s.managed {
		rights = append(rights, right{group: kind.gvk.Group, resource: kind.resource, verbs: allVerbs})
	}
	return append(rights, declaredRights(s.Rights.Needed)...)
}

func declaredRights(declared []compat.Right) []right {
	var rights []right
	for _, d := range declared {
		rights = append(rights, right{group: d.Group, resource: d.Resource, verbs: d.Verbs})
	}
	return rights
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
	}{{t.Subject.neededRights(t.OperatorNamespace), true}, {declaredRights(t.Subject.Rights.Refused), false}} {
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
		switch {
		case side.want:
			r.See("%d rights that the operator needs were reviewed", count)
		case count == 0:
			r.See("no right is declared that it must not have")
		default:
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
