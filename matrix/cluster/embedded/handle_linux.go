package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// stopTimeout is how long a cluster may take to end before it is killed; it takes two
	// to three seconds.
	stopTimeout = 10 * time.Second
	// connectTimeout bounds the first exchange with a running cluster, which is local.
	connectTimeout = 5 * time.Second
	// exitPoll is the pause between two looks at a process that is about to end.
	exitPoll = 10 * time.Millisecond
)

// handle is a hold on the process of a running cluster.
type handle struct {
	// process is held by a process file descriptor, so a signal can't reach another process
	// that was given the same id later.
	process *os.Process
	ended   chan struct{}
	release func()
}

func (h *handle) done() <-chan struct{} { return h.ended }

// newChildHandle holds a child of this process and, with it, the lifeline.
func newChildHandle(cmd *exec.Cmd, lifeline *os.File) *handle {
	h := &handle{process: cmd.Process, ended: make(chan struct{}), release: func() {}}
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		if lifeline != nil {
			lifeline.Close()
		}
		close(h.ended)
	}()
	return h
}

// connect finds the process of a running cluster through its control socket. The kernel
// says which process that is; a connection that stays open shows that it is still the same.
func connect(ctx context.Context, dir string) (*handle, status, error) {
	conn, err := dialControl(ctx, dir)
	if err != nil {
		return nil, status{}, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	h, s, err := identify(conn)
	if err != nil {
		conn.Close()
		return nil, status{}, err
	}
	return h, s, nil
}

func identify(conn *net.UnixConn) (*handle, status, error) {
	pid, err := peer(conn)
	if err != nil {
		return nil, status{}, err
	}
	process, err := os.FindProcess(pid)
	if err != nil {
		return nil, status{}, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(connectTimeout))
	line, err := bufio.NewReader(conn).ReadBytes('\n')
	if err != nil {
		return nil, status{}, fmt.Errorf("%w: read its status: %w", ErrNotRunning, err)
	}
	s, err := parseStatus(line)
	if err != nil {
		return nil, status{}, err
	}
	// Still connected after the process was found: the process is the cluster's.
	_ = conn.SetReadDeadline(time.Now().Add(exitPoll))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, status{}, fmt.Errorf("%w: it is ending", ErrNotRunning)
	}
	_ = conn.SetReadDeadline(time.Time{})
	h := &handle{process: process, ended: make(chan struct{}), release: func() { conn.Close() }}
	go h.watch(conn)
	return h, s, nil
}

// watch closes ended when the process behind conn has ended.
func (h *handle) watch(conn *net.UnixConn) {
	_, err := io.Copy(io.Discard, conn)
	conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return // released
	}
	for h.process.Signal(syscall.Signal(0)) == nil {
		time.Sleep(exitPoll) // its files are closed, it is about to end
	}
	close(h.ended)
}

// dialControl connects to the control socket through a file descriptor of the folder: the
// path of a socket is limited to about a hundred characters.
func dialControl(ctx context.Context, dir string) (*net.UnixConn, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	dialer := net.Dialer{Timeout: connectTimeout}
	conn, err := dialer.DialContext(ctx, "unix", filepath.Join("/proc/self/fd", fmt.Sprint(folder.Fd()), "control.sock"))
	if err != nil {
		return nil, err
	}
	return conn.(*net.UnixConn), nil
}

// peer is the process that listens on the other side of conn.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var socketErr error
	err = raw.Control(func(fd uintptr) {
		credentials, socketErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, socketErr); err != nil {
		return 0, fmt.Errorf("identify the cluster's process: %w", err)
	}
	return int(credentials.Pid), nil
}

// stop ends the process: SIGTERM first, SIGKILL when ctx ends or the time is up. Either
// ends everything that the process started.
func (h *handle) stop(ctx context.Context) error {
	if err := h.signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-h.ended:
		return nil
	case <-ctx.Done():
	case <-time.After(stopTimeout):
	}
	if err := h.signal(syscall.SIGKILL); err != nil {
		return err
	}
	select {
	case <-h.ended:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("process %d has not ended %s after SIGKILL", h.process.Pid, stopTimeout)
	}
}

func (h *handle) signal(s syscall.Signal) error {
	err := h.process.Signal(s)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", s, h.process.Pid, err)
	}
	return nil
}
