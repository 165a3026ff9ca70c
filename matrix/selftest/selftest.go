package selftest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
)

// ErrRed says that a test failed: a check is red without damage, or green in spite of it.
var ErrRed = errors.New("the selftest is red")

// packages hold the tests that turn checks red.
var packages = []string{"./matrix/check/...", "./matrix/selftest/..."}

// endTimeout is how long the tests may take to clean up after an interruption.
const endTimeout = 30 * time.Second

// Run runs the tests that turn checks red in the checkout at repository, and returns the
// mutations by the id of their check. progress is told which test runs. The error wraps ErrRed
// when a test failed, with its output.
func Run(ctx context.Context, repository string, progress func(string)) (map[string][]string, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-timeout=30m"}, packages...)...)
	command.Dir = repository
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = endTimeout
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("run the selftest: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("run the selftest: %w", err)
	}
	mutations, failures, readErr := read(output, progress)
	err = command.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run the selftest: %w", ctx.Err())
	case len(failures) > 0:
		return mutations, fmt.Errorf("%w:\n%s", ErrRed, strings.Join(failures, "\n"))
	case err != nil:
		return mutations, fmt.Errorf("run the selftest: go test: %w\n%s", err, problems.String())
	case readErr != nil:
		return mutations, fmt.Errorf("read the output of the selftest: %w", readErr)
	}
	return mutations, nil
}

// event is a line of `go test -json` (go doc test2json).
type event struct {
	Action, Package, Test, Output string
}

// read gathers the mutations and the output of the tests that failed.
func read(output io.Reader, progress func(string)) (mutations map[string][]string, failures []string, err error) {
	mutations = map[string][]string{}
	said := map[string]string{}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			failures = append(failures, lines.Text()) // go itself complains in plain text
			continue
		}
		name := e.Package + " " + e.Test
		switch e.Action {
		case "run":
			progress(name)
		case "output":
			said[name] += e.Output
			if check, what, found := mutation.Parse(e.Output); found && !slices.Contains(mutations[check], what) {
				mutations[check] = append(mutations[check], what)
			}
		case "build-output":
			failures = append(failures, strings.TrimRight(e.Output, "\n"))
		case "fail":
			failures = append(failures, strings.TrimRight(said[name], "\n"))
		case "pass", "skip":
			delete(said, name)
		}
	}
	return mutations, failures, lines.Err()
}
