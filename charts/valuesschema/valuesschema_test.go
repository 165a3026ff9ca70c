package valuesschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/trussiumhq/trussium-operator/charts/valuesschema"
)

const source = "../values.schema.json"

func TestTheSchemaIsUpToDate(t *testing.T) {
	got, err := os.ReadFile("../trussium-operator/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(complete(t)), string(got)); diff != "" {
		t.Errorf("values.schema.json of the chart is out of date; run make generate (-generated +file):\n%s", diff)
	}
}

func complete(t *testing.T) []byte {
	t.Helper()
	schema, err := valuesschema.Complete(source)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// kubernetes are values that set every field of the types of Kubernetes.
func kubernetes(t *testing.T) map[string]any {
	t.Helper()
	filled := struct {
		PodSecurityContext        corev1.PodSecurityContext         `json:"podSecurityContext"`
		SecurityContext           corev1.SecurityContext            `json:"securityContext"`
		Resources                 corev1.ResourceRequirements       `json:"resources"`
		Tolerations               []corev1.Toleration               `json:"tolerations"`
		Affinity                  corev1.Affinity                   `json:"affinity"`
		TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints"`
	}{}
	fill(reflect.ValueOf(&filled).Elem())
	content, err := json.Marshal(filled)
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := json.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func fill(value reflect.Value) {
	switch value.Interface().(type) {
	case resource.Quantity:
		value.Set(reflect.ValueOf(resource.MustParse("1")))
		return
	case intstr.IntOrString:
		value.Set(reflect.ValueOf(intstr.FromInt32(1)))
		return
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem())
	case reflect.String:
		value.SetString("text")
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int32, reflect.Int64:
		value.SetInt(1)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0))
	case reflect.Map:
		key, element := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key)
		fill(element)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, element)
	case reflect.Struct:
		for i := range value.NumField() {
			fill(value.Field(i))
		}
	}
}

func TestEveryFieldOfKubernetesIsAccepted(t *testing.T) {
	if err := chartutil.ValidateAgainstSingleSchema(kubernetes(t), complete(t)); err != nil {
		t.Error(err)
	}
}

// Helm merges values of people with defaults; a null in them stays.
func TestNullIsAcceptedForEveryField(t *testing.T) {
	schema := complete(t)
	visit(kubernetes(t), "", func(root map[string]any, path string, object map[string]any) {
		for name, value := range object {
			object[name] = nil
			if err := chartutil.ValidateAgainstSingleSchema(root, schema); err != nil {
				t.Errorf("%s/%s: %v", path, name, err)
			}
			object[name] = value
		}
	}, isStruct)
}

func TestFieldsThatKubernetesDoesNotHaveAreRefused(t *testing.T) {
	schema, objects := complete(t), 0
	visit(kubernetes(t), "", func(root map[string]any, path string, object map[string]any) {
		objects++
		object["mistake"] = "text"
		err := chartutil.ValidateAgainstSingleSchema(root, schema)
		if want := fmt.Sprintf("at '%s': additional properties 'mistake' not allowed", path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
		delete(object, "mistake")
	}, isStruct)
	if objects < 20 {
		t.Errorf("only %d objects were tried", objects)
	}
}

// isStruct tells an object with fixed fields from a map, which fill gives the key "text".
func isStruct(object map[string]any) bool { return object["text"] == nil }

// visit calls use with every object below root for which selected is true.
func visit(root map[string]any, path string, use func(root map[string]any, path string, object map[string]any), selected func(map[string]any) bool) {
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if selected(value) {
				use(root, path, value)
			}
			for name, child := range value {
				walk(path+"/"+name, child)
			}
		case []any:
			for i, child := range value {
				walk(fmt.Sprint(path, "/", i), child)
			}
		}
	}
	walk(path, root)
}

func TestErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{"{": "unexpected end of JSON", "{}": "it has no definitions"} {
		file := filepath.Join(dir, "schema.json")
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := valuesschema.Complete(file); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
	}
	if _, err := valuesschema.Complete(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file is accepted")
	}
}
