//go:build linux

// Package process starts child processes that can't outlive this one.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Child is a started process.
type Child struct {
	Name string
	// Log is the file that holds its output.
	Log  string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start runs cmd with its output in the file log.
func Start(name, log string, cmd *exec.Cmd) (*Child, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer file.Close()
	cmd.Stdout = file
	cmd.Stderr = file
	child, err := StartBound(name, cmd)
	if err != nil {
		return nil, err
	}
	child.Log = log
	return child, nil
}

// StartBound runs cmd. The kernel kills the child when this process ends, however that
// happens. The child gets a process group of its own, so that a Ctrl-C in a terminal
// reaches only this process, which stops its children in order.
func StartBound(name string, cmd *exec.Cmd) (*Child, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := startOnLastingThread(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &Child{Name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the process ended. It may be called once Done is closed.
func (c *Child) Err() error {
	if c.err == nil {
		return fmt.Errorf("%s ended by itself", c.Name)
	}
	return fmt.Errorf("%s ended: %w", c.Name, c.err)
}

// Stop sends SIGTERM, and SIGKILL if the process has not ended after grace. It returns
// when the process has ended.
func (c *Child) Stop(grace time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
	case <-time.After(grace):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
}

// StopAll stops children side by side.
func StopAll(children []*Child, grace time.Duration) {
	var all sync.WaitGroup
	for _, child := range children {
		all.Go(func() { child.Stop(grace) })
	}
	all.Wait()
}

// starts is served by one thread that lives as long as the process: the kernel sends the
// parent-death signal when the thread that started a child ends, not the whole process.
var starts = sync.OnceValue(func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range queue {
			start()
		}
	}()
	return queue
})

func startOnLastingThread(cmd *exec.Cmd) error {
	result := make(chan error)
	starts() <- func() { result <- cmd.Start() }
	return <-result
}
