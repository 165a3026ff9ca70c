package app

import (
	"context"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/controlplane"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
)

// up is the cluster as a whole. It runs until it is told to stop or a component fails.
func up(arguments []string) (err error) {
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	ctx, cancel := stopContext(o.lifeline)
	defer cancel()
	dir := o.state()
	if err := dir.Create(); err != nil {
		return err
	}
	if !o.keep {
		defer func() {
			if removeErr := dir.End(err); err == nil {
				err = removeErr
			}
		}()
	}
	if err := os.Chdir(o.dir); err != nil {
		return fmt.Errorf("enter the state folder: %w", err)
	}
	if o.node {
		return serveNode(ctx, o)
	}
	return serveAPI(ctx, o)
}

// serveAPI runs etcd and the API server in the namespaces of the caller.
func serveAPI(ctx context.Context, o options) error {
	port, release, err := reservePort()
	if err != nil {
		return err
	}
	defer release()
	config := controlplane.Config{
		Dir:                        o.state(),
		Address:                    network.Loopback,
		Port:                       port,
		Server:                     fmt.Sprintf("https://%s:%d", network.Loopback, port),
		APIServerArguments:         o.apiServerArguments,
		ControllerManagerArguments: o.controllerManagerArguments,
	}
	cluster, err := controlplane.Start(ctx, config)
	if err != nil {
		return stoppedOr(ctx, err)
	}
	defer cluster.Stop()
	text, err := newStatus(o, config.Server, apiOnlyLimits).encode()
	if err != nil {
		return err
	}
	control, err := publish(config.Dir, text)
	if err != nil {
		return err
	}
	defer control.Close()
	select {
	case err := <-cluster.Failed():
		return err
	case <-ctx.Done():
		return nil
	}
}

// stoppedOr is nil if the cluster was told to stop: that its start failed then is no news.
func stoppedOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// reservePort takes a free port on loopback and holds it without listening, so that no
// other program gets it between this choice and the API server's own bind: the kernel lets
// only sockets of the same user that all ask for it share a port.
func reservePort() (port int, release func(), err error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	release = func() { _ = syscall.Close(socket) }
	defer func() {
		if err != nil {
			release()
		}
	}()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	address := &unix.SockaddrInet4{Addr: [4]byte(net.ParseIP(network.Loopback).To4())}
	if err := unix.Bind(socket, address); err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	bound, err := unix.Getsockname(socket)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	return bound.(*unix.SockaddrInet4).Port, release, nil
}
