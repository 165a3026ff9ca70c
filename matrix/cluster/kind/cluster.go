package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"k8s.io/client-go/tools/clientcmd"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/objects"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// Cluster is a running Kind cluster.
type Cluster struct {
	dir     string
	state   state
	kind    *kindcluster.Provider
	network network
	// unbind ends what removes the nodes when this process ends; nil for a cluster that outlives it.
	unbind func()
	ended  chan struct{}
	// unwatch ends the wait for the end of the node.
	unwatch context.CancelFunc
}

var _ cluster.Cluster = (*Cluster)(nil)

// state is what a later process needs to find the cluster.
type state struct {
	Name       string   `json:"name"`
	Engine     engine   `json:"engine"`
	Cache      string   `json:"cache"`
	Kubernetes string   `json:"kubernetes"`
	Control    string   `json:"control"`
	Limits     []string `json:"limits,omitempty"`
	Retain     bool     `json:"retain,omitempty"`
}

// stateFile marks a folder as that of a Kind cluster.
const stateFile = "kind.json"

// ErrNotRunning says that there is no running cluster to attach to.
var ErrNotRunning = errors.New("no Kind cluster is running")

// Attach connects to a running cluster by its folder; ErrNotRunning if there is none.
func Attach(ctx context.Context, dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("attach to the Kind cluster: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("attach to the Kind cluster in %s: %w: %w", dir, ErrNotRunning, err)
	}
	c := &Cluster{dir: dir}
	if err := json.Unmarshal(content, &c.state); err != nil {
		return nil, fmt.Errorf("attach to the Kind cluster in %s: %w: read its state: %w", dir, ErrNotRunning, err)
	}
	c.kind = kindcluster.NewProvider(c.state.Engine.option(), kindcluster.ProviderWithLogger(progressLog{}))
	c.network = ownNetwork(c.state.Engine, c.state.Cache)
	running, err := c.state.Engine.ask(ctx, "container", "inspect", "--format", "{{.State.Running}}", c.node())
	if err != nil || running != "true" {
		return nil, fmt.Errorf("attach to the Kind cluster in %s: %w: %w", dir, ErrNotRunning, err)
	}
	return c, c.watch()
}

// begin keeps the state of a cluster that was just created, and watches it.
func (c *Cluster) begin() error {
	content, err := json.Marshal(c.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.dir, stateFile), content, 0o600); err != nil {
		return err
	}
	return c.watch()
}

// node is the name of the container that is the node, as Kind has it.
func (c *Cluster) node() string { return c.state.Name + "-control-plane" }

// watch waits, in a process of the engine's command, for the end of the node.
func (c *Cluster) watch() error {
	ctx, cancel := context.WithCancel(context.Background())
	c.unwatch, c.ended = cancel, make(chan struct{})
	cmd := exec.CommandContext(ctx, string(c.state.Engine), "wait", c.node())
	if err := subprocess.Start(cmd); err != nil {
		cancel()
		return fmt.Errorf("watch the node: %w", err)
	}
	go func() {
		_ = cmd.Wait() // an engine that ended has ended its nodes
		close(c.ended)
	}()
	return nil
}

// bind has the nodes removed when this process ends, even by SIGKILL: the kernel then closes our
// end of a pipe, and a shell that waits for that calls the engine.
func (c *Cluster) bind() error {
	watched, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer watched.Close()
	// With Podman the volume has a name, and is not removed with the node.
	const script = `cat >/dev/null; exec >/dev/null 2>&1
volumes=$("$1" inspect --format '{{range .Mounts}}{{if eq .Type "volume"}}{{println .Name}}{{end}}{{end}}' "$2")
"$1" rm --force --volumes "$2"
for volume in $volumes; do "$1" volume rm "$volume"; done
"$1" network rm "$3"`
	networkToRemove := networkName
	if c.network.foreign {
		networkToRemove = ""
	}
	cmd := exec.Command("sh", "-c", script, "sh", string(c.state.Engine), c.node(), networkToRemove)
	cmd.Stdin = watched
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		held.Close()
		return fmt.Errorf("bind the cluster to this process: %w", err)
	}
	c.unbind = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it has ended if that fails
		_ = cmd.Wait()
		held.Close()
	})
	return nil
}

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Info tells what the cluster is.
func (c *Cluster) Info() cluster.Info {
	return cluster.Info{
		Provider: ProviderName, Kubernetes: c.state.Kubernetes, Control: c.state.Control, Limits: c.state.Limits, RealContainers: true,
	}
}

// Done is closed when the node has ended.
func (c *Cluster) Done() <-chan struct{} { return c.ended }

// Diagnose exports the logs of the node with those of all containers, and the cluster's workloads
// and events.
func (c *Cluster) Diagnose(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("diagnose the Kind cluster: %w", err)
	}
	collected := make(chan error, 1)
	go func() { collected <- c.kind.CollectLogs(c.state.Name, filepath.Join(dir, "logs")) }()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err == nil {
		err = objects.Write(ctx, config, dir)
	}
	select {
	case logsErr := <-collected:
		return errors.Join(err, logsErr)
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("export the logs of the node: %w", ctx.Err()))
	}
}

// Stop deletes the node, with its volumes and, after the last cluster, the network. The deletion is
// not cut short when ctx ends.
func (c *Cluster) Stop(context.Context) error {
	if c.unwatch != nil {
		c.unwatch()
	}
	err := c.deleteNodes()
	if c.unbind != nil && err == nil {
		c.unbind()
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	err = errors.Join(err, c.network.remove(ctx))
	if err == nil {
		err = os.RemoveAll(c.dir)
	}
	if err != nil {
		return fmt.Errorf("stop the Kind cluster %s: %w", c.state.Name, err)
	}
	return nil
}

// deleteNodes deletes the nodes; that there are none is no error.
func (c *Cluster) deleteNodes() error {
	ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
	defer cancel()
	deleted := make(chan error, 1)
	go func() { deleted <- c.kind.Delete(c.state.Name, c.Kubeconfig()) }()
	select {
	case err := <-deleted:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the engine has not removed the node in %s: %s rm --force --volumes %s", deleteTimeout, c.state.Engine, c.node())
	}
}
