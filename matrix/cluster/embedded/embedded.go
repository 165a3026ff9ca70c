package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
)

// ProviderName is the provider's name on the command line and in evidence.
const ProviderName = "embedded"

// Provider starts embedded clusters with a node.
type Provider struct {
	// Repository is the root of the checkout. Empty: the one the working directory is in.
	Repository string
	// CacheDir keeps the built binary. Empty: trussium-matrix in the user's cache folder.
	CacheDir string
	// Programs are binaries that are there already, by their Kubernetes version; others are built.
	Programs map[string]Program
}

// Program is a binary of the embedded cluster, as Build returns it.
type Program struct{ Path, Key string }

var _ cluster.Provider = Provider{}

// Name returns ProviderName.
func (p Provider) Name() string { return ProviderName }

// Start starts a cluster with a node; see Start of the package.
func (p Provider) Start(ctx context.Context, spec cluster.Spec) (cluster.Cluster, error) {
	c, err := Start(ctx, Options{
		Repository: p.Repository,
		CacheDir:   p.CacheDir,
		Dir:        spec.Dir,
		Kubernetes: spec.Kubernetes,
		Program:    p.Programs[cmp.Or(spec.Kubernetes, DefaultKubernetes)],
		Node:       true,
		Mirrors:    spec.Mirrors,
		Retain:     spec.Retain,
		Progress:   spec.Progress,
	})
	if err != nil {
		return nil, err // a nil *Cluster in the interface would not be nil
	}
	return c, nil
}

// Options describe an embedded cluster. The zero value is an API server without a node.
type Options struct {
	// Repository is the root of the checkout. Empty: the one the working directory is in.
	Repository string
	// CacheDir keeps the built binary. Empty: trussium-matrix in the user's cache folder.
	CacheDir string
	// Dir is the folder for state and logs. Empty: a temporary one. It is removed when the
	// cluster ends, unless Keep is set; so it must be missing, empty, or left by a former
	// cluster.
	Dir string
	// Keep leaves Dir, with all logs, when the cluster ends.
	Keep bool
	// Kubernetes is one of KubernetesVersions. Empty: DefaultKubernetes.
	Kubernetes string
	// Program is the binary of that version. Empty: it is built.
	Program Program
	// Node adds the controllers, the scheduler and a node that runs pods.
	Node bool
	// Mirrors maps a registry host to the base URL that serves it instead, such as
	// "ghcr.io" to "http://127.0.0.1:5001". Only a cluster with a node pulls images.
	Mirrors map[string]string
	// APIServerArgs are arguments added to the API server's own.
	APIServerArgs []string
	// ControllerManagerArgs are arguments added to the controller manager's own. A cluster
	// without a node runs the controller manager only if there are any, for example
	// "--controllers=garbage-collector-controller".
	ControllerManagerArgs []string
	// Retain lets the cluster outlive this process; see Attach.
	Retain bool
	// Progress receives one line of text for each step of a long build. May be nil.
	Progress func(string)
}

// Cluster is a running embedded cluster.
type Cluster struct {
	dir    string
	status status
	config *rest.Config
	handle *handle
}

var _ cluster.Cluster = (*Cluster)(nil)

// Start builds the binary if the cache has none, starts a cluster, and returns when the
// API server answers and, if there is a node, when it is ready for pods. If ctx ends before
// that, everything that was started is stopped. The error of a cluster that does not come
// up carries the end of the failing component's log.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := Preflight(ctx, o.Node); err != nil {
		return nil, err
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	binary, key := o.Program.Path, o.Program.Key
	if binary == "" {
		if binary, key, err = Build(ctx, o.Repository, o.CacheDir, o.Kubernetes, o.Progress); err != nil {
			return nil, err
		}
	}
	if o.Dir, err = absoluteDir(o.Dir); err != nil {
		return nil, fmt.Errorf("start the embedded cluster: %w", err)
	}
	if running, err := Attach(ctx, o.Dir); err == nil {
		running.handle.release()
		return nil, fmt.Errorf("start the embedded cluster: one is already running in %s: stop it first (matrix cluster down)", o.Dir)
	}
	folder, err := claim(ctx, o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start the embedded cluster: %w", err)
	}
	defer folder.Close() // the cluster has it from then on
	if err := prepareDir(o.Dir); err != nil {
		return nil, fmt.Errorf("start the embedded cluster: %w", err)
	}
	h, s, err := launch(ctx, binary, arguments(o, key), o, folder)
	if err != nil {
		_ = os.RemoveAll(o.Dir) // the error holds the end of the logs
		return nil, fmt.Errorf("start the embedded cluster: %w", err)
	}
	c, err := newCluster(o.Dir, s, h)
	if err != nil {
		return nil, errors.Join(err, h.stop(ctx))
	}
	return c, nil
}

