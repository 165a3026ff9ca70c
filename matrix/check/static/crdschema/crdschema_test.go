package crdschema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
)

const example = `
type: object
properties:
  spec:
    type: object
    properties:
      size: {type: integer, maximum: 10, default: 1}
      names: {type: array, x-kubernetes-list-type: set, items: {type: string}}
      low: {type: integer}
      high: {type: integer}
    x-kubernetes-validations:
    - {rule: "!has(self.low) || !has(self.high) || self.low <= self.high", message: high is below low}
`

func schema(t *testing.T) *crdschema.Schema {
	t.Helper()
	root := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.Unmarshal([]byte(example), root); err != nil {
		t.Fatal(err)
	}
	read, err := crdschema.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func object(t *testing.T, spec string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte("{apiVersion: example.com/v1, kind: Example, metadata: {name: a, unknown: kept}, spec: "+spec+"}"), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPruneAndDefault(t *testing.T) {
	read, content := schema(t), object(t, "{low: 1, other: {a: b}}")
	if diff := cmp.Diff([]string{"spec.other"}, read.Prune(content)); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
	read.Default(content)
	if diff := cmp.Diff(object(t, "{low: 1, size: 1}"), content); diff != "" {
		t.Errorf("object (-want +got):\n%s", diff)
	}
}

func TestValidate(t *testing.T) {
	for spec, want := range map[string]string{
		"{size: 10, names: [a, b], low: 1, high: 1}": "",
		"{size: 11}":        "spec.size",
		"{size: many}":      "spec.size",
		"{names: [a, a]}":   "spec.names[1]: Duplicate value",
		"{low: 2, high: 1}": "high is below low",
	} {
		err := schema(t).Validate(t.Context(), object(t, spec))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", spec, err, want)
		}
	}
}

func TestValidateUpdate(t *testing.T) {
	for _, test := range []struct{ was, is, want string }{
		{"{size: 11}", "{size: 11, low: 1}", ""},
		{"{size: 11}", "{size: 12}", "spec.size"},
		{"{names: [a, a]}", "{names: [a, a], low: 1}", "Duplicate value"},
		{"{low: 2, high: 1}", "{low: 2, high: 1}", ""},
		{"{low: 2, high: 1}", "{low: 2, high: 1, size: 2}", "high is below low"},
	} {
		err := schema(t).ValidateUpdate(t.Context(), object(t, test.is), object(t, test.was))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("from %s to %s: %v, want %q", test.was, test.is, err, test.want)
		}
	}
}

func TestWhatIsNoSchema(t *testing.T) {
	reference := "#/definitions/a"
	root := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {Ref: &reference}}}
	if _, err := crdschema.New(root); err == nil || !strings.Contains(err.Error(), "the schema is not structural") {
		t.Errorf("the error is %v", err)
	}
}
