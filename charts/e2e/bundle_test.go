package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
)

// The documented commands, word for word, over an earlier bundle; then again, and with
// server-side apply; then from the bundle to the chart.
func TestBundle(t *testing.T) {
	t.Cleanup(func() { uninstall(t) })
	kubectl(t, "kubectl apply -f testdata/published-bundle.yaml")
	kubectl(t, "kubectl apply -f "+bundleFile)
	verify(t)
	runtime := startRuntime(t)
	verifyRuntime(t, runtime)

	for line := range strings.Lines(kubectl(t, "kubectl apply -f "+bundleFile)) {
		if !strings.HasSuffix(line, " unchanged\n") {
			t.Errorf("applied again: %s", line)
		}
	}
	kubectl(t, "kubectl apply --server-side -f "+bundleFile)
	before := versions(t)
	kubectl(t, "kubectl apply --server-side -f "+bundleFile)
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("applying server-side again changes objects (-before +after):\n%s", diff)
	}
	alive(t, runtime)

	same := identify(t, runtime)
	kubectl(t, "kubectl delete deployment trussium-operator-controller-manager -n trussium-operator-system")
	install(t, load(t, chartDir), "", func(install *action.Install) { install.TakeOwnership = true })
	verify(t)
	alive(t, runtime)
	if diff := cmp.Diff(same, identify(t, runtime)); diff != "" {
		t.Errorf("going from the bundle to the chart touches a runtime (-before +after):\n%s", diff)
	}
}

// Where nothing is installed yet.
func TestBundleServerSideFirst(t *testing.T) {
	t.Cleanup(func() { kubectl(t, "kubectl delete --ignore-not-found --wait -f "+bundleFile) })
	kubectl(t, "kubectl apply --server-side -f "+bundleFile)
	verify(t) // Kubernetes itself writes its annotation of the Deployment before that.
	before := versions(t)
	kubectl(t, "kubectl apply --server-side -f "+bundleFile)
	if diff := cmp.Diff(before, versions(t)); diff != "" {
		t.Errorf("applying server-side again changes objects (-before +after):\n%s", diff)
	}

	kubectl(t, "kubectl delete -f "+bundleFile+" -l app.kubernetes.io/name=trussium-operator")
	read(t, client.ObjectKey{Name: crdName}, &apiextensionsv1.CustomResourceDefinition{})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: deployment}, &appsv1.Deployment{}); !errors.IsNotFound(err) {
		t.Errorf("after the documented deletion, the Deployment: %v", err)
	}
}

// versions are the generations of the bundle's objects, or, of those that have none, their
// resource versions: nobody but kubectl writes them.
func versions(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(bundleFile)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := bundle.Decode(string(content))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, object := range objects {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(object.GroupVersionKind())
		read(t, client.ObjectKeyFromObject(object), live)
		version := "resource version " + live.GetResourceVersion()
		if generation := live.GetGeneration(); generation != 0 {
			version = fmt.Sprint("generation ", generation)
		}
		found[object.GetKind()+" "+object.GetName()] = version
	}
	return found
}

// verify is the documented verification of an installation, an upgrade or a rollback.
func verify(t *testing.T) {
	t.Helper()
	for _, line := range []string{
		"kubectl rollout status deployment/trussium-operator-controller-manager \\\n  -n trussium-operator-system --timeout=180s",
		"kubectl rollout status deployment/trussium-operator-controller-manager -n trussium-operator-system",
	} {
		if output := kubectl(t, line); !strings.Contains(output, "successfully rolled out") {
			t.Errorf("%s: %s", line, output)
		}
	}
}

// verifyRuntime is the documented verification of a runtime.
func verifyRuntime(t *testing.T, key client.ObjectKey) {
	t.Helper()
	names := strings.NewReplacer("<runtime-name>", key.Name, "<runtime-namespace>", key.Namespace)
	for line, want := range map[string]string{
		"kubectl get trussiumruntime <runtime-name> -n <runtime-namespace>":                                                                  key.Name,
		"kubectl get trussiumruntime <runtime-name> -n <runtime-namespace> -o yaml":                                                          "lastSuccessfulImage: ghcr.io/trussiumhq/trussium:" + runtimeTag,
		"kubectl get events -n <runtime-namespace> \\\n  --field-selector involvedObject.name=<runtime-name> \\\n  --sort-by=.lastTimestamp": "RuntimeReady",
	} {
		line = names.Replace(line)
		if output := kubectl(t, line); !strings.Contains(output, want) {
			t.Errorf("%s shows no %q:\n%s", line, want, output)
		}
	}
}
