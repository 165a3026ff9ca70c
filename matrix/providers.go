package matrix

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
)

// provider is a cluster provider and what the matrix needs of it besides clusters.
type provider struct {
	clusters cluster.Provider
	// available are the Kubernetes versions it can run.
	available []string
	// prepare gets ready to start clusters of a version, and returns the content key of what
	// will run the control plane.
	prepare func(ctx context.Context, kubernetes string, progress func(string)) (string, error)
	// attach finds the cluster that an earlier run left in a folder.
	attach func(ctx context.Context, dir string) (cluster.Cluster, error)
}

// Providers are the names of the cluster providers.
var Providers = []string{embedded.ProviderName}

func (o Options) provider() (provider, error) {
	if !slices.Contains(Providers, o.Provider) {
		return provider{}, fmt.Errorf("there is no provider %q: use one of %s", o.Provider, strings.Join(Providers, ", "))
	}
	return provider{
		clusters:  embedded.Provider{Repository: o.Repository, CacheDir: o.CacheDir},
		available: embedded.KubernetesVersions(),
		prepare: func(ctx context.Context, kubernetes string, progress func(string)) (string, error) {
			if err := embedded.Preflight(ctx, true); err != nil {
				return "", err // before a build that takes minutes
			}
			_, key, err := embedded.Build(ctx, o.Repository, o.CacheDir, kubernetes, progress)
			return key, err
		},
		attach: func(ctx context.Context, dir string) (cluster.Cluster, error) {
			live, err := embedded.Attach(ctx, dir)
			if err != nil {
				return nil, err // not a nil *embedded.Cluster in an interface
			}
			return live, nil
		},
	}, nil
}
