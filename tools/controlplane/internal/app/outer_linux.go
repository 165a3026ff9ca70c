package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/process"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/relay"
)

// innerGrace is how long the inner process may take to stop its components before the
// kernel ends them all with it.
const innerGrace = 8 * time.Second

// The file descriptors that the inner process starts with.
const (
	innerListener = 3
	innerLifeline = 4
	innerMapped   = 5
)

// serveNode runs a cluster with a node: everything in an inner process with namespaces of
// its own, whose end, as the first process of its process namespace, ends all in it. This
// outer process stays behind to hold the socket where the API server is reached, and to
// reach image registries.
func serveNode(ctx context.Context, o options) error {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.ParseIP(network.Loopback)})
	if err != nil {
		return fmt.Errorf("open a port for the API server: %w", err)
	}
	defer listener.Close()
	registries, err := net.ListenUnix("unix", &net.UnixAddr{Name: o.state().Socket("relay"), Net: "unix"})
	if err != nil {
		return fmt.Errorf("open the relay's socket: %w", err)
	}
	registries.SetUnlinkOnClose(false) // removed with the folder
	defer registries.Close()
	go relay.Serve(registries)

	inner, err := startInner(o, listener)
	if err != nil {
		return err
	}
	defer inner.stop()
	status := make(chan []byte, 1)
	go func() {
		if line, err := bufio.NewReader(inner.stdout).ReadBytes('\n'); err == nil {
			status <- line
		}
	}()
	for {
		select {
		case line := <-status:
			control, err := publish(o.state(), line)
			if err != nil {
				return err
			}
			defer control.Close()
		case <-inner.child.Done():
			if ctx.Err() != nil {
				return nil
			}
			return errors.New("the cluster ended; see above")
		case <-ctx.Done():
			return nil
		}
	}
}

// innerProcess is the inner process and this side of its pipes.
type innerProcess struct {
	child *process.Child
	// stdout carries the status when the cluster is ready.
	stdout *os.File
	// lifeline ends the inner process when it is closed.
	lifeline *os.File
}

func (p *innerProcess) stop() {
	p.child.Stop(innerGrace)
	p.lifeline.Close()
	p.stdout.Close()
}

// startInner starts the inner process in new namespaces. In a user namespace it is held
// until its ids are mapped.
func startInner(o options, listener *net.TCPListener) (_ *innerProcess, err error) {
	listenerFile, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("pass the API server's socket on: %w", err)
	}
	defer listenerFile.Close()
	pipes, err := openPipes()
	if err != nil {
		return nil, fmt.Errorf("open a pipe: %w", err)
	}
	defer pipes.closeInner()
	inner := &innerProcess{stdout: pipes.stdout.reader, lifeline: pipes.lifeline.writer}
	defer func() {
		if err != nil {
			inner.lifeline.Close()
			inner.stdout.Close()
		}
	}()

	arguments := []string{
		innerCommand,
		fmt.Sprintf("--listener-fd=%d", innerListener),
		fmt.Sprintf("--lifeline-fd=%d", innerLifeline),
	}
	cmd := exec.Command("/proc/self/exe", append(arguments, o.arguments()...)...)
	cmd.Stdout = pipes.stdout.writer
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{listenerFile, pipes.lifeline.reader, pipes.mapped.reader}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
	}
	ids := planIDs()
	if ids.userNamespace {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	if inner.child, err = process.StartBound("the inner process", cmd); err != nil {
		return nil, fmt.Errorf("make the node's namespaces: %w: run as root, or allow unprivileged user namespaces", err)
	}
	if err = ids.apply(cmd.Process.Pid); err != nil {
		inner.child.Stop(0)
		return nil, err
	}
	return inner, nil
}

type pipe struct{ reader, writer *os.File }

// innerPipes are the pipes between the outer and the inner process.
type innerPipes struct {
	// stdout is the inner process's; lifeline and mapped tell it of their other end by
	// being closed: the former that this process has ended, the latter that its ids are
	// mapped.
	stdout, lifeline, mapped pipe
}

func openPipes() (*innerPipes, error) {
	var pipes innerPipes
	for _, p := range []*pipe{&pipes.stdout, &pipes.lifeline, &pipes.mapped} {
		var err error
		if p.reader, p.writer, err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	return &pipes, nil
}

// closeInner closes the ends that the inner process has now, and tells it to go on.
func (p *innerPipes) closeInner() {
	p.stdout.writer.Close()
	p.lifeline.reader.Close()
	p.mapped.reader.Close()
	p.mapped.writer.Close()
}
