package static

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// example is a CRD with what schemas are made of.
const example = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: examples.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: examples, singular: example, kind: Example, listKind: ExampleList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [name]
            properties:
              name: {type: string, maxLength: 20, pattern: '^[a-z]+$'}
              size: {type: integer, minimum: 0, maximum: 10, default: 1}
              mode: {type: string, enum: [a, b]}
              free: {type: string}
              extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
              labels: {type: object, additionalProperties: {type: string, maxLength: 20}}
              keyed:
                type: array
                maxItems: 5
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, size: {type: integer, maximum: 10}}}
              atomic:
                type: array
                x-kubernetes-list-type: atomic
                items: {type: object, properties: {size: {type: integer, maximum: 10}}}
`

func exampleCRD(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found, err := documents([]byte(example))
	must(t, err)
	definition, err := as[apiextensionsv1.CustomResourceDefinition](found[0])
	must(t, err)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&definition.Spec)
	return definition
}

type schemaProps = apiextensionsv1.JSONSchemaProps

// at edits the schema of a place like spec.keyed[].size, or spec.labels{} for the values of a map.
func at(place string, change func(*schemaProps)) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(definition *apiextensionsv1.CustomResourceDefinition) {
		var descend func(s *schemaProps, path []string)
		descend = func(s *schemaProps, path []string) {
			if len(path) == 0 {
				change(s)
				return
			}
			switch path[0] {
			case "[]":
				descend(s.Items.Schema, path[1:])
			case "{}":
				descend(s.AdditionalProperties.Schema, path[1:])
			default:
				property := s.Properties[path[0]]
				descend(&property, path[1:])
				s.Properties[path[0]] = property
			}
		}
		path := strings.Fields(strings.NewReplacer(".", " ", "[]", " []", "{}", " {}").Replace(place))
		descend(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, path)
	}
}

func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func rule(text string) func(*schemaProps) {
	return func(s *schemaProps) {
		s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{Rule: text, Message: "no"})
	}
}

func compared(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition), ratcheting bool) check.Result {
	t.Helper()
	before, after := exampleCRD(t), exampleCRD(t)
	change(after)
	named := func(d *apiextensionsv1.CustomResourceDefinition) map[string]*apiextensionsv1.CustomResourceDefinition {
		return map[string]*apiextensionsv1.CustomResourceDefinition{d.Name: d}
	}
	r, err := compareCRDs(t.Context(), named(before), named(after), ratcheting)
	must(t, err)
	return r
}

func TestIncompatibleCRDs(t *testing.T) {
	type crd = apiextensionsv1.CustomResourceDefinition
	for _, test := range []struct {
		name   string
		change func(*crd)
		says   string
	}{
		{"field removed", at("spec", func(s *schemaProps) { delete(s.Properties, "free") }), "removed field : v1.^.spec.free"},
		{"nested field removed", at("spec.keyed[]", func(s *schemaProps) { delete(s.Properties, "size") }), "removed field : v1.^.spec.keyed.items.size"},
		{"map retyped", at("spec.labels{}", func(s *schemaProps) { s.Type = "integer" }), `v1 spec.labels.additionalProperties: type changed : "string" -> "integer"`},
		{"type changed", at("spec.free", func(s *schemaProps) { s.Type = "integer" }), `v1 spec.free: type changed : "string" -> "integer"`},
		{"newly required", at("spec", func(s *schemaProps) { s.Required = append(s.Required, "free") }), "v1 spec: new required fields: [free]"},
		{"default changed", at("spec.size", func(s *schemaProps) { s.Default = raw("2") }), "v1 spec.size: default value changed"},
		{"default added", at("spec.free", func(s *schemaProps) { s.Default = raw(`"x"`) }), "v1 spec.free: default added"},
		{"default removed", at("spec.size", func(s *schemaProps) { s.Default = nil }), "v1 spec.size: default value removed"},
		{"fewer items", at("spec.keyed", func(s *schemaProps) { s.MaxItems = new(int64) }), "v1 spec.keyed: maximum decreased"},
		{"more items", at("spec.atomic", func(s *schemaProps) { one := int64(1); s.MinItems = &one }), "v1 spec.atomic: minimum"},
		{"more properties", at("spec.labels", func(s *schemaProps) { one := int64(1); s.MinProperties = &one }), "v1 spec.labels: minimum"},
		{"list without keys", at("spec.keyed", func(s *schemaProps) {
			atomic := "atomic"
			s.XListType, s.XListMapKeys = &atomic, nil
		}), "v1 spec.keyed: unhandled changes"},
		{"unknown fields pruned", at("spec.extra", func(s *schemaProps) { s.XPreserveUnknownFields = nil }), "v1 spec.extra: unhandled changes"},
		{"format", at("spec.free", func(s *schemaProps) { s.Format = "uri" }), "v1 spec.free: unhandled changes"},
		{"rule of the object", at("spec", rule("self.name.size() > 0")), "v1 spec: a rule is new: self.name.size() > 0"},
		{"transition rule", at("spec.size", rule("oldSelf <= self")), "v1 spec.size: a rule that speaks of oldSelf is new"},
		{"scope", func(d *crd) { d.Spec.Scope = apiextensionsv1.ClusterScoped }, "scope"},
		{"CRD gone", func(d *crd) { d.Name = "others.example.com" }, "the newer chart has no CRD examples.example.com"},
		{"kind renamed", func(d *crd) { d.Spec.Names.Kind = "Other" }, "the API server refuses the newer CRD: spec.names.kind"},
		{"invalid schema", at("spec.free", func(s *schemaProps) { s.XValidations = []apiextensionsv1.ValidationRule{{Rule: "self +"}} }), "the API server refuses the newer CRD"},
	} {
		t.Run(test.name, func(t *testing.T) { red(t, test.says, compared(t, test.change, true)) })
	}
}

func TestCompatibleCRDs(t *testing.T) {
	more := int64(50)
	for name, change := range map[string]func(*apiextensionsv1.CustomResourceDefinition){
		"nothing":     func(*apiextensionsv1.CustomResourceDefinition) {},
		"description": at("spec.free", func(s *schemaProps) { s.Description = "Free." }),
		"new object with required fields": at("spec", func(s *schemaProps) {
			s.Properties["new"] = schemaProps{Type: "object", Required: []string{"a"}, Properties: map[string]schemaProps{"a": {Type: "string", Pattern: "^x$"}}}
		}),
		"one more value":   at("spec.mode", func(s *schemaProps) { s.Enum = append(s.Enum, *raw(`"c"`)) }),
		"longer":           at("spec.name", func(s *schemaProps) { s.MaxLength = &more }),
		"longer in a map":  at("spec.labels{}", func(s *schemaProps) { s.MaxLength = &more }),
		"pattern removed":  at("spec.name", func(s *schemaProps) { s.Pattern = "" }),
		"no longer needed": at("spec", func(s *schemaProps) { s.Required = nil }),
		"null allowed":     at("spec.free", func(s *schemaProps) { s.Nullable = true }),
		"new version":      func(d *apiextensionsv1.CustomResourceDefinition) { addVersion(d, "v2") },
	} {
		t.Run(name, func(t *testing.T) { green(t, compared(t, change, false)) })
	}
}

// addVersion adds a served version that is not stored.
func addVersion(d *apiextensionsv1.CustomResourceDefinition, name string) {
	added := *d.Spec.Versions[0].DeepCopy()
	added.Name, added.Storage = name, false
	d.Spec.Versions = append(d.Spec.Versions, added)
}

func TestVersionsStay(t *testing.T) {
	type crd = apiextensionsv1.CustomResourceDefinition
	for _, test := range []struct {
		name   string
		change func(*crd)
		says   string
	}{
		{"dropped", func(d *crd) { d.Spec.Versions = d.Spec.Versions[:1] }, "version v1beta1 is no longer served"},
		{"no longer served", func(d *crd) { d.Spec.Versions[1].Served = false }, "version v1beta1 is no longer served"},
		{"stored one dropped", func(d *crd) { d.Spec.Versions = d.Spec.Versions[1:]; d.Spec.Versions[0].Storage = true }, "stored versions removed : [v1]"},
		{"one differs from the other", func(d *crd) {
			at("spec", func(s *schemaProps) {
				s.Properties["new"] = schemaProps{Type: "string"}
				s.Required = append(s.Required, "new")
			})(d)
		}, "v1beta1 -> v1 spec: new required fields: [new]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, after := exampleCRD(t), exampleCRD(t)
			addVersion(before, "v1beta1")
			addVersion(after, "v1beta1")
			test.change(after)
			var r check.Result
			must(t, compareCRD(t.Context(), &r, before, after, true))
			red(t, test.says, r)
		})
	}
}

// What is let pass as ratcheted is what the API server's own code lets pass: a value that the
// newer schema refuses stays, while something next to it changes.
func TestTighteningThatAnUnchangedValueDoesNotNotice(t *testing.T) {
	fewer, shorter := 5.0, int64(5)
	for _, test := range []struct {
		name           string
		change         func(*apiextensionsv1.CustomResourceDefinition)
		stored, edited string
		unnoticed      bool
	}{
		{"maximum", at("spec.size", func(s *schemaProps) { s.Maximum = &fewer }), `{"name":"a","size":9}`, `{"name":"b","size":9}`, true},
		{"pattern", at("spec.free", func(s *schemaProps) { s.Pattern = "^x$" }), `{"name":"a","free":"y"}`, `{"name":"b","free":"y"}`, true},
		{"changed pattern", at("spec.name", func(s *schemaProps) { s.Pattern = "^b+$" }), `{"name":"a"}`, `{"name":"a","size":2}`, true},
		{"enum", at("spec.mode", func(s *schemaProps) { s.Enum = s.Enum[:1] }), `{"name":"a","mode":"b"}`, `{"name":"b","mode":"b"}`, true},
		{"rule of a value", at("spec.free", rule("self.size() > 3")), `{"name":"a","free":"y"}`, `{"name":"b","free":"y"}`, true},
		{"in a map", at("spec.labels{}", func(s *schemaProps) { s.MaxLength = &shorter }), `{"name":"a","labels":{"k":"long enough"}}`, `{"name":"a","labels":{"k":"long enough","l":"m"}}`, true},
		{"in a list with keys", at("spec.keyed[].size", func(s *schemaProps) { s.Maximum = &fewer }), `{"name":"a","keyed":[{"name":"x","size":9}]}`, `{"name":"a","keyed":[{"name":"y"},{"name":"x","size":9}]}`, true},
		{"in a list without keys", at("spec.atomic[].size", func(s *schemaProps) { s.Maximum = &fewer }), `{"name":"a","atomic":[{"size":9}]}`, `{"name":"a","atomic":[{"size":9},{"size":1}]}`, false},
		{"rule of an object", at("spec", rule("!has(self.free)")), `{"name":"a","free":"y"}`, `{"name":"b","free":"y"}`, false},
		{"transition rule", at("spec.size", rule("oldSelf < 5")), `{"name":"a","size":9}`, `{"name":"b","size":9}`, false},
		{"fewer items", at("spec.keyed", func(s *schemaProps) { s.MaxItems = new(int64) }), `{"name":"a","keyed":[{"name":"x"}]}`, `{"name":"a","keyed":[{"name":"x","size":1}]}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ratcheted, plain := compared(t, test.change, true), compared(t, test.change, false)
			if got := ratcheted.Outcome() == evidence.Passed; got != test.unnoticed {
				t.Errorf("let pass: %t", got)
			}
			if plain.Outcome() == evidence.Passed {
				t.Error("it is let pass by a Kubernetes that does not ratchet")
			}
			object := func(spec string) map[string]any {
				content := map[string]any{}
				must(t, json.Unmarshal([]byte(spec), &content))
				return runtime.DeepCopyJSON(map[string]any{"apiVersion": "example.com/v1", "kind": "Example", "metadata": map[string]any{"name": "a"}, "spec": content})
			}
			newer := exampleCRD(t)
			test.change(newer)
			schema, err := crdschema.New(newer.Spec.Versions[0].Schema.OpenAPIV3Schema)
			must(t, err)
			err = schema.ValidateUpdate(t.Context(), object(test.edited), object(test.stored))
			if (err == nil) != test.unnoticed {
				t.Errorf("the API server's code says: %v", err)
			}
		})
	}
}
