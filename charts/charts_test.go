package charts_test

import (
	"fmt"
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
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

func load(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load("trussium-operator")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render renders the chart with values on top of its defaults.
func render(t *testing.T, loaded *chart.Chart, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "trussium-operator", Namespace: "trussium-operator-system"}
	rendering, err := chartutil.ToRenderValues(loaded, parsed, release, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(loaded, rendering)
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for name, content := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for _, document := range strings.Split("\n"+content, "\n---\n") {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
				t.Fatalf("%s is no YAML: %v\n%s", name, err, document)
			}
			if len(object.Object) > 0 {
				objects[object.GetKind()+"/"+object.GetName()] = object
			}
		}
	}
	return objects
}

func names(objects map[string]*unstructured.Unstructured) []string {
	var result []string
	for name := range objects {
		result = append(result, name)
	}
	slices.Sort(result)
	return result
}

func TestDefaultInstallation(t *testing.T) {
	loaded := load(t)
	objects := render(t, loaded, "crds: {upgrade: false}")
	want := []string{
		"ClusterRole/trussium-operator-manager-role",
		"ClusterRole/trussium-operator-metrics-auth-role",
		"ClusterRole/trussium-operator-metrics-reader",
		"ClusterRoleBinding/trussium-operator-manager-rolebinding",
		"ClusterRoleBinding/trussium-operator-metrics-auth-rolebinding",
		"Deployment/trussium-operator-controller-manager",
		"Role/trussium-operator-leader-election-role",
		"RoleBinding/trussium-operator-leader-election-rolebinding",
		"Service/trussium-operator-controller-manager-metrics",
		"ServiceAccount/trussium-operator-controller-manager",
	}
	if diff := cmp.Diff(want, names(objects)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	deployment := objects["Deployment/trussium-operator-controller-manager"]
	selector, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	// Selectors are immutable: published releases chose this one.
	wantSelector := map[string]string{
		"app.kubernetes.io/name":     "trussium-operator",
		"app.kubernetes.io/instance": "trussium-operator",
	}
	if diff := cmp.Diff(wantSelector, selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	image := containers[0].(map[string]any)["image"]
	if want := "ghcr.io/trussiumhq/trussium-operator:" + loaded.Metadata.AppVersion; image != want {
		t.Errorf("image %v, want %s", image, want)
	}
	if loaded.Metadata.Version != loaded.Metadata.AppVersion {
		t.Errorf("chart %s carries operator %s", loaded.Metadata.Version, loaded.Metadata.AppVersion)
	}
}

// A release that is upgraded with --reuse-values brings the values of its own
// time: whatever came later is missing, and sections may be null.
func TestValuesOfEarlierReleasesRender(t *testing.T) {
	for _, section := range sections(load(t).Values) {
		for _, value := range []string{"missing", "null"} {
			t.Run(section+" "+value, func(t *testing.T) {
				loaded := load(t)
				// With --reuse-values the old release's values take the place of the defaults.
				delete(loaded.Values, section)
				if value == "null" {
					loaded.Values[section] = nil
				}
				objects := render(t, loaded, "")
				if objects["Deployment/trussium-operator-controller-manager"] == nil {
					t.Errorf("no Deployment among %v", names(objects))
				}
			})
		}
	}
	t.Run("nothing at all", func(t *testing.T) {
		loaded := load(t)
		loaded.Values = map[string]any{}
		render(t, loaded, "")
	})
}

func sections(values map[string]any) []string {
	var result []string
	for name := range values {
		result = append(result, name)
	}
	slices.Sort(result)
	return result
}

func TestValuesAreUsed(t *testing.T) {
	objects := render(t, load(t), `
replicaCount: 2
image: {repository: registry.example/operator, tag: "9.9"}
serviceAccount: {create: false, name: existing}
crds: {upgrade: false}
metrics: {service: {enabled: false}}
`)
	deployment := objects["Deployment/trussium-operator-controller-manager"]
	if replicas, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "replicas"); fmt.Sprint(replicas) != "2" {
		t.Errorf("replicas %v", replicas)
	}
	pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	if pod["serviceAccountName"] != "existing" {
		t.Errorf("service account %v", pod["serviceAccountName"])
	}
	container := pod["containers"].([]any)[0].(map[string]any)
	if container["image"] != "registry.example/operator:9.9" {
		t.Errorf("image %v", container["image"])
	}
	for name := range objects {
		if strings.HasPrefix(name, "ServiceAccount/") || strings.Contains(name, "metrics") {
			t.Errorf("%s is rendered although it is turned off", name)
		}
	}
}

func TestWatchingOneNamespaceGrantsARoleThere(t *testing.T) {
	objects := render(t, load(t), "watchNamespace: inference")
	for _, name := range []string{"Role/trussium-operator-manager-role", "RoleBinding/trussium-operator-manager-rolebinding"} {
		object := objects[name]
		if object == nil || object.GetNamespace() != "inference" {
			t.Errorf("%s is not in the namespace: %v", name, names(objects))
		}
	}
	for name := range objects {
		if strings.HasPrefix(name, "ClusterRole") && strings.Contains(name, "manager-role") {
			t.Errorf("%s is rendered although one namespace is watched", name)
		}
	}
	arguments := managerArguments(t, objects)
	if !slices.Contains(arguments, "--watch-namespace=inference") {
		t.Errorf("arguments %v", arguments)
	}
}

// The charts 1.0.0 to 1.0.4 were published with a role written by hand that lacked two
// kinds, and the operator in them could not start.
func TestTheRoleIsTheOneGeneratedFromTheCode(t *testing.T) {
	generated := &rbacv1.ClusterRole{}
	content, err := os.ReadFile(filepath.Join("trussium-operator", "files", "manager-role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, generated); err != nil {
		t.Fatal(err)
	}
	for values, name := range map[string]string{
		"":                          "ClusterRole/trussium-operator-manager-role",
		"watchNamespace: inference": "Role/trussium-operator-manager-role",
	} {
		rendered := &rbacv1.ClusterRole{}
		object := render(t, load(t), values)[name]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, rendered); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(generated.Rules, rendered.Rules); diff != "" {
			t.Errorf("the rules of %s (-generated +rendered):\n%s", name, diff)
		}
	}
	for _, object := range controller.CachedObjects() {
		kind, err := apiutil.GVKForObject(object, scheme(t))
		if err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		for _, verb := range []string{"get", "list", "watch"} {
			if !slices.ContainsFunc(generated.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.APIGroups, resource.Group) && slices.Contains(rule.Resources, resource.Resource) && slices.Contains(rule.Verbs, verb)
			}) {
				t.Errorf("the operator caches %s and has no right to %s them", resource.GroupResource(), verb)
			}
		}
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return scheme
}

