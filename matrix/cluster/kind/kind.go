package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

// ProviderName is the provider's name on the command line and in evidence.
const ProviderName = "kind"

// Provider starts clusters on the container engine of this machine.
type Provider struct {
	// Repository is the root of the checkout.
	Repository string
	// CacheDir is the matrix's folder in the user's cache, which keeps node images.
	CacheDir string
}

var _ cluster.Provider = Provider{}

// Name returns ProviderName.
func (p Provider) Name() string { return ProviderName }

// Start starts a cluster of one node, with the wanted images in it. Without Retain it ends with
// this process, however that ends.
func (p Provider) Start(ctx context.Context, spec cluster.Spec) (cluster.Cluster, error) {
	c, err := p.start(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("start the Kind cluster: %w", err)
	}
	return c, nil
}

func (p Provider) start(ctx context.Context, spec cluster.Spec) (*Cluster, error) {
	e, err := readyEngine(ctx)
	if err != nil {
		return nil, err
	}
	if spec.Kubernetes == "" {
		spec.Kubernetes = DefaultKubernetes
	}
	source := Source{Repository: p.Repository, CacheDir: p.CacheDir, Kubernetes: spec.Kubernetes, Progress: spec.Progress}
	image, err := source.ensure(ctx, e)
	if err != nil {
		return nil, err
	}
	host, err := detectHost(ctx, e)
	if err != nil {
		return nil, err
	}
	c, err := p.newCluster(e, spec)
	if err != nil {
		return nil, err
	}
	c.state.Kubernetes, c.state.Control, c.state.Limits = spec.Kubernetes, image.control, append(image.limits, host.limits()...)
	if err := c.create(ctx, image.ref, host); err != nil {
		return nil, err
	}
	if err := c.fill(ctx, spec); err != nil {
		return nil, errors.Join(err, c.Stop(ctx))
	}
	return c, nil
}

// newCluster prepares the folder of a cluster.
func (p Provider) newCluster(e engine, spec cluster.Spec) (*Cluster, error) {
	dir, err := filepath.Abs(spec.Dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, state: state{Name: clusterName(dir), Engine: e, Cache: p.CacheDir, Retain: spec.Retain}}
	c.kind = kindcluster.NewProvider(e.option(), kindcluster.ProviderWithLogger(progressLog{spec.Progress}))
	c.network = ownNetwork(e, p.CacheDir)
	return c, nil
}

// clusterName is the same for the same folder, so that a later start there finds what an earlier
// one left behind. It is short: nodes are named after it.
func clusterName(dir string) string {
	return "trussium-" + contentkey.Of(map[string]string{"dir": dir})[:10]
}