// absoluteDir is the state folder's path; without a name it is a new temporary folder.
func absoluteDir(dir string) (string, error) {
	if dir == "" {
		return os.MkdirTemp("", "embedded-cluster-")
	}
	return filepath.Abs(dir)
}

// marker is a file that makes a folder known as the state of an embedded cluster, which may
// be deleted; tools/controlplane refuses any other folder that is not empty.
const marker = ".embedded-cluster"

// prepareDir empties the state folder: what a cluster that was killed has left there belongs to its
// keys and is of no use to another one. The folder itself stays, for it is locked.
func prepareDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return fmt.Errorf("%s is neither empty nor the state of an embedded cluster: choose another folder, this one would be deleted with the cluster", dir)
		}
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return fmt.Errorf("remove the state of a former cluster: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o600)
}

// arguments are the command line of the binary.
func arguments(o Options, key string) []string {
	arguments := []string{"up", "--dir=" + o.Dir, "--control=" + key}
	if o.Node {
		arguments = append(arguments, "--node")
	}
	if o.Keep {
		arguments = append(arguments, "--keep")
	}
	for host, base := range o.Mirrors {
		arguments = append(arguments, "--mirror="+host+"="+base)
	}
	for _, argument := range o.APIServerArgs {
		arguments = append(arguments, "--apiserver-arg="+argument)
	}
	for _, argument := range o.ControllerManagerArgs {
		arguments = append(arguments, "--controller-manager-arg="+argument)
	}
	return arguments
}

// ErrNotRunning says that there is no running cluster to attach to.
var ErrNotRunning = errors.New("no embedded cluster is running")

// Attach connects to a running cluster by its state folder. The error is ErrNotRunning if
// there is none, whatever the folder holds.
func Attach(ctx context.Context, dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("attach to the embedded cluster: %w", err)
	}
	h, s, err := connect(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("attach to the embedded cluster in %s: %w", dir, err)
	}
	return newCluster(dir, s, h)
}

func newCluster(dir string, s status, h *handle) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		h.release()
		return nil, fmt.Errorf("read the embedded cluster's kubeconfig: %w", err)
	}
	// Tests and checks ask often, and the API server is theirs alone.
	config.QPS = 1000
	config.Burst = 2000
	return &Cluster{dir: dir, status: s, config: config, handle: h}, nil
}

func (o Options) withDefaults() (Options, error) {
	var err error
	if o.Kubernetes == "" {
		o.Kubernetes = DefaultKubernetes
	}
	if o.Repository == "" {
		working, err := os.Getwd()
		if err != nil {
			return o, fmt.Errorf("find the checkout: %w", err)
		}
		if o.Repository, err = checkout.Root(working); err != nil {
			return o, err
		}
	}
	if o.CacheDir == "" {
		if o.CacheDir, err = checkout.CacheDir(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.status.Kubeconfig }

// RESTConfig is a client configuration with the administrator's rights. The caller may
// change it.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Dir is the state folder.
func (c *Cluster) Dir() string { return c.dir }

// Info tells what the cluster is.
func (c *Cluster) Info() cluster.Info {
	return cluster.Info{
		Provider:   ProviderName,
		Kubernetes: c.status.Kubernetes,
		Control:    c.status.Control,
		Limits:     c.status.Limits,
	}
}

// Done is closed when the cluster has ended.
func (c *Cluster) Done() <-chan struct{} { return c.handle.done() }

// Stop ends the cluster and returns when its processes are gone. It is killed when ctx
// ends or it takes too long.
func (c *Cluster) Stop(ctx context.Context) error {
	if err := c.handle.stop(ctx); err != nil {
		return fmt.Errorf("stop the embedded cluster in %s: %w", c.dir, err)
	}
	if c.status.Keep {
		return nil
	}
	// The cluster removes the folder itself; this is for one that was killed or failed.
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove the embedded cluster's state: %w", err)
	}
	return nil
}

// status is what a cluster tells about itself when it is ready; it is the interface to
// tools/controlplane, whose type of the same name is the other side.
type status struct {
	Kubernetes string   `json:"kubernetes"`
	Server     string   `json:"server"`
	Kubeconfig string   `json:"kubeconfig"`
	Control    string   `json:"control"`
	Node       bool     `json:"node"`
	Keep       bool     `json:"keep"`
	Limits     []string `json:"limits"`
}
