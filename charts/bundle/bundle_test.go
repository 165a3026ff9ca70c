package bundle_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
)

const (
	chartDir = "../trussium-operator"
	file     = "../install.yaml"
)

func TestInstallYAMLIsUpToDate(t *testing.T) {
	want, err := bundle.Render(load(t, chartDir), "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("charts/install.yaml is not what the chart renders; run make generate (-rendered +file):\n%s", diff)
	}
}

// People who install with kubectl get what people who install with Helm get.
func TestInstallYAMLEqualsTheChart(t *testing.T) {
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := byName(t, string(content))
	want := chartObjects(t)

	name := "Namespace/" + bundle.Namespace
	if got[name] == nil {
		t.Errorf("there is no %s", name)
	}
	delete(got, name)
	for _, objects := range []map[string]*unstructured.Unstructured{got, want} {
		for _, object := range objects {
			normalize(t, object)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("install.yaml differs from the chart (-chart +install.yaml):\n%s", diff)
	}
}

// normalize removes what only Helm adds, and the selector, which is the chart's in a release
// and that of the published bundles in a bundle.
func normalize(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	labels := object.GetLabels()
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return key == "app.kubernetes.io/managed-by" || key == "helm.sh/chart"
	})
	object.SetLabels(labels)
	if object.GetKind() != "Deployment" {
		return
	}
	podLabels, _, err := unstructured.NestedMap(object.Object, "spec", "template", "metadata", "labels")
	if err != nil {
		t.Fatal(err)
	}
	delete(podLabels, "control-plane")
	if err := unstructured.SetNestedMap(object.Object, podLabels, "spec", "template", "metadata", "labels"); err != nil {
		t.Fatal(err)
	}
	unstructured.RemoveNestedField(object.Object, "spec", "selector")
}

// chartObjects are those that a release of the documented name has, but for the hooks.
func chartObjects(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	loaded := load(t, chartDir)
	options := chartutil.ReleaseOptions{Name: "trussium-operator", Namespace: bundle.Namespace}
	values, err := chartutil.ToRenderValues(loaded, nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range loaded.CRDObjects() {
		files[definition.Filename] = string(definition.File.Data)
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, content := range files {
		if filepath.Ext(name) == ".yaml" {
			maps.Copy(objects, byName(t, content))
		}
	}
	maps.DeleteFunc(objects, func(_ string, object *unstructured.Unstructured) bool {
		return object.GetAnnotations()[release.HookAnnotation] != ""
	})
	return objects
}

func byName(t *testing.T, documents string) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := bundle.Decode(documents)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range list {
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	return objects
}

// kubectl applies in the order of the file: what others need comes first.
func TestOrder(t *testing.T) {
	content, err := bundle.Render(load(t, chartDir), "")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bundle.Decode(string(content))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, object := range objects {
		kinds = append(kinds, object.GetKind())
		// The documented way to go back, or to uninstall, leaves out what runtimes depend on by this label.
		labelled := object.GetLabels()["app.kubernetes.io/name"] == "trussium-operator"
		if keeps := object.GetKind() == "Namespace" || object.GetKind() == "CustomResourceDefinition"; labelled == keeps {
			t.Errorf("the labels of %s %s are %v", object.GetKind(), object.GetName(), object.GetLabels())
		}
	}
	want := []string{
		"Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRole", "ClusterRole", "ClusterRoleBinding", "ClusterRoleBinding",
		"Role", "RoleBinding", "Service", "Deployment",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("the order is %v, want %v", kinds, want)
	}
	deployment := objects[len(objects)-1]
	labels, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
	selector, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	service, _, _ := unstructured.NestedStringMap(objects[len(objects)-2].Object, "spec", "selector")
	if deployment.GetName() != "trussium-operator-controller-manager" || !cmp.Equal(selector, bundle.Selector) {
		t.Errorf("Deployment %s selects %v", deployment.GetName(), selector)
	}
	for _, selector := range []map[string]string{selector, service} {
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("%s=%s selects none of the Pods with %v", key, value, labels)
			}
		}
	}
}

func TestTheImageByDigest(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	content, err := bundle.Render(load(t, chartDir), digest)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(content), "image: ghcr.io/trussiumhq/trussium-operator@"+digest+"\n"); got != 1 {
		t.Errorf("the image is named by its digest %d times, want once:\n%s", got, content)
	}
	if _, err := bundle.Render(load(t, chartDir), "sha256:12"); err == nil || !strings.Contains(err.Error(), "/image/digest") {
		t.Errorf("a digest that is none: %v", err)
	}
}

func TestErrorsNameTheChart(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Chart.yaml":           "{apiVersion: v2, name: broken, version: 1.2.3}",
		"templates/twice.yaml": "{kind: ConfigMap, kind: ConfigMap}",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, err := bundle.Render(load(t, dir), "")
	if err == nil || !strings.Contains(err.Error(), "broken 1.2.3") || !strings.Contains(err.Error(), `"kind" already set`) {
		t.Errorf("a key that is there twice: %v", err)
	}
}

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
