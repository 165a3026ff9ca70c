package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/operator/crds"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// A release's life: installed where Pod Security is restricted, tested, upgraded with a hook
// that can't run, upgraded, rolled back, upgraded again, uninstalled.
func TestChart(t *testing.T) {
	t.Cleanup(func() { uninstall(t) })
	restrict(t, namespace)
	intruder := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "intruder"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "any"}}},
	}
	if err := api.Create(t.Context(), intruder); err == nil || !strings.Contains(err.Error(), "restricted") {
		t.Fatalf("the namespace admits any Pod: %v", err)
	}
	chart := load(t, chartDir)
	install(t, chart, "")
	verify(t)
	helmTest(t)
	runtime := startRuntime(t)
	same := identify(t, runtime)
	old := operatorDeployment(t)

	err := tryUpgrade(t, chart, "image: {tag: does-not-exist}", func(upgrade *action.Upgrade) { upgrade.Timeout = 10 * time.Second })
	if err == nil || !strings.Contains(err.Error(), "pre-upgrade hooks failed") {
		t.Fatalf("the upgrade with a hook that can't run gives %v", err)
	}
	if got := releaseStatus(t); got != release.StatusFailed {
		t.Errorf("the release is %s, want %s", got, release.StatusFailed)
	}
	if now := operatorDeployment(t); now.UID != old.UID || now.Generation != old.Generation || now.Status.AvailableReplicas != 1 {
		t.Errorf("the old operator was touched: generation %d, was %d; %d available", now.Generation, old.Generation, now.Status.AvailableReplicas)
	}
	alive(t, runtime)

	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the upgrade after the failed one", func() { upgrade(t, chart, "logLevel: DEBUG") }},
		{"the rollback", func() { rollBack(t, 1) }},
		{"the second upgrade", func() { upgrade(t, chart, "logLevel: DEBUG") }},
	} {
		step.do()
		verify(t)
		helmTest(t)
		alive(t, runtime)
		// The runtime itself is changed by alive; its workload and the API are not.
		if diff := cmp.Diff(same, identify(t, runtime)); diff != "" {
			t.Errorf("%s touches a runtime (-before +after):\n%s", step.name, diff)
		}
		if left := hooks(t); len(left) > 0 {
			t.Errorf("%s leaves %v", step.name, left)
		}
	}

	uninstall(t)
	if diff := cmp.Diff(same, identify(t, runtime)); diff != "" {
		t.Errorf("uninstalling touches a runtime (-before +after):\n%s", diff)
	}
}

// restrict lets a namespace, which it makes if need be, admit only Pods of the Pod Security
// Standard "restricted".
func restrict(t *testing.T, name string) {
	t.Helper()
	err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	kubectl(t, "kubectl label --overwrite namespace "+name+" pod-security.kubernetes.io/enforce=restricted")
}

