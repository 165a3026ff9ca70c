// Package helm drives the installed Helm release as a user's commands would. It is the only
// package that touches the Helm SDK, so that another major version can be put behind it.
package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// hookTimeout is the time a single Kubernetes operation (a hook, for example) may take: the
// default of Helm's command line.
const hookTimeout = 5 * time.Minute

// ErrNotFound says that there is no release of that name.
var ErrNotFound = errors.New("release not found")

// Values is how an upgrade treats the values of the installed release, as `helm upgrade` has it.
type Values string

const (
	// DefaultValues is `helm upgrade` with no flag for values.
	DefaultValues Values = "default"
	// ReuseValues is --reuse-values.
	ReuseValues Values = "reuse"
	// ResetThenReuseValues is --reset-then-reuse-values.
	ResetThenReuseValues Values = "reset-then-reuse"
)

// Client drives the releases of one namespace in one cluster.
type Client struct {
	namespace string
	config    *action.Configuration
	registry  *registry.Client
}

// New returns a client for the namespace. Charts are pulled without TLS where plainHTTP says
// so (a registry on loopback). Caches go to dir and nothing else of the user's Helm or kubectl
// settings is read or written. log gets Helm's debug messages.
func New(kubeconfig, namespace, dir string, plainHTTP bool, log func(format string, args ...any)) (*Client, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	flags.Namespace = &namespace
	cache := filepath.Join(dir, "discovery")
	flags.CacheDir = &cache
	config := &action.Configuration{}
	if err := config.Init(flags, namespace, "secret", log); err != nil {
		return nil, fmt.Errorf("set up Helm for namespace %s: %w", namespace, err)
	}
	options := []registry.ClientOption{registry.ClientOptCredentialsFile(filepath.Join(dir, "registry.json"))}
	if plainHTTP {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	registryClient, err := registry.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("set up Helm's registry client: %w", err)
	}
	return &Client{namespace: namespace, config: config, registry: registryClient}, nil
}

// Chart is a chart that was pulled.
type Chart struct {
	// Digest is the digest of the chart's manifest in the registry.
	Digest string
	chart  *chart.Chart
}

// CRDs returns the files of the chart's crds folder.
func (c *Chart) CRDs() [][]byte {
	var files [][]byte
	for _, crd := range c.chart.CRDObjects() {
		files = append(files, crd.File.Data)
	}
	return files
}

// Pull fetches the chart ref (HOST/REPOSITORY:VERSION, without the scheme) from its registry.
func (c *Client) Pull(ref string) (*Chart, error) {
	result, err := c.registry.Pull(ref)
	if err != nil {
		return nil, fmt.Errorf("pull the chart oci://%s: %w", ref, err)
	}
	loaded, err := loader.LoadArchive(bytes.NewReader(result.Chart.Data))
	if err != nil {
		return nil, fmt.Errorf("load the chart oci://%s: %w", ref, err)
	}
	return &Chart{Digest: result.Manifest.Digest, chart: loaded}, nil
}

// Release is one revision of an installed release.
type Release struct {
	Name         string `json:"name"`
	Revision     int    `json:"revision"`
	Status       string `json:"status"`
	ChartVersion string `json:"chartVersion"`
	Manifest     string `json:"manifest"`
}

// Install is `helm install NAME CHART --create-namespace`.
func (c *Client) Install(ctx context.Context, name string, chart *Chart, values map[string]any) (Release, error) {
	install := action.NewInstall(c.config)
	install.ReleaseName = name
	install.Namespace = c.namespace
	install.CreateNamespace = true
	install.Timeout = hookTimeout
	result, err := install.RunWithContext(ctx, chart.chart, values)
	if err != nil {
		return Release{}, fmt.Errorf("helm install %s: %w", name, err)
	}
	return toRelease(result), nil
}

// Upgrade is `helm upgrade NAME CHART`, with the flag that mode stands for.
func (c *Client) Upgrade(ctx context.Context, name string, chart *Chart, mode Values, values map[string]any) (Release, error) {
	upgrade := action.NewUpgrade(c.config)
	upgrade.Namespace = c.namespace
	upgrade.Timeout = hookTimeout
	switch mode {
	case DefaultValues, "":
	case ReuseValues:
		upgrade.ReuseValues = true
	case ResetThenReuseValues:
		upgrade.ResetThenReuseValues = true
	default:
		return Release{}, fmt.Errorf("helm upgrade %s: unknown value mode %q", name, mode)
	}
	result, err := upgrade.RunWithContext(ctx, name, chart.chart, values)
	if err != nil {
		return Release{}, fmt.Errorf("helm upgrade %s: %w", name, err)
	}
	return toRelease(result), nil
}

// Rollback is `helm rollback NAME REVISION`.
func (c *Client) Rollback(name string, revision int) error {
	rollback := action.NewRollback(c.config)
	rollback.Version = revision
	rollback.Timeout = hookTimeout
	if err := rollback.Run(name); err != nil {
		return fmt.Errorf("helm rollback %s %d: %w", name, revision, err)
	}
	return nil
}

// Uninstall is `helm uninstall NAME`.
func (c *Client) Uninstall(name string) error {
	uninstall := action.NewUninstall(c.config)
	uninstall.Timeout = hookTimeout
	if _, err := uninstall.Run(name); err != nil {
		return fmt.Errorf("helm uninstall %s: %w", name, err)
	}
	return nil
}

// Current is the newest revision of the release; ErrNotFound if there is none.
func (c *Client) Current(name string) (Release, error) {
	result, err := action.NewGet(c.config).Run(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return Release{}, fmt.Errorf("helm get %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Release{}, fmt.Errorf("helm get %s: %w", name, err)
	}
	return toRelease(result), nil
}

func toRelease(r *release.Release) Release {
	return Release{
		Name:         r.Name,
		Revision:     r.Version,
		Status:       r.Info.Status.String(),
		ChartVersion: r.Chart.Metadata.Version,
		Manifest:     r.Manifest,
	}
}
