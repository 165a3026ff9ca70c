package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

const (
	chartDir    = "../trussium-operator"
	bundleFile  = "../install.yaml"
	namespace   = bundle.Namespace
	releaseName = "trussium-operator"
	deployment  = "trussium-operator-controller-manager"
	crdName     = "trussiumruntimes.runtime.trussium.io"
	runtimeTag  = "1.27.0"
)

var (
	cluster *embedded.Cluster
	api     client.Client
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	registry, err := serveImages(context.Background())
	if err != nil {
		giveUp("build the images", err)
	}
	options := embedded.Options{Node: true, Mirrors: registry.Mirrors()}
	embeddedtest.Main(m, options, func(started *embedded.Cluster) {
		cluster = started
		if api, err = connect(); err != nil {
			giveUp("connect to the cluster", err)
		}
	})
}

func giveUp(doing string, err error) {
	fmt.Fprintf(os.Stderr, "e2e: %s: %v\n", doing, err)
	os.Exit(1)
}

// serveImages builds the operator of the checkout and a runtime, and offers them for as long
// as the tests run.
func serveImages(ctx context.Context) (*artifact.Registry, error) {
	places, err := checkout.Find()
	if err != nil {
		return nil, err
	}
	builder := artifact.Builder{
		Repository: places.Repository,
		CacheDir:   places.CacheDir,
		Progress:   func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	operator, err := builder.Checkout(ctx)
	if err != nil {
		return nil, err
	}
	runtime, err := builder.Runtime(ctx, runtimeTag, artifact.VariantNone)
	if err != nil {
		return nil, err
	}
	return artifact.Serve(ctx, operator.Image, runtime)
}

func connect() (client.Client, error) {
	scheme, err := manager.NewScheme()
	if err != nil {
		return nil, err
	}
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config := cluster.RESTConfig()
	config.QPS, config.Burst = -1, -1
	return client.New(config, client.Options{Scheme: scheme})
}
