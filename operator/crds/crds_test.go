package crds_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/operator/crds"
)

const name = "trussiumruntimes.runtime.trussium.io"

var restConfig *rest.Config

func TestMain(m *testing.M) {
	embeddedtest.Main(m, embedded.Options{}, func(cluster *embedded.Cluster) { restConfig = cluster.RESTConfig() })
}

// Helm creates the CustomResourceDefinition of an old chart with a plain create; a
// newer operator brings it up to date, and applying it again changes nothing.
func TestApplyUpdatesWhatHelmHasInstalled(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	embeddedDefinitions, err := crds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	old := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(embeddedDefinitions[0].Object, old); err != nil {
		t.Fatal(err)
	}
	status := old.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	delete(status.Properties, "lastSuccessfulImage")
	old.Spec.Versions[0].AdditionalPrinterColumns = nil
	if err := api.Create(t.Context(), old, client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}

	read := func() *apiextensionsv1.CustomResourceDefinition {
		t.Helper()
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(t.Context(), client.ObjectKey{Name: name}, definition); err != nil {
			t.Fatal(err)
		}
		return definition
	}
	for range 2 {
		names, err := crds.Apply(t.Context(), restConfig)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) != 1 || names[0] != name {
			t.Errorf("applied %v, want %s", names, name)
		}
	}
	first := read()
	if _, found := first.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["lastSuccessfulImage"]; !found {
		t.Error("the newer field is not served")
	}
	if len(first.Spec.Versions[0].AdditionalPrinterColumns) == 0 {
		t.Error("the printer columns are missing")
	}
	if first.UID != old.UID {
		t.Error("the CustomResourceDefinition was replaced, and every runtime with it")
	}
	if _, err := crds.Apply(t.Context(), restConfig); err != nil {
		t.Fatal(err)
	}
	if again := read(); again.Generation != first.Generation {
		t.Errorf("applying the same again moved the generation from %d to %d", first.Generation, again.Generation)
	}
}
