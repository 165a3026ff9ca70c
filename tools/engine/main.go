// Command engine runs a command that needs a container engine. If none answers, it installs Docker
// where that is missing, starts it for the command, and ends it afterwards without leaving a trace
// on the machine's network.
//
//	go run ./tools/engine go run ./tools/matrix run --provider kind
//
// The engine has the settings that its package has, and keeps its images in the user's cache. On
// machines whose processes lack capabilities it starts containers with tools/runcwrap; see
// docs/kind.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
)

// Exit codes, besides that of the command.
const (
	exitFailed = 3
	exitInput  = 2
)

func main() {
	// A Ctrl-C reaches the command as well, which ends as it sees fit; the engine ends after it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprintln(stderr, "usage: engine COMMAND [ARGUMENT...]")
		return exitInput
	}
	tell := func(format string, a ...any) { fmt.Fprintf(stderr, "engine: "+format+"\n", a...) }
	found, err := checkout.Find()
	if err != nil {
		tell("%v", err)
		return exitInput
	}
	host, stop, err := provide(ctx, found, tell)
	if err != nil {
		tell("%v", err)
		return exitFailed
	}
	code, err := command(ctx, args, host, stdout, stderr)
	if err = errors.Join(err, stop()); err != nil {
		tell("%v", err)
		return exitFailed
	}
	return code
}

// provide makes sure that an engine answers. host is the address of one that was started, empty for
// one that was there; stop ends what was started.
func provide(ctx context.Context, found checkout.Places, tell func(string, ...any)) (host string, stop func() error, err error) {
	if err := install(ctx, tell); err != nil {
		return "", nil, err
	}
	name, err := kind.Engine(ctx)
	if err == nil {
		tell("%s answers", name)
		return "", func() error { return nil }, nil
	}
	if !errors.Is(err, kind.ErrNoEngine) {
		return "", nil, err
	}
	e, err := start(ctx, found, tell)
	if err != nil {
		return "", nil, fmt.Errorf("no container engine answers, and none could be started: %w", err)
	}
	return e.host(), e.stop, nil
}

// command runs the command and returns its exit code. When ctx ends it is asked to end, too.
func command(ctx context.Context, args []string, host string, stdout, stderr io.Writer) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = os.Environ()
	if host != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+host)
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // -1 for a signal
	}
	if err != nil {
		return 0, fmt.Errorf("run %s: %w", args[0], err)
	}
	return 0, nil
}
