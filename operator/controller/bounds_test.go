package controller_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/check/static/crdschema"
)

// schemaNode is a part of the schema as JSON.
type schemaNode = map[string]any

// bound is one bound or rule of the schema.
type bound struct {
	name string
	// path leads to the node that has it.
	path []string
	// weaken takes it away from its node, tighten makes it refuse what it just allows;
	// tighten is nil where that has no meaning.
	weaken, tighten func(schemaNode)
}

// redundant are bounds that refuse nothing that another one does not refuse as well. They
// stand in the schema because a form or an editor can show them, unlike a pattern.
var redundant = []string{
	"spec.autoscaling.maxReplicas minimum",
	"spec.autoscaling.minReplicas maximum",
	"spec.image.repository minLength",
	"spec.image.tag maxLength",
	"spec.image.tag minLength",
	"spec.imagePullSecrets[].name minLength",
	"spec.provider.credentialsSecretRef.key minLength",
	"spec.provider.credentialsSecretRef.name minLength",
}

// Without any of its bounds the schema accepts an object of testdata/validation.yaml that
// must be refused, and one step narrower it refuses one that must be accepted: a valid and
// an invalid object stand at every bound. The API server's own validation judges here,
// without the server, because the schema is changed for each.
func TestEveryBoundIsHeldByAValidAndAnInvalidObject(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "charts", "trussium-operator", "crds", "runtime.trussium.io_trussiumruntimes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	schema := func() schemaNode {
		definition := schemaNode{}
		if err := yaml.Unmarshal(content, &definition); err != nil {
			t.Fatal(err)
		}
		versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
		return versions[0].(schemaNode)["schema"].(schemaNode)["openAPIV3Schema"].(schemaNode)
	}
	cases := validationCases(t)
	// verdicts are the names of the cases on which the schema and the file differ.
	verdicts := func(schema schemaNode) (accepted, refused []string) {
		judge := newJudge(t, schema)
		for _, test := range cases {
			switch reason := judge(test.object().Object); {
			case test.Refused != "" && reason == "":
				accepted = append(accepted, test.Name)
			case test.Refused == "" && reason != "":
				refused = append(refused, test.Name)
			}
		}
		return accepted, refused
	}

	if accepted, refused := verdicts(schema()); len(accepted)+len(refused) > 0 {
		t.Fatalf("unlike the API server, this test accepts %q and refuses %q", accepted, refused)
	}
	for _, bound := range boundsOf(schema(), nil) {
		t.Run(bound.name, func(t *testing.T) {
			weak := schema()
			bound.weaken(nodeAt(weak, bound.path))
			accepted, _ := verdicts(weak)
			if isRedundant := slices.Contains(redundant, bound.name); (len(accepted) == 0) != isRedundant {
				t.Errorf("invalid objects that it alone refuses: %q; listed as redundant: %t", accepted, isRedundant)
			}
			if bound.tighten == nil {
				return
			}
			tight := schema()
			bound.tighten(nodeAt(tight, bound.path))
			if _, refused := verdicts(tight); len(refused) == 0 {
				t.Error("no valid object stands at it")
			}
		})
	}
}

// newJudge returns a function that tells why an object is refused, "" if it is not.
func newJudge(t *testing.T, root schemaNode) func(map[string]any) string {
	t.Helper()
	text, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	properties := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(text, properties); err != nil {
		t.Fatal(err)
	}
	schema, err := crdschema.New(properties)
	if err != nil {
		t.Fatal(err)
	}
	return func(object map[string]any) string {
		// As the API server reads it: 1 is an integer.
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		object = map[string]any{}
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		schema.Default(object)
		if err := schema.Validate(t.Context(), object); err != nil {
			return err.Error()
		}
		return ""
	}
}

// nodeAt descends from the root of the schema.
func nodeAt(root schemaNode, path []string) schemaNode {
	for _, name := range path {
		root = root[name].(schemaNode)
	}
	return root
}

// kubernetesTypes are the fields whose schema is Kubernetes' own.
var kubernetesTypes = []string{
	"status", "spec.scheduling", "spec.resources",
	"spec.networkPolicy.ingress[].namespaceSelector", "spec.networkPolicy.ingress[].podSelector",
}

// boundsOf lists the bounds in the node at path and below, apart from those inside of
// Kubernetes' own types.
func boundsOf(root schemaNode, path []string) []bound {
	place := strings.NewReplacer("properties.", "", ".items", "[]", ".additionalProperties", "{}").Replace(strings.Join(path, "."))
	if slices.Contains(kubernetesTypes, place) {
		return nil
	}
	node := nodeAt(root, path)
	var bounds []bound
	add := func(name string, weaken, tighten func(schemaNode)) {
		bounds = append(bounds, bound{name: strings.TrimSpace(place + " " + name), path: path, weaken: weaken, tighten: tighten})
	}
	for _, key := range slices.Sorted(maps.Keys(node)) {
		remove := func(node schemaNode) { delete(node, key) }
		change := func(value any) func(schemaNode) { return func(node schemaNode) { node[key] = value } }
		switch value := node[key].(type) {
		case float64:
			switch {
			case strings.HasPrefix(key, "min"):
				add(key, remove, change(value+1))
			case strings.HasPrefix(key, "max"):
				add(key, remove, change(value-1))
			}
		case string:
			switch {
			case key == "pattern":
				add(key, remove, change("^never$"))
			case key == "format" && value == "uri":
				add(key, remove, change("ipv4"))
			case key == "x-kubernetes-list-type" && value == "map":
				add(key, func(node schemaNode) {
					node[key] = "atomic"
					delete(node, "x-kubernetes-list-map-keys")
				}, nil)
			}
		case []any:
			for i, entry := range value {
				without := change(slices.Delete(slices.Clone(value), i, i+1))
				rule := func(text string) func(schemaNode) {
					return func(node schemaNode) { node[key].([]any)[i].(schemaNode)["rule"] = text }
				}
				switch key {
				case "enum":
					add(fmt.Sprintf("%s %v", key, entry), remove, without)
				case "required":
					add(fmt.Sprintf("%s %v", key, entry), without, nil)
				case "x-kubernetes-validations":
					add(fmt.Sprintf("rule %d", i+1), rule("true"), rule("false"))
				}
			}
		case schemaNode:
			switch key {
			case "properties":
				for _, name := range slices.Sorted(maps.Keys(value)) {
					bounds = append(bounds, boundsOf(root, append(slices.Clone(path), key, name))...)
				}
			case "items", "additionalProperties":
				bounds = append(bounds, boundsOf(root, append(slices.Clone(path), key))...)
			}
		}
	}
	return bounds
}
