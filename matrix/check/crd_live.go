package check

import (
	"context"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// CRDLiveEqualsChart is the check that the API users talk to is the one the chart brings.
var CRDLiveEqualsChart = Check{
	ID:    "crd-live-equals-chart",
	Claim: "The live CRD is the new chart's, and an object that uses every field of its schema is stored unpruned.",
}

// CompareCRD judges CRDLiveEqualsChart. The API server itself brings the chart's CRD into the
// form it stores (defaults filled in), by a dry run.
func CompareCRD(ctx context.Context, t Target, chart *unstructured.Unstructured) (Result, error) {
	var r Result
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(chart.GroupVersionKind())
	if err := t.Client.Get(ctx, types.NamespacedName{Name: t.Subject.Resource.CRD}, live); err != nil {
		return r, fmt.Errorf("read the live CRD: %w", err)
	}
	wanted := live.DeepCopy()
	wanted.Object["spec"] = chart.DeepCopy().Object["spec"]
	if err := t.Client.Update(ctx, wanted, client.DryRunAll); err != nil {
		return r, fmt.Errorf("dry run of the chart's CRD: %w", err)
	}
	before := len(r.Failures)
	for _, d := range differences("spec", wanted.Object["spec"], live.Object["spec"]) {
		r.Fail("the live CRD differs from the chart's: %s", d)
	}
	if len(r.Failures) == before {
		r.See("the live CRD (UID %s) has the spec of the chart's", live.GetUID())
	}
	return r, r.storesEveryField(ctx, t, chart)
}

// storesEveryField sends an object with every field of the chart's schema set. Server-side
// strict validation refuses a field the live schema doesn't know, and what comes back must
// hold all that was sent.
func (r *Result) storesEveryField(ctx context.Context, t Target, chart *unstructured.Unstructured) error {
	content, err := yaml.Marshal(chart.Object)
	if err != nil {
		return fmt.Errorf("read the chart's CRD: %w", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		return fmt.Errorf("read the chart's CRD: %w", err)
	}
	version := crd.Spec.Versions[max(slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage }), 0)]
	object := t.newRuntime("every-field")
	spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
	object.Object["spec"] = Fill(t.Subject.Resource.Exemplars, "spec", &spec)
	sent := object.DeepCopy()
	if err := t.Client.Create(ctx, object, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		r.Fail("an object with every field of the chart's schema is refused: %v", err)
		return nil
	}
	lost := missing("spec", sent.Object["spec"], object.Object["spec"])
	for _, path := range lost {
		r.Fail("%s of the chart's schema is pruned", path)
	}
	if len(lost) == 0 {
		r.See("an object with all %d fields of the chart's schema is stored unpruned (dry run)", leaves(sent.Object["spec"]))
	}
	return nil
}
