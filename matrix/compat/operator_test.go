package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The operator of this repository is described in the form that others use.
func TestDefaultOperator(t *testing.T) {
	operator := DefaultOperator()
	if operator.Image.Package != "./operator" || operator.Resource.CRD != "trussiumruntimes.runtime.trussium.io" || len(operator.Resource.Managed) != 7 || len(operator.Rights.Refused) != 7 {
		t.Errorf("got %+v", operator)
	}
	if value, there := operator.Resource.Exemplars["spec.image.tag"]; value != nil || !there {
		t.Errorf("spec.image.tag is to be left out: got %v, %v", value, there)
	}
}

func TestRender(t *testing.T) {
	spec := map[string]any{
		"image": "$image", "parts": []any{"$repository", "$tag"}, "scale": map[string]any{"count": "$replicas", "most": int64(5)},
		"text": "costs $replicas", "open": true,
	}
	got := Placeholders{Repository: "example.com/kiosk", Tag: "1.0.0", Replicas: 3}.Render(spec)
	want := map[string]any{
		"image": "example.com/kiosk:1.0.0", "parts": []any{"example.com/kiosk", "1.0.0"}, "scale": map[string]any{"count": int64(3), "most": int64(5)},
		"text": "costs $replicas", "open": true,
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("rendered (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"scale": map[string]any{"count": "$replicas"}}), Parts(spec, ReplicasPlaceholders)); diff != "" {
		t.Errorf("what a change of the count changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(any(map[string]any{"image": "$image", "parts": []any{"$repository", "$tag"}}), Parts(spec, ImagePlaceholders)); diff != "" {
		t.Errorf("what a change of the image changes (-want +got):\n%s", diff)
	}
	if part := Parts(map[string]any{"open": true}, ImagePlaceholders); part != nil {
		t.Errorf("a value without placeholders: got %v", part)
	}
}
