package controller_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// validationCase is one entry of testdata/validation.yaml.
type validationCase struct {
	Name string `json:"name"`
	// Metadata and Spec are merged into the smallest runtime; null removes a field.
	Metadata map[string]any `json:"metadata"`
	Spec     map[string]any `json:"spec"`
	// Refused is a part of the API server's answer; empty when the object is valid.
	Refused string `json:"refused"`
}

// Objects are sent as users write them, so that the API server sees what they wrote.
func TestValidation(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "validation.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	content = []byte(strings.NewReplacer(
		"$LONG", strings.Repeat("a", 254),
		"$DIGEST", strings.Repeat("0a", 32),
	).Replace(string(content)))
	var cases []validationCase
	if err := yaml.UnmarshalStrict(content, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}

	namespace := newNamespace(t)
	for _, test := range cases {
		t.Run(test.Name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": v1alpha1.GroupVersion.String(),
				"kind":       v1alpha1.Kind,
				"metadata":   map[string]any{"name": "rt"},
				"spec": map[string]any{
					"image":    map[string]any{"repository": "ghcr.io/trussiumhq/trussium", "tag": "1.27.0"},
					"provider": map[string]any{"type": "ollama", "model": "llama3.2"},
				},
			}}
			merge(object.Object, map[string]any{"metadata": test.Metadata, "spec": test.Spec})
			object.SetNamespace(namespace)
			err := api.Create(t.Context(), object)
			if err == nil {
				if err := api.Delete(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case test.Refused == "" && err != nil:
				t.Errorf("a valid object is refused: %v", err)
			case test.Refused != "" && err == nil:
				t.Error("an invalid object is accepted")
			case test.Refused != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.Refused)):
				t.Errorf("refused for another reason than %q: %v", test.Refused, err)
			}
		})
	}
}

// merge overlays a JSON merge patch.
func merge(target, overlay map[string]any) {
	for key, value := range overlay {
		switch value := value.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			nested, ok := target[key].(map[string]any)
			if !ok {
				nested = map[string]any{}
				target[key] = nested
			}
			merge(nested, value)
		default:
			target[key] = value
		}
	}
}

func TestDefaults(t *testing.T) {
	namespace := newNamespace(t)
	createManifest(t, namespace, "runtime-minimal.yaml")
	spec := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{}).Spec
	got, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"image":{"repository":"ghcr.io/trussiumhq/trussium","tag":"1.27.0","pullPolicy":"IfNotPresent"},` +
		`"replicas":1,"provider":{"type":"ollama","model":"llama3.2"},"service":{"type":"ClusterIP","port":9000}}`
	if string(got) != want {
		t.Errorf("defaults\n got %s\nwant %s", got, want)
	}
}
