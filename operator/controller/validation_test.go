package controller_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
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
	// Without is a field at the top that the object lacks.
	Without string `json:"without"`
	// Refused is a part of the API server's answer; empty when the object is valid.
	Refused string `json:"refused"`
}

// repetition stands for what is too long to be written out.
var repetition = regexp.MustCompile(`\$(LETTERS|KEYS)\((\d+)\)`)

// validationCases reads testdata/validation.yaml.
func validationCases(t *testing.T) []validationCase {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "validation.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := repetition.ReplaceAllStringFunc(string(content), func(token string) string {
		parts := repetition.FindStringSubmatch(token)
		count, _ := strconv.Atoi(parts[2])
		if parts[1] == "LETTERS" {
			return strings.Repeat("a", count)
		}
		var keys []string
		for i := range count {
			keys = append(keys, fmt.Sprintf("k%d: v", i))
		}
		return "{" + strings.Join(keys, ", ") + "}"
	})
	text = strings.ReplaceAll(text, "$DIGEST", strings.Repeat("0a", 32))
	var cases []validationCase
	if err := yaml.UnmarshalStrict([]byte(text), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}

// object is the TrussiumRuntime as a user writes it.
func (c validationCase) object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"metadata":   map[string]any{"name": "rt"},
		"spec": map[string]any{
			"image":    map[string]any{"repository": "ghcr.io/trussiumhq/trussium", "tag": "1.27.0"},
			"provider": map[string]any{"type": "ollama", "model": "llama3.2"},
		},
	}}
	merge(object.Object, map[string]any{"metadata": c.Metadata, "spec": c.Spec})
	delete(object.Object, c.Without)
	return object
}

// Objects are sent as users write them, so that the API server sees what they wrote.
func TestValidation(t *testing.T) {
	namespace := newNamespace(t)
	for _, test := range validationCases(t) {
		t.Run(test.Name, func(t *testing.T) {
			object := test.object()
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
