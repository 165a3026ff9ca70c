package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
)

var config *rest.Config

func TestMain(m *testing.M) {
	embeddedtest.Main(m, embedded.Options{}, func(cluster *embedded.Cluster) { config = cluster.RESTConfig() })
}

const digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// archive packages this repository's chart after a change.
func archive(t *testing.T, change func(*chart.Chart)) []byte {
	t.Helper()
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root(working)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loader.LoadDir(filepath.Join(root, artifact.ChartPath))
	if err != nil {
		t.Fatal(err)
	}
	change(loaded)
	file, err := chartutil.Save(loaded, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func objects(t *testing.T, content []byte) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("no YAML: %v\n%s", err, document)
		}
		if len(object.Object) > 0 {
			found = append(found, object)
		}
	}
	return found
}

// TestApply applies the file from top to bottom to an empty API server, as kubectl does, and then again.
func TestApply(t *testing.T) {
	content, err := Install(archive(t, func(*chart.Chart) {}), digest, "1.25.0")
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, object := range objects(t, content) {
			if object.GetAnnotations()["helm.sh/hook"] != "" {
				t.Errorf("%s %s is a hook", object.GetKind(), object.GetName())
			}
			if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("test"), client.ForceOwnership); err != nil {
				t.Fatalf("apply %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	}
	if err := appsv1.AddToScheme(api.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(api.Scheme()); err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "trussium-operator-system", Name: "trussium-operator-controller-manager"}, &deployment); err != nil {
		t.Fatal(err)
	}
	if image := deployment.Spec.Template.Spec.Containers[0].Image; !strings.HasPrefix(image, artifact.OperatorRepository) || !strings.HasSuffix(image, "@"+digest) {
		t.Errorf("got the image %s, want %s by its digest", image, artifact.OperatorRepository)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := api.Get(t.Context(), client.ObjectKey{Name: "trussiumruntimes.runtime.trussium.io"}, &crd); err != nil {
		t.Error(err)
	}
}

// TestImageByDigest renders a chart that has a value for the digest of its image.
func TestImageByDigest(t *testing.T) {
	content, err := Install(archive(t, func(c *chart.Chart) {
		c.Schema = nil
		c.Raw = []*chart.File{{Name: "values.yaml", Data: []byte("image:\n  digest: \"\"\n")}}
		c.Templates = []*chart.File{{Name: "templates/pod.yaml", Data: []byte("kind: Test\nimage: test@{{ .Values.image.digest }}\n")}}
	}), digest, "1.25.0")
	if err != nil || !strings.Contains(string(content), "image: test@"+digest) {
		t.Errorf("got %v\n%s", err, content)
	}
}

func TestErrors(t *testing.T) {
	good := archive(t, func(*chart.Chart) {})
	if _, err := Install([]byte("no archive"), digest, "1.25.0"); err == nil {
		t.Error("no archive: got no error")
	}
	if _, err := Install(good, digest, "latest"); err == nil || !strings.Contains(err.Error(), "latest") {
		t.Errorf("no Kubernetes version: got %v", err)
	}
	if _, err := Install(good, digest, "1.10.0"); err == nil || !strings.Contains(err.Error(), "1.10.0") {
		t.Errorf("a Kubernetes version that the chart does not support: got %v", err)
	}
}
