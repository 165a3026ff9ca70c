//go:build linux

package container

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exec is ExecCommand: a further process in the namespaces of a running container, which
// the process that started this one has chosen. It returns only if the program could not
// be started.
func Exec() error {
	unix.CloseOnExec(selfDescriptor)
	return become(func(spec *Spec) error {
		if needsUserNamespace(spec.Process) {
			return execInUserNamespace(spec)
		}
		return run(spec.Process)
	})
}

// needsUserNamespace tells whether a process must be shown its only id as another one.
func needsUserNamespace(p Process) bool {
	return p.SingleID && !p.Mapped && (p.UID != 0 || p.GID != 0)
}

// execInUserNamespace starts this program once more in a user namespace of its own, which
// shows the only id as the wanted one, and ends as it ends. A process of more than one
// thread, such as this one, can't enter the container's own user namespace.
func execInUserNamespace(spec *Spec) error {
	inner := *spec
	inner.Process.Mapped = true
	cmd, err := newCommand(ExecCommand, &inner, os.NewFile(reportDescriptor, "report"))
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: spec.Process.Terminal}
	mapSingleID(cmd.SysProcAttr, spec.Process, unix.CAP_SETPCAP)
	if err := cmd.Start(); err != nil {
		return err
	}
	unix.Close(reportDescriptor) // the inner process has it
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	os.Exit(ExitCode(cmd.ProcessState))
	return nil
}

// mapSingleID adds a user namespace in which the caller's id is the process's, and the
// capabilities that the process needs there until it becomes the container's program.
func mapSingleID(attributes *syscall.SysProcAttr, p Process, capabilities ...uintptr) {
	attributes.Cloneflags |= syscall.CLONE_NEWUSER
	attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: int(p.UID), HostID: 0, Size: 1}}
	attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: int(p.GID), HostID: 0, Size: 1}}
	attributes.AmbientCaps = capabilities
}

// ExitCode is how a container runtime reports the end of a process: its own exit code, or
// 128 and the number of the signal that ended it.
func ExitCode(state *os.ProcessState) int {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
