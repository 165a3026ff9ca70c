//go:build linux

package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/network"
)

// SingleID tells whether this process's user namespace has no more than one user id, as an
// ordinary user without a subordinate range gets.
var SingleID = sync.OnceValue(func() bool {
	content, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && singleIDMap(string(content))
})

func singleIDMap(uidMap string) bool {
	fields := strings.Fields(uidMap)
	return len(fields) == 3 && fields[2] == "1"
}

// Running is a started container.
type Running struct {
	pod     *network.Pod
	process Process
	cmd     *exec.Cmd
	// mounts and pids are the container's own namespaces, nil if it ended at once.
	mounts, pids *os.File
}

// Start starts a container in a pod's namespaces, with new mount and process namespaces of
// its own, and returns when its program runs. A failure to get there is the error.
func Start(pod *network.Pod, spec *Spec, stdout, stderr *os.File) (*Running, error) {
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reports.Close()
	cmd, err := newCommand(InitCommand, spec, report)
	if err != nil {
		report.Close()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Setsid:     true,
	}
	if needsUserNamespace(spec.Process) {
		mapSingleID(cmd.SysProcAttr, spec.Process, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE)
	}
	err = pod.Start(cmd)
	closeAll(cmd.ExtraFiles)
	if err != nil {
		return nil, fmt.Errorf("start the container's process: %w", err)
	}
	if err := reported(reports); err != nil {
		_ = cmd.Wait() // it has said why
		return nil, err
	}
	r := &Running{pod: pod, process: spec.Process, cmd: cmd}
	r.openNamespaces()
	return r, nil
}

// newCommand prepares this program to be run as one of the commands of this package.
func newCommand(command string, spec *Spec, report *os.File) (*exec.Cmd, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encode the container's specification: %w", err)
	}
	reader, err := pipeOf(text)
	if err != nil {
		return nil, err
	}
	// Not by its path, which a process in the container's namespaces doesn't see.
	cmd := exec.Command("/proc/self/exe", command)
	cmd.Env = []string{}
	cmd.ExtraFiles = []*os.File{reader, report}
	return cmd, nil
}

// pipeOf returns the read end of a pipe that holds text. A specification can be larger
// than a pipe, so it is written on the side.
func pipeOf(text []byte) (*os.File, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = writer.Write(text) // a reader that has ended reports a truncated one
		writer.Close()
	}()
	return reader, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}

// reported waits until the process has become the container's program, which closes the
// other end of the pipe, or has said why not.
func reported(reports *os.File) error {
	text, err := io.ReadAll(reports)
	if err != nil {
		return fmt.Errorf("read the report of the container's process: %w", err)
	}
	if len(text) > 0 {
		return errors.New(string(text))
	}
	return nil
}

// openNamespaces opens the container's own namespaces while its process exists for sure:
// nobody has waited for it yet.
func (r *Running) openNamespaces() {
	directory := "/proc/" + strconv.Itoa(r.cmd.Process.Pid) + "/ns/"
	mounts, err := os.Open(directory + "mnt")
	if err != nil {
		return
	}
	pids, err := os.Open(directory + "pid")
	if err != nil {
		mounts.Close()
		return
	}
	r.mounts, r.pids = mounts, pids
}

// Signal sends a signal to the container's first process; one that has ended is no error.
func (r *Running) Signal(signal syscall.Signal) error {
	err := r.cmd.Process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Wait waits for the container's first process and returns its exit code.
func (r *Running) Wait() int {
	_ = r.cmd.Wait() // the state says all
	for _, file := range []*os.File{r.mounts, r.pids} {
		if file != nil {
			file.Close()
		}
	}
	return ExitCode(r.cmd.ProcessState)
}

// ExecIO are the streams that a further process gets; nil ones are empty.
type ExecIO struct {
	// Stdin is a file, because the end of a process does not end a read from anything else.
	Stdin          *os.File
	Stdout, Stderr io.Writer
	// Terminal means that the three are one terminal.
	Terminal bool
}

// Exec starts a further process in the container, as the user and with the rights of its
// first one, and returns it when its program runs.
func (r *Running) Exec(args []string, streams ExecIO) (*exec.Cmd, error) {
	if r.mounts == nil {
		return nil, errors.New("the container is not running")
	}
	process := r.process
	process.Args = args
	process.Terminal = streams.Terminal
	reports, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reports.Close()
	cmd, err := newCommand(ExecCommand, &Spec{Process: process}, report)
	if err != nil {
		report.Close()
		return nil, err
	}
	if streams.Stdin != nil {
		cmd.Stdin = streams.Stdin
	}
	cmd.Stdout, cmd.Stderr = streams.Stdout, streams.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = r.startInside(cmd)
	closeAll(cmd.ExtraFiles)
	if err != nil {
		return nil, fmt.Errorf("start a process in the container: %w", err)
	}
	if err := reported(reports); err != nil {
		_ = cmd.Wait()
		return nil, err
	}
	return cmd, nil
}

// useOwnFile makes cmd run this program by an open file. In the container's namespaces the
// link /proc/self/exe of the new process can't be followed before it runs this program.
func useOwnFile(cmd *exec.Cmd) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, self)
	cmd.Path = fmt.Sprintf("/proc/self/fd/%d", selfDescriptor)
	return nil
}

// startInside starts cmd from a thread that has entered all of the container's namespaces.
func (r *Running) startInside(cmd *exec.Cmd) error {
	if err := useOwnFile(cmd); err != nil {
		return err
	}
	return network.OnNewThread(func() error {
		if err := r.pod.Enter(); err != nil {
			return err
		}
		if err := unix.Setns(int(r.pids.Fd()), unix.CLONE_NEWPID); err != nil {
			return fmt.Errorf("enter the process namespace: %w", err)
		}
		// A thread that shares its root and working directory with others can't change them.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(int(r.mounts.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter the mount namespace: %w", err)
		}
		return cmd.Start()
	})
}
