package kind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// networkName is the network of all nodes of all matrices on an engine. It is not Kind's own, which
// may be a user's; a network for each cluster would soon use up the addresses that engines hand out.
const networkName = "trussium-matrix"

// network is the engine's network for nodes: Kind makes it for the first cluster, and it is removed
// with the last one.
type network struct {
	engine engine
	// lock is a file. Starting clusters share the lock on it, and who removes the network has it alone.
	lock string
	// foreign is a network that the user chose, which is left alone.
	foreign bool
}

var setNetwork sync.Once

// ownNetwork tells Kind the network, by a variable of this process, unless the user has set it.
func ownNetwork(e engine, cacheDir string) network {
	setNetwork.Do(func() {
		if os.Getenv(e.networkVariable()) == "" {
			_ = os.Setenv(e.networkVariable(), networkName) // fails for names and values that can't be variables
		}
	})
	return network{engine: e, lock: filepath.Join(cacheDir, "kind-network.lock"), foreign: os.Getenv(e.networkVariable()) != networkName}
}

// hold keeps the network from being removed until release is called.
func (n network) hold() (release func(), err error) {
	f, err := n.open(syscall.LOCK_SH)
	if err != nil {
		return nil, fmt.Errorf("hold the network of the nodes: %w", err)
	}
	return func() { f.Close() }, nil
}

// remove removes the network unless another cluster is there or being started; that one will.
func (n network) remove(ctx context.Context) error {
	if n.foreign {
		return nil
	}
	f, err := n.open(syscall.LOCK_EX | syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the network of the nodes: %w", err)
	}
	defer f.Close()
	attached, err := n.engine.ask(ctx, "ps", "--all", "--quiet", "--filter", "network="+networkName)
	if err != nil || attached != "" {
		return err
	}
	names, err := n.engine.ask(ctx, "network", "ls", "--format", "{{.Name}}", "--filter", "name="+networkName)
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(names) {
		if name != networkName {
			continue // the filter is for a part of the name
		}
		if _, err := n.engine.ask(ctx, "network", "rm", networkName); err != nil {
			return fmt.Errorf("remove the network of the nodes: %w", err)
		}
	}
	return nil
}

func (n network) open(how int) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(n.lock), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(n.lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
