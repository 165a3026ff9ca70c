package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
)

// provider is a cluster provider and what the matrix needs of it besides clusters.
type provider struct {
	clusters cluster.Provider
	// available are the Kubernetes versions it can run.
	available []string
	// standard is the version of a cluster that asks for none.
	standard string
	// prepare gets ready to start clusters of a version, and returns the content key of what
	// will run the control plane.
	prepare func(ctx context.Context, kubernetes string, progress func(string)) (string, error)
	// attach finds the cluster that an earlier run left in a folder.
	attach func(ctx context.Context, dir string) (cluster.Cluster, error)
	// realContainers tells that a container runtime makes the containers; see cluster.Info.
	realContainers bool
}

// Providers are the names of the cluster providers.
var Providers = []string{embedded.ProviderName, kind.ProviderName}

func (o Options) provider() (provider, error) {
	switch o.Provider {
	case embedded.ProviderName:
		return o.embedded(), nil
	case kind.ProviderName:
		return o.kind(), nil
	default:
		return provider{}, fmt.Errorf("there is no provider %q: use one of %s", o.Provider, strings.Join(Providers, ", "))
	}
}

func (o Options) embedded() provider {
	return provider{
		clusters:  embedded.Provider{Repository: o.tools(), CacheDir: o.CacheDir},
		available: embedded.KubernetesVersions(),
		standard:  embedded.DefaultKubernetes,
		prepare: func(ctx context.Context, kubernetes string, progress func(string)) (string, error) {
			if err := embedded.Preflight(ctx, true); err != nil {
				return "", err // before a build that takes minutes
			}
			_, key, err := embedded.Build(ctx, o.tools(), o.CacheDir, kubernetes, progress)
			return key, err
		},
		attach: func(ctx context.Context, dir string) (cluster.Cluster, error) {
			live, err := embedded.Attach(ctx, dir)
			if err != nil {
				return nil, err // not a nil *embedded.Cluster in an interface
			}
			return live, nil
		},
	}
}

func (o Options) kind() provider {
	return provider{
		clusters:  kind.Provider{Repository: o.tools(), CacheDir: o.CacheDir},
		available: kind.KubernetesVersions(),
		standard:  kind.DefaultKubernetes,
		prepare: func(ctx context.Context, kubernetes string, progress func(string)) (string, error) {
			return kind.Prepare(ctx, kind.Source{Repository: o.tools(), CacheDir: o.CacheDir, Kubernetes: kubernetes, Progress: progress})
		},
		attach: func(ctx context.Context, dir string) (cluster.Cluster, error) {
			live, err := kind.Attach(ctx, dir)
			if err != nil {
				return nil, err
			}
			return live, nil
		},
		realContainers: true,
	}
}

// ErrNoCluster says that no cluster of any provider is running in a folder.
var ErrNoCluster = errors.New("no cluster is running")

// Attach finds the cluster that an earlier run left in a folder, whatever provider made it.
func Attach(ctx context.Context, dir string) (cluster.Cluster, error) {
	for _, name := range slices.Sorted(slices.Values(Providers)) {
		provider, err := Options{Provider: name}.provider()
		if err != nil {
			return nil, err
		}
		live, err := provider.attach(ctx, dir)
		if err == nil {
			return live, nil
		}
		if !errors.Is(err, embedded.ErrNotRunning) && !errors.Is(err, kind.ErrNotRunning) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w in %s", ErrNoCluster, dir)
}

// PrepareCluster gets ready to start clusters of a Kubernetes version, empty for the provider's
// default, and returns what identifies what will run the control plane.
func PrepareCluster(ctx context.Context, o Options, kubernetes string, progress func(string)) (string, error) {
	provider, err := o.provider()
	if err != nil {
		return "", inputError(err)
	}
	if kubernetes == "" {
		kubernetes = provider.standard
	}
	return provider.prepare(ctx, kubernetes, progress)
}

// Clusters starts clusters of the provider of the options, with the programs of the bundle unless that is nil.
func (o Options) Clusters(bundle *artifact.Bundle) (cluster.Provider, error) {
	provider, err := o.provider()
	if err != nil {
		return nil, inputError(err)
	}
	if bundle != nil {
		return o.bundledClusters(bundle), nil
	}
	return provider.clusters, nil
}