// hooks are what the hook of an upgrade has left.
func hooks(t *testing.T) []string {
	t.Helper()
	const name = "trussium-operator-crd-upgrade"
	var left []string
	for _, object := range []client.Object{&batchv1.Job{}, &corev1.ServiceAccount{}, &rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
		if err == nil {
			left = append(left, fmt.Sprintf("%T", object))
		} else if !errors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	return left
}

// From every release, back, and forward again, with the hook and with the old release's values in the place of the
// defaults. What the modes of values render is tested without a cluster; here the API server judges.
func TestUpgradeFromEveryReleaseAndBack(t *testing.T) {
	file, err := compat.Load("../../compatibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, earlier := range file.OperatorReleases {
		t.Run(earlier.Version, func(t *testing.T) {
			dir := t.TempDir()
			if err := (git.Repository{Dir: "../.."}).Extract(t.Context(), earlier.Commit, dir); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { uninstall(t) })
			kubectl(t, "kubectl delete --ignore-not-found crd "+crdName) // else Helm keeps that of an earlier test
			// No image of the earlier release runs here; the hook's is the checkout's.
			install(t, load(t, filepath.Join(dir, "charts", "trussium-operator")), "replicaCount: 0")
			key := createRuntime(t, operatortest.Namespace(t, api))
			same, old := kept(t, key), operatorDeployment(t)
			forward := func() {
				t.Helper()
				upgrade(t, load(t, chartDir), "", func(upgrade *action.Upgrade) { upgrade.ReuseValues = true })
				if now := operatorDeployment(t); now.UID != old.UID || cmp.Equal(now.Spec, old.Spec) {
					t.Errorf("the upgrade replaces the Deployment, or does nothing: %s, was %s", now.UID, old.UID)
				}
				if diff := cmp.Diff(chartVersions(t), definedVersions(t)); diff != "" {
					t.Errorf("the hook left another CustomResourceDefinition than the chart's (-chart +cluster):\n%s", diff)
				}
				if diff := cmp.Diff(same, kept(t, key)); diff != "" {
					t.Errorf("the upgrade touches what must be kept (-before +after):\n%s", diff)
				}
				if left := hooks(t); len(left) > 0 {
					t.Errorf("the upgrade leaves %v", left)
				}
			}

			forward()
			rollBack(t, 1)
			if now := operatorDeployment(t); now.UID != old.UID || !cmp.Equal(now.Spec, old.Spec) {
				t.Errorf("the rollback leaves another Deployment (-before +after):\n%s", cmp.Diff(old.Spec, now.Spec))
			}
			if diff := cmp.Diff(same, kept(t, key)); diff != "" {
				t.Errorf("the rollback touches what must be kept (-before +after):\n%s", diff)
			}
			forward()
		})
	}
}

// keptObjects are the API and an object of it, which no upgrade or rollback of the chart may replace or change.
type keptObjects struct {
	Definition, Runtime types.UID
	Spec                v1alpha1.TrussiumRuntimeSpec
}

func kept(t *testing.T, key client.ObjectKey) keptObjects {
	t.Helper()
	definition, runtime := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.TrussiumRuntime{}
	read(t, client.ObjectKey{Name: crdName}, definition)
	read(t, key, runtime)
	return keptObjects{definition.UID, runtime.UID, runtime.Spec}
}

// chartVersions are the versions of the API that the chart brings.
func chartVersions(t *testing.T) []apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	embedded, err := crds.Embedded()
	if err != nil || len(embedded) != 1 {
		t.Fatalf("the chart has %d CustomResourceDefinitions: %v", len(embedded), err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(embedded[0].Object, definition); err != nil {
		t.Fatal(err)
	}
	return definition.Spec.Versions
}

// definedVersions are the versions of the API as the cluster has them.
func definedVersions(t *testing.T) []apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	read(t, client.ObjectKey{Name: crdName}, definition)
	return definition.Spec.Versions
}

// The example that Artifact Hub shows, and the one in the notes.
func TestExamplesAreValid(t *testing.T) {
	t.Cleanup(func() { uninstall(t) })
	chart := load(t, chartDir)
	install(t, chart, "replicaCount: 0")
	var examples []map[string]any
	if err := yaml.Unmarshal([]byte(chart.Metadata.Annotations["artifacthub.io/crdsExamples"]), &examples); err != nil {
		t.Fatal(err)
	}
	installed, err := action.NewGet(helm(t)).Run(releaseName)
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(installed.Info.Notes, "A first TrussiumRuntime:\n")
	example, _, _ = strings.Cut(example, "\n\nEvery upgrade")
	var inNotes map[string]any
	if err := yaml.Unmarshal([]byte(example), &inNotes); err != nil {
		t.Fatalf("%v in\n%s", err, example)
	}
	strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
	for _, example := range append(examples, inNotes) {
		object := &unstructured.Unstructured{Object: example}
		object.SetNamespace(operatortest.Namespace(t, api))
		if err := strict.Create(context.Background(), object); err != nil {
			t.Error(err)
		}
	}
	if len(examples) == 0 {
		t.Error("there is no example")
	}
}
