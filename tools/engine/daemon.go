package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

const (
	// startTimeout is how long the engine may take to answer; it takes a few seconds.
	startTimeout = time.Minute
	// stopTimeout is how long it may take to end, with what containers are left, before it is killed.
	stopTimeout = time.Minute
	// answerPoll is the pause between two questions to an engine that starts.
	answerPoll = 200 * time.Millisecond
)

// daemon is a Docker engine that this process started.
type daemon struct {
	// dir holds socket, log and state while it runs.
	dir string
	cmd *exec.Cmd
	// lifeline is our end of a pipe. The engine ends when it is closed: by us, or by the kernel when
	// this process is killed.
	lifeline *os.File
	ended    chan struct{}
	before   machine
}

// supervise starts the engine and ends it when the pipe on standard input is closed.
const supervise = `"$@" & engine=$!; cat >/dev/null; kill -TERM $engine; wait $engine`

// start starts an engine and waits until it answers.
func start(ctx context.Context, found checkout.Places, tell func(string, ...any)) (*daemon, error) {
	path, err := exec.LookPath("dockerd")
	if err != nil {
		return nil, errors.New("dockerd is not on the PATH: install Docker (apt-get install docker.io)")
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("starting one takes root: start Docker yourself, as in sudo systemctl start docker")
	}
	d := &daemon{ended: make(chan struct{})}
	if d.dir, err = os.MkdirTemp("", "engine-"); err != nil {
		return nil, err
	}
	args, err := d.arguments(ctx, found, tell)
	if err == nil {
		d.before, err = look(ctx)
	}
	if err == nil {
		err = d.launch(append([]string{path}, args...))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.dir))
	}
	if err = d.await(ctx); err == nil {
		err = d.removeContainers(ctx) // of an engine that was killed: they start again with this one
	}
	if err != nil {
		log, _ := os.ReadFile(d.log()) // without it the error is all there is
		return nil, errors.Join(fmt.Errorf("%w\n%s", err, tail(log)), d.end())
	}
	tell("started dockerd for this command")
	return d, nil
}

// arguments are those of an engine with a socket and a store of its own, and otherwise with the
// defaults of its package.
func (d *daemon) arguments(ctx context.Context, found checkout.Places, tell func(string, ...any)) ([]string, error) {
	args := []string{
		"--host=" + d.host(), "--pidfile=" + filepath.Join(d.dir, "pid"), "--exec-root=" + filepath.Join(d.dir, "exec"),
		"--data-root=" + filepath.Join(found.CacheDir, "engine"),
	}
	restricted, err := kind.DetectRestricted()
	if err != nil || !restricted {
		return args, err
	}
	wrapper := gobuild.Program{Dir: found.Repository, Package: "./tools/runcwrap", Inputs: []string{filepath.Join("tools", "runcwrap")}}
	path, err := wrapper.Cached(ctx, found.CacheDir, nil)
	if err != nil {
		return nil, err
	}
	tell("processes of this machine lack capabilities: containers are started with tools/runcwrap")
	return append(args, "--add-runtime=restricted="+path, "--default-runtime=restricted"), nil
}

func (d *daemon) host() string { return "unix://" + filepath.Join(d.dir, "docker.sock") }
func (d *daemon) log() string  { return filepath.Join(d.dir, "log") }

func (d *daemon) launch(args []string) error {
	log, err := os.Create(d.log())
	if err != nil {
		return err
	}
	defer log.Close()
	watched, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer watched.Close()
	d.lifeline = held
	d.cmd = exec.Command("sh", append([]string{"-c", supervise, "sh"}, args...)...)
	d.cmd.Stdin, d.cmd.Stdout, d.cmd.Stderr = watched, log, log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a Ctrl-C in the terminal is for the command
	if err := d.cmd.Start(); err != nil {
		held.Close()
		return fmt.Errorf("start dockerd: %w", err)
	}
	go func() {
		_ = d.cmd.Wait() // how it ended is in its log
		close(d.ended)
	}()
	return nil
}

// await waits until the engine answers.
func (d *daemon) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		ask := exec.CommandContext(ctx, "docker", "--host", d.host(), "version")
		if ask.Run() == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("dockerd does not answer: %w", ctx.Err())
		case <-time.After(answerPoll):
		}
	}
}

// removeContainers removes all containers of the engine, and their networks.
func (d *daemon) removeContainers(ctx context.Context) error {
	docker := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "docker", append([]string{"--host", d.host()}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("remove what is left in the engine: docker %s: %w: %s", args[0], err, out)
		}
		return string(out), err
	}
	ids, err := docker("ps", "--all", "--quiet")
	if err != nil {
		return err
	}
	if left := strings.Fields(ids); len(left) > 0 {
		if _, err := docker(append([]string{"rm", "--force", "--volumes"}, left...)...); err != nil {
			return err
		}
	}
	_, err = docker("network", "prune", "--force")
	return err
}

// stop ends the engine, with what the command left in it, and undoes what it did to the machine's network.
func (d *daemon) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(d.removeContainers(ctx), d.end())
}

// end ends the engine as it is.
func (d *daemon) end() error {
	d.lifeline.Close()
	var failures []error
	select {
	case <-d.ended:
	case <-time.After(stopTimeout):
		failures = append(failures, fmt.Errorf("dockerd has not ended in %s", stopTimeout),
			syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)) // the whole session
		<-d.ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	failures = append(failures, d.before.restore(ctx), os.RemoveAll(d.dir))
	return errors.Join(failures...)
}