func managerArguments(t *testing.T, objects map[string]*unstructured.Unstructured) []string {
	t.Helper()
	deployment := objects["Deployment/trussium-operator-controller-manager"]
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	arguments, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
	if err != nil {
		t.Fatal(err)
	}
	return arguments
}

func TestServiceMonitorIsOptIn(t *testing.T) {
	const name = "ServiceMonitor/trussium-operator-controller-manager"
	if objects := render(t, load(t), ""); objects[name] != nil {
		t.Errorf("%s is rendered by default", name)
	}
	monitor := render(t, load(t), "metrics: {serviceMonitor: {enabled: true, interval: 10s, insecureSkipVerify: false}}")[name]
	if monitor == nil {
		t.Fatalf("%s is not rendered", name)
	}
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	want := map[string]any{
		"port": "https", "scheme": "https", "path": "/metrics", "interval": "10s",
		"bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
		"tlsConfig":       map[string]any{"insecureSkipVerify": false},
	}
	if diff := cmp.Diff(want, endpoints[0]); diff != "" {
		t.Errorf("endpoint (-want +got):\n%s", diff)
	}
}

// Everything about the upgrade of the CustomResourceDefinition is a hook of the
// upgrade: in a rollback it would downgrade the CustomResourceDefinition.
func TestTheCRDIsUpgradedByAHookOfTheUpgradeAlone(t *testing.T) {
	found := 0
	for name, object := range render(t, load(t), "") {
		if !strings.Contains(name, "crd-upgrade") {
			continue
		}
		found++
		if hook := object.GetAnnotations()["helm.sh/hook"]; hook != "pre-upgrade" {
			t.Errorf("%s is a hook of %q", name, hook)
		}
	}
	if found != 4 {
		t.Errorf("%d objects upgrade the CustomResourceDefinition, want ServiceAccount, ClusterRole, ClusterRoleBinding and Job", found)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, values := range []string{
		"replicaCount: two",
		"image: {pullPolicy: Sometimes}",
		"metrics: {service: {port: 99999}}",
		"imagePullSecrets: [registry]",
	} {
		var parsed map[string]any
		if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
			t.Fatal(err)
		}
		if _, err := chartutil.ToRenderValues(load(t), parsed, chartutil.ReleaseOptions{}, nil); err == nil {
			t.Errorf("%q is accepted", values)
		}
	}
}
