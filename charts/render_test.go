package charts_test

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
)

const (
	chartDir    = "trussium-operator"
	releaseName = "trussium-operator"
	namespace   = "trussium-operator-system"

	deploymentName = "Deployment/trussium-operator-controller-manager"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func parse(t *testing.T, values string) map[string]any {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// helm is Helm with its releases in memory and without a cluster.
func helm() *action.Configuration {
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.37.0", Major: "1", Minor: "37"}
	return &action.Configuration{
		Releases:     storage.Init(driver.NewMemory()),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Capabilities: capabilities,
		Log:          func(string, ...any) {},
	}
}

func install(config *action.Configuration, loaded *chart.Chart, values map[string]any) (*release.Release, error) {
	client := action.NewInstall(config)
	client.ReleaseName, client.Namespace = releaseName, namespace
	return client.Run(loaded, values)
}

// tryRender renders the chart with values on top of its defaults.
func tryRender(t *testing.T, loaded *chart.Chart, values string) (*release.Release, error) {
	t.Helper()
	return install(helm(), loaded, parse(t, values))
}

func renderRelease(t *testing.T, loaded *chart.Chart, values string) *release.Release {
	t.Helper()
	rendered, err := tryRender(t, loaded, values)
	if err != nil {
		t.Fatalf("with the values %q: %v", values, err)
	}
	return rendered
}

func render(t *testing.T, loaded *chart.Chart, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	return objectsOf(t, renderRelease(t, loaded, values))
}

// text is all that a release renders, hooks too.
func text(rendered *release.Release) string {
	var out strings.Builder
	out.WriteString(rendered.Manifest)
	for _, hook := range rendered.Hooks {
		out.WriteString("---\n" + hook.Manifest + "\n")
	}
	return out.String()
}

// objectsOf are the objects of a release by kind and name, hooks too.
func objectsOf(t *testing.T, rendered *release.Release) map[string]*unstructured.Unstructured {
	t.Helper()
	list, err := bundle.Decode(text(rendered))
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, object := range list {
		objects[object.GetKind()+"/"+object.GetName()] = object
	}
	if len(objects) != len(list) {
		t.Fatalf("%d objects, of which %d have the same kind and name", len(list), len(list)-len(objects))
	}
	return objects
}

// installed leaves out the hooks.
func installed(objects map[string]*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	result := maps.Clone(objects)
	maps.DeleteFunc(result, func(_ string, object *unstructured.Unstructured) bool {
		return object.GetAnnotations()[release.HookAnnotation] != ""
	})
	return result
}

func names(objects map[string]*unstructured.Unstructured) []string {
	return slices.Sorted(maps.Keys(objects))
}

// podTemplates are the metadata and spec of every Pod that the chart makes, by what makes it.
func podTemplates(t *testing.T, objects map[string]*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	templates := map[string]map[string]any{}
	for name, object := range objects {
		switch object.GetKind() {
		case "Pod":
			templates[name] = object.Object
		case "Deployment", "Job":
			template, _, err := unstructured.NestedMap(object.Object, "spec", "template")
			if err != nil {
				t.Fatal(err)
			}
			templates[name] = template
		}
	}
	return templates
}

// container is the only container of a Pod.
func container(t *testing.T, template map[string]any) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(template, "spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("containers %v: %v", containers, err)
	}
	return containers[0].(map[string]any)
}

func managerArguments(t *testing.T, objects map[string]*unstructured.Unstructured) []string {
	t.Helper()
	manager := container(t, podTemplates(t, objects)[deploymentName])
	arguments, _, err := unstructured.NestedStringSlice(manager, "args")
	if err != nil {
		t.Fatal(err)
	}
	return arguments
}
