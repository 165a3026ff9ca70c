package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/operator/cli"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

func TestDefaultInstallation(t *testing.T) {
	loaded := load(t)
	objects := render(t, loaded, "")
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
	if diff := cmp.Diff(want, names(installed(objects))); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}

	deployment := objects[deploymentName]
	selector, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "selector", "matchLabels")
	// Selectors are immutable: published releases chose this one.
	wantSelector := map[string]string{
		"app.kubernetes.io/name":     "trussium-operator",
		"app.kubernetes.io/instance": "trussium-operator",
	}
	if diff := cmp.Diff(wantSelector, selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	if loaded.Metadata.Version != loaded.Metadata.AppVersion {
		t.Errorf("chart %s carries operator %s", loaded.Metadata.Version, loaded.Metadata.AppVersion)
	}
	for name, template := range podTemplates(t, objects) {
		if image, want := container(t, template)["image"], "ghcr.io/trussiumhq/trussium-operator:"+loaded.Metadata.AppVersion; image != want {
			t.Errorf("%s runs %v, want %s", name, image, want)
		}
	}
}

func TestLint(t *testing.T) {
	lint := action.NewLint()
	lint.Strict = true
	for _, values := range []string{"", "{watchNamespace: inference, metrics: {serviceMonitor: {enabled: true}}, podDisruptionBudget: {enabled: true}}"} {
		result := lint.Run([]string{chartDir}, parse(t, values))
		for _, message := range result.Messages {
			t.Log(message)
		}
		if len(result.Errors) > 0 || slices.ContainsFunc(result.Messages, func(m support.Message) bool { return m.Severity >= support.WarningSev }) {
			t.Errorf("helm lint --strict with the values %q: %v", values, result.Errors)
		}
	}
}

