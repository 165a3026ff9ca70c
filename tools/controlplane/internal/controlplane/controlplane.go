//go:build linux

// Package controlplane starts and stops the components of one cluster in order.
package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/process"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

const (
	// startTimeout bounds the whole start; it takes seconds on an idle machine.
	startTimeout = 3 * time.Minute
	// stopGrace is how long a component may take to end before it is killed.
	stopGrace = 3 * time.Second
	// logTail is how many lines of a failed component's log an error carries.
	logTail = 15
)

// Node is the name and command of the component that is the node.
const Node = "node"

// Config describes the wanted cluster.
type Config struct {
	// Dir is the state folder, which is also the working directory of this process.
	Dir statedir.Dir
	// Address and Port are where the API server listens.
	Address string
	Port    int
	// Server is the API server's URL for people and tests.
	Server string
	// Node adds the controller manager, the scheduler and a node to the API server.
	Node bool
	// NodeArguments are the arguments of the node's command.
	NodeArguments []string
	// APIServerArguments and ControllerManagerArguments are added to the components' own.
	// Without a node the controller manager runs only if it has any.
	APIServerArguments, ControllerManagerArguments []string
}

// ControlPlane is a running cluster.
type ControlPlane struct {
	etcd      *embed.Etcd
	apiServer *process.Child
	// clients are the components that use the API server.
	clients []*process.Child
	failed  chan error
}

// Start returns when the cluster is ready for use. If it does not become ready, what was
// started is stopped and the error carries the end of the failing component's log.
func Start(ctx context.Context, config Config) (*ControlPlane, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("the cluster was not ready within %s", startTimeout))
	defer cancel()
	c := &ControlPlane{failed: make(chan error, 1)}
	if err := c.start(ctx, config); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context, config Config) error {
	inside := fmt.Sprintf("https://%s:%d", config.Address, config.Port)
	if err := writeCredentials(config.Dir, inside, config.Server); err != nil {
		return err
	}
	var err error
	if c.etcd, err = startEtcd(ctx, config.Dir); err != nil {
		return err
	}
	arguments := apiServerArguments(config.Dir, config.Address, config.Port, config.Node, config.APIServerArguments)
	if c.apiServer, err = c.run(config.Dir, APIServer, arguments); err != nil {
		return err
	}
	client, err := newClient(config.Dir)
	if err != nil {
		return err
	}
	if err := c.wait(ctx, c.apiServer, APIServer, apiReady(client)); err != nil {
		return err
	}
	if config.Node || len(config.ControllerManagerArguments) > 0 {
		arguments := controllerManagerArguments(config.Dir, config.ControllerManagerArguments)
		if err := c.runClient(config.Dir, ControllerManager, arguments); err != nil {
			return err
		}
	}
	if !config.Node {
		return nil
	}
	if err := c.runClient(config.Dir, Scheduler, schedulerArguments(config.Dir)); err != nil {
		return err
	}
	if err := c.runClient(config.Dir, Node, config.NodeArguments); err != nil {
		return err
	}
	return c.wait(ctx, c.clients[len(c.clients)-1], "the node "+network.NodeName, podsStartable(client))
}

// wait polls until ready, and gives up at once when a component ends. If time runs out,
// the error carries the log of the component that is waited for.
func (c *ControlPlane) wait(ctx context.Context, component *process.Child, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	result := make(chan error, 1)
	go func() { result <- poll(ctx, what, ready) }()
	select {
	case err := <-result:
		if err != nil {
			return fmt.Errorf("%w\n%s", err, process.Tail(component.Log, logTail))
		}
		return nil
	case err := <-c.failed:
		return err
	}
}

func (c *ControlPlane) runClient(dir statedir.Dir, name string, arguments []string) error {
	child, err := c.run(dir, name, arguments)
	if err != nil {
		return err
	}
	c.clients = append(c.clients, child)
	return nil
}

// run starts a component: this program again, with the component's name as its command.
func (c *ControlPlane) run(dir statedir.Dir, name string, arguments []string) (*process.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	child, err := process.Start(name, dir.Log(name), exec.Command(self, append([]string{name}, arguments...)...))
	if err != nil {
		return nil, err
	}
	go func() {
		<-child.Done()
		select {
		case c.failed <- fmt.Errorf("%w\n%s", child.Err(), process.Tail(child.Log, logTail)):
		default:
		}
	}()
	return child, nil
}

// Failed receives an error when a component ends that was not told to.
func (c *ControlPlane) Failed() <-chan error { return c.failed }

// Stop ends all components: first those that use the API server, which would otherwise
// fill their logs with failed calls, then the API server, then etcd.
func (c *ControlPlane) Stop() {
	process.StopAll(c.clients, stopGrace)
	if c.apiServer != nil {
		c.apiServer.Stop(stopGrace)
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
}
