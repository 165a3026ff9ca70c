// Package operatortest is what the tests of the operator's packages share: an API server
// that knows TrussiumRuntimes, and waits on what a running operator does to them.
package operatortest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/operator/crds"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

// Main runs a package's tests with an embedded cluster that has the CRD of the checkout.
// It hands over an administrator's access, not limited in its rate.
func Main(m *testing.M, options embedded.Options, use func(*rest.Config, client.Client)) {
	log.SetLogger(logr.Discard())
	embeddedtest.Main(m, options, func(cluster *embedded.Cluster) {
		config := rest.CopyConfig(cluster.RESTConfig())
		config.QPS, config.Burst = -1, -1
		api, err := prepare(config)
		if err != nil {
			fmt.Fprintln(os.Stderr, "prepare the cluster:", err)
			os.Exit(1)
		}
		use(config, api)
	})
}

func prepare(config *rest.Config) (client.Client, error) {
	scheme, err := manager.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	_, err = crds.Apply(context.Background(), config)
	return api, err
}

// Namespace makes a namespace for one test.
func Namespace(t *testing.T, api client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := api.Create(t.Context(), namespace); err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	return namespace.Name
}