// What a Pod of the chart runs must be a command of the operator that the chart belongs to.
func TestTheOperatorHasTheCommandsOfTheChart(t *testing.T) {
	values := "{watchNamespace: inference, logLevel: DEBUG, metrics: {service: {enabled: false}}}"
	for name, template := range podTemplates(t, render(t, load(t), values)) {
		arguments, _, err := unstructured.NestedStringSlice(container(t, template), "args")
		if err != nil {
			t.Fatal(err)
		}
		usage := "manager "
		for _, argument := range arguments {
			if !strings.HasPrefix(argument, "-") {
				usage += argument + " "
			}
		}
		var stdout, stderr strings.Builder
		if code := cli.Run(append(arguments, "--help"), &stdout, &stderr); code != 0 || !strings.Contains(stdout.String(), usage+"[flags]") {
			t.Errorf("%s runs %v: code %d\n%s%s", name, arguments, code, &stderr, &stdout)
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

// Somebody with rights in a few namespaces can install the operator.
func TestAnInstallationWithoutRightsInTheCluster(t *testing.T) {
	objects := render(t, load(t), "{watchNamespace: inference, crds: {upgrade: false}, metrics: {service: {enabled: false}}}")
	for name, object := range objects {
		if object.GetNamespace() == "" {
			t.Errorf("%s is in no namespace", name)
		}
	}
	if objects[deploymentName] == nil {
		t.Errorf("no Deployment among %v", names(objects))
	}
}

// The charts 1.0.0 to 1.0.4 were published with a role written by hand that lacked two
// kinds, and the operator in them could not start.
func TestTheRoleIsTheOneGeneratedFromTheCode(t *testing.T) {
	generated := &rbacv1.ClusterRole{}
	content, err := os.ReadFile(filepath.Join(chartDir, "files", "manager-role.yaml"))
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
	// Asked for in vain: the notes say so.
	notes := renderRelease(t, load(t), "metrics: {service: {enabled: false}, serviceMonitor: {enabled: true}}").Info.Notes
	if !strings.Contains(notes, "no ServiceMonitor") {
		t.Errorf("notes:\n%s", notes)
	}
}

// Everything about the upgrade of the CustomResourceDefinition is a hook of the
// upgrade: in a rollback it would downgrade the CustomResourceDefinition. What a failed
// attempt has left must not be in the way of the next one.
func TestTheCRDIsUpgradedByAHookOfTheUpgradeAlone(t *testing.T) {
	rendered := renderRelease(t, load(t), "")
	found := map[string]int{}
	for _, hook := range rendered.Hooks {
		if !strings.Contains(hook.Name, "crd-upgrade") {
			continue
		}
		found[hook.Kind] = hook.Weight
		if diff := cmp.Diff([]release.HookEvent{release.HookPreUpgrade}, hook.Events); diff != "" {
			t.Errorf("events of %s (-want +got):\n%s", hook.Kind, diff)
		}
		if diff := cmp.Diff([]release.HookDeletePolicy{release.HookBeforeHookCreation, release.HookSucceeded}, hook.DeletePolicies); diff != "" {
			t.Errorf("deletion of %s (-want +got):\n%s", hook.Kind, diff)
		}
	}
	want := map[string]int{"ServiceAccount": -10, "ClusterRole": -10, "ClusterRoleBinding": -10, "Job": 0}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("hooks and their weights (-want +got):\n%s", diff)
	}
	// A CustomResourceDefinition among the templates would be deleted by a rollback, and every runtime with it.
	for name, object := range objectsOf(t, rendered) {
		if object.GetKind() == "CustomResourceDefinition" {
			t.Errorf("%s is rendered", name)
		}
	}
}

// The Service, the PodDisruptionBudget and the Deployment select by labels: only the
// operator's Pods may have them.
func TestOnlyTheOperatorsPodsAreSelected(t *testing.T) {
	values := "{commonLabels: {app.kubernetes.io/name: mine}, podLabels: {app.kubernetes.io/instance: mine}, podDisruptionBudget: {enabled: true}}"
	for _, values := range []string{"", values} {
		objects := render(t, load(t), values)
		selector, _, _ := unstructured.NestedStringMap(objects[deploymentName].Object, "spec", "selector", "matchLabels")
		for name, template := range podTemplates(t, objects) {
			labels, _, _ := unstructured.NestedStringMap(template, "metadata", "labels")
			if selected := contains(labels, selector); selected != (name == deploymentName) {
				t.Errorf("the Pod of %s has the labels %v, selected are %v", name, labels, selector)
			}
		}
		if got, _, _ := unstructured.NestedStringMap(objects["Service/trussium-operator-controller-manager-metrics"].Object, "spec", "selector"); !cmp.Equal(got, selector) {
			t.Errorf("the Service selects %v, the Deployment %v", got, selector)
		}
		if budget := objects["PodDisruptionBudget/trussium-operator-controller-manager"]; budget != nil {
			if got, _, _ := unstructured.NestedStringMap(budget.Object, "spec", "selector", "matchLabels"); !cmp.Equal(got, selector) {
				t.Errorf("the PodDisruptionBudget selects %v, the Deployment %v", got, selector)
			}
		}
	}
}

func contains(labels, selector map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

// A constraint that selects nothing spreads nothing.
func TestTopologySpreadSelectsTheOperatorsPods(t *testing.T) {
	constraints := func(values string) any {
		t.Helper()
		template := podTemplates(t, render(t, load(t), values))[deploymentName]
		found, _, _ := unstructured.NestedSlice(template, "spec", "topologySpreadConstraints")
		return found
	}
	own := map[string]any{"matchLabels": map[string]any{"app.kubernetes.io/name": "trussium-operator", "app.kubernetes.io/instance": "trussium-operator"}}
	other := map[string]any{"matchLabels": map[string]any{"team": "blue"}}
	got := constraints(`
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
- {maxSkew: 2, topologyKey: host, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {team: blue}}}`)
	want := []any{
		map[string]any{"maxSkew": int64(1), "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": own},
		map[string]any{"maxSkew": int64(2), "topologyKey": "host", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": other},
	}
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Errorf("constraints (-want +got):\n%s", diff)
	}
}

// The names and labels of objects are text, whatever they look like.
func TestUnusualReleaseNames(t *testing.T) {
	long := strings.Repeat("long-", 10) + "x"
	for name, values := range map[string]string{"123": "", "true": "", "1e3": "", long: "", "short": "fullnameOverride: " + long} {
		client := action.NewInstall(helm())
		client.ReleaseName, client.Namespace = name, namespace
		rendered, err := client.Run(load(t), parse(t, values))
		if err != nil {
			t.Fatal(err)
		}
		for key, object := range objectsOf(t, rendered) {
			if _, _, err := unstructured.NestedStringMap(object.Object, "metadata", "labels"); err != nil {
				t.Errorf("release %s: %s: %v", name, key, err)
			}
			if isLabel := !strings.HasPrefix(object.GetAPIVersion(), rbacv1.GroupName); isLabel && len(object.GetName()) > 63 {
				t.Errorf("release %s: the name of %s has %d characters", name, key, len(object.GetName()))
			}
		}
	}
}

// The commands of the documented verification, with the names of this release.
func TestNotes(t *testing.T) {
	notes := renderRelease(t, load(t), "").Info.Notes
	for _, command := range []string{
		"kubectl rollout status deployment/trussium-operator-controller-manager \\\n    -n trussium-operator-system --timeout=180s",
		"helm test trussium-operator -n trussium-operator-system --logs",
		"kubectl get trussiumruntime <runtime-name> -n <runtime-namespace>\n",
		"kubectl get trussiumruntime <runtime-name> -n <runtime-namespace> -o yaml",
		"kubectl get events -n <runtime-namespace> \\\n    --field-selector involvedObject.name=<runtime-name> \\\n    --sort-by=.lastTimestamp",
		"kubectl port-forward svc/<runtime-name> 9000:9000 -n <runtime-namespace>",
		"curl -fsS http://127.0.0.1:9000/health/live",
		"curl -i http://127.0.0.1:9000/health/ready",
		"curl -sS http://127.0.0.1:9000/v1/capabilities/availability",
		"kind: TrussiumRuntime",
	} {
		if !strings.Contains(notes, command) {
			t.Errorf("the notes lack %q:\n%s", command, notes)
		}
	}
	if notes := renderRelease(t, load(t), "crds: {upgrade: false}").Info.Notes; !strings.Contains(notes, "helm show crds") {
		t.Errorf("the notes do not say how the CustomResourceDefinition is upgraded by hand:\n%s", notes)
	}
}

// What Artifact Hub shows must be true of the chart.
func TestArtifactHub(t *testing.T) {
	loaded := load(t)
	var listed []struct{ Kind, Version, Name, DisplayName, Description string }
	if err := yaml.UnmarshalStrict([]byte(loaded.Metadata.Annotations["artifacthub.io/crds"]), &listed); err != nil {
		t.Fatal(err)
	}
	definitions := loaded.CRDObjects()
	if len(listed) != len(definitions) {
		t.Fatalf("%d CustomResourceDefinitions are listed, the chart has %d", len(listed), len(definitions))
	}
	for i, definition := range definitions {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(definition.File.Data, &object.Object); err != nil {
			t.Fatal(err)
		}
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		version := versions[0].(map[string]any)["name"]
		if got := listed[i]; got.Name != object.GetName() || got.Kind != kind || got.Version != version || got.DisplayName == "" || got.Description == "" {
			t.Errorf("listed is %+v, the chart has %s %s %s", got, object.GetName(), kind, version)
		}
	}
}
