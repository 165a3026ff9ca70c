package app

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/controlplane"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/forward"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/node"
	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// innerCommand is the cluster inside its namespaces, started by up.
const innerCommand = "inner"

// apiServerPort is the API server's port inside; nobody else is there to have taken it.
const apiServerPort = 6443

// innerDir is where the state folder is seen inside. Kubernetes makes sockets below it,
// whose paths must be short.
const innerDir = statedir.Dir("/run/cluster")

// remappedVariable is set when the process has started over with its ids mapped.
const remappedVariable = "CLUSTER_IDS_MAPPED"

// inner runs the cluster in the namespaces that this process was started in.
func inner(arguments []string) (err error) {
	if err := waitForIDs(); err != nil {
		return err
	}
	o, err := parseOptions(arguments)
	if err != nil {
		return err
	}
	ctx, cancel := stopContext(o.lifeline)
	defer cancel()
	listener, err := net.FileListener(os.NewFile(uintptr(o.listener), "API server"))
	if err != nil {
		return fmt.Errorf("take over the API server's socket: %w", err)
	}
	unix.CloseOnExec(o.listener)
	defer listener.Close()
	if err := prepareMounts(); err != nil {
		return err
	}
	if err := network.SetUpNode(); err != nil {
		return err
	}
	if !o.keep {
		// Files in it can belong to ids that the outer process has no right to.
		defer func() { _ = innerDir.Clear(err) }()
	}
	config := controlplane.Config{
		Dir:                        innerDir,
		Address:                    network.NodeAddress,
		Port:                       apiServerPort,
		Server:                     "https://" + listener.Addr().String(),
		Node:                       true,
		NodeArguments:              node.Arguments(innerDir, o.mirrors),
		APIServerArguments:         o.apiServerArguments,
		ControllerManagerArguments: o.controllerManagerArguments,
	}
	cluster, err := controlplane.Start(ctx, config)
	if err != nil {
		return stoppedOr(ctx, err)
	}
	defer cluster.Stop()
	api := net.JoinHostPort(network.NodeAddress, fmt.Sprint(apiServerPort))
	go forward.Serve(listener, func() (net.Conn, error) { return net.Dial("tcp", api) })
	text, err := newStatus(o, config.Server, nodeLimits(container.SingleID())).encode()
	if err != nil {
		return err
	}
	if _, err := os.Stdout.Write(text); err != nil {
		return fmt.Errorf("report that the cluster is ready: %w", err)
	}
	select {
	case err := <-cluster.Failed():
		return err
	case <-ctx.Done():
		return nil
	}
}

// waitForIDs waits until the outer process has mapped the ids of this process's user
// namespace, and starts over: the kernel gives a namespace's root its rights when it
// executes a program, and before the mapping this process was nobody.
func waitForIDs() error {
	if os.Getenv(remappedVariable) != "" {
		// The kernel forgets this when a process gains rights.
		if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
			return fmt.Errorf("end with the outer process: %w", err)
		}
		return os.Unsetenv(remappedVariable)
	}
	file := os.NewFile(innerMapped, "mapped")
	if _, err := io.Copy(io.Discard, file); err != nil {
		return fmt.Errorf("wait for the node's ids: %w", err)
	}
	file.Close()
	environment := append(os.Environ(), remappedVariable+"=1")
	if err := syscall.Exec("/proc/self/exe", os.Args, environment); err != nil {
		return fmt.Errorf("start over with the node's ids: %w", err)
	}
	return nil
}

// prepareMounts makes the mount namespace the cluster's own: no mount reaches the machine,
// /proc shows this process namespace, and the state folder, which is the working directory,
// is at its short path.
func prepareMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc (is it restricted by a container around?): %w", err)
	}
	parent := filepath.Dir(string(innerDir))
	if err := unix.Mount("tmpfs", parent, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", parent, err)
	}
	if err := os.Mkdir(string(innerDir), 0o755); err != nil {
		return fmt.Errorf("mount the state folder: %w", err)
	}
	if err := unix.Mount(".", string(innerDir), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount the state folder: %w", err)
	}
	if err := os.Chdir(string(innerDir)); err != nil {
		return fmt.Errorf("enter the state folder: %w", err)
	}
	return nil
}
