package static

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// ImmutableFields is the check that the API server will not refuse the upgrade half way.
var ImmutableFields = check.Check{
	ID:    "immutable-fields",
	Claim: "The upgrade changes no field of the chart's objects that can't be changed, and deletes nothing that holds what users created.",
}

// immutable are the fields that the API server lets nobody change.
var immutable = map[schema.GroupKind][][]string{
	{Group: "apps", Kind: "Deployment"}:                              {{"spec", "selector"}},
	{Group: "apps", Kind: "DaemonSet"}:                               {{"spec", "selector"}},
	{Group: "apps", Kind: "StatefulSet"}:                             {{"spec", "selector"}, {"spec", "serviceName"}, {"spec", "podManagementPolicy"}, {"spec", "volumeClaimTemplates"}},
	{Group: "batch", Kind: "Job"}:                                    {{"spec", "selector"}, {"spec", "template"}, {"spec", "completionMode"}},
	{Kind: "Service"}:                                                {{"spec", "clusterIP"}, {"spec", "clusterIPs"}},
	{Kind: "Secret"}:                                                 {{"type"}},
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {{"roleRef"}},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {{"roleRef"}},
}

// precious are the kinds whose deletion takes with it what users created.
var precious = []string{"CustomResourceDefinition", "Namespace", "PersistentVolumeClaim"}

// JudgeImmutableFields judges ImmutableFields for the edge's way to treat values.
func JudgeImmutableFields(ctx context.Context, e Edge) (check.Result, error) {
	rendered, err := e.renderUpgrade(ctx, e.Values, nil)
	if err != nil {
		return refused(err)
	}
	before, err := objectsOf(rendered.before)
	if err != nil {
		return check.Result{}, err
	}
	after, err := objectsOf(rendered.after)
	if err != nil {
		return refused(err)
	}
	return compareImmutable(installed(before, e.Namespace), installed(after, e.Namespace)), nil
}

func compareImmutable(before, after map[ref]object) check.Result {
	var r check.Result
	compared := 0
	for _, name := range refs(before, after) {
		was, isOld := before[name]
		is, isNew := after[name]
		switch {
		case !isNew:
			removed(&r, name, was)
		case !isOld:
			r.See("the upgrade creates %s", name)
		default:
			for _, path := range immutable[name.GroupKind] {
				compared++
				old, _, _ := unstructured.NestedFieldNoCopy(was.Object, path...)
				now, _, _ := unstructured.NestedFieldNoCopy(is.Object, path...)
				if !reflect.DeepEqual(old, now) {
					r.Fail("%s: %s can't be changed, was %s, is %s", name, strings.Join(path, "."), asJSON(old), asJSON(now))
				}
			}
		}
		if isNew {
			selectsItself(&r, name, is)
		}
	}
	r.See("%d immutable fields were compared in %d objects of the earlier chart", compared, len(before))
	return r
}

// removed judges an object that the newer chart does not have: Helm deletes it, unless it is told not to.
func removed(r *check.Result, name ref, was object) {
	if was.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
		r.See("the upgrade leaves %s, which is to be kept", name)
		return
	}
	for _, kind := range precious {
		if name.Kind == kind {
			r.Fail("the upgrade deletes %s, and what users created with it", name)
			return
		}
	}
	r.See("the upgrade deletes %s", name)
}

// selectsItself sees that a workload's pods have the labels that it selects them by.
func selectsItself(r *check.Result, name ref, o object) {
	wanted, found, err := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
	if !found || err != nil {
		return
	}
	has, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	if err != nil || !labels.SelectorFromSet(wanted).Matches(labels.Set(has)) {
		r.Fail("%s selects %s, and its pods have %s", name, labels.Set(wanted), labels.Set(has))
	}
}

// asJSON prints a value; nil as "absent".
func asJSON(value any) string {
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
