package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// killDelay is how long a killed chainsaw may take to be gone before the run is given up.
const killDelay = 5 * time.Second

// tailLines is how much of chainsaw's output an error quotes.
const tailLines = 20

// Program is the chainsaw that the repository pins. Its key belongs into the content key of
// whatever rests on a scenario's result.
func Program(repository string) gobuild.Program {
	return gobuild.Program{
		Dir:     filepath.Join(repository, "tools", "chainsaw"),
		Package: "github.com/kyverno/chainsaw",
		Inputs:  []string{"go.mod", "go.sum"},
	}
}

// Runner runs scenarios of one suite.
type Runner struct {
	// Suite holds the scenarios.
	Suite Suite
	// Chainsaw is the path of the chainsaw binary, as Program(...).Cached returns it.
	Chainsaw string
}

// Values are what scenarios work on; an empty one is the default of the suite's values file.
// docs/scenarios.md says which scenario needs which.
type Values struct {
	// Runtime is the name of the TrussiumRuntime of roll-forward and roll-back, created if there
	// is none in the namespace. The other scenarios always make their own.
	Runtime string `json:"runtime,omitempty"`
	// Repository is the runtime's image repository.
	Repository string `json:"repository,omitempty"`
	// From, To and Third are tags of the image, NeverReady the tag of one that starts and does
	// not become ready.
	From       string `json:"from,omitempty"`
	To         string `json:"to,omitempty"`
	Third      string `json:"third,omitempty"`
	NeverReady string `json:"neverReady,omitempty"`
	// Digest is the digest that To stands for: sha256:<hex>.
	Digest string `json:"digest,omitempty"`
}

// Request says what to run and against which cluster.
type Request struct {
	// Scenario is the name of a scenario of the suite. RunAll does not look at it.
	Scenario string
	// Kubeconfig is the path of the kubeconfig; its current context is used.
	Kubeconfig string
	// Namespace holds the runtimes. One that exists is used and kept; one that doesn't is
	// created and deleted. Empty: a new namespace for each scenario, with a name of chainsaw's
	// choice.
	Namespace string
	// Values are laid over the suite's values file.
	Values Values
	// AssertTimeout replaces the suite's times for one assertion, of presence or of absence. 0:
	// the suite's.
	AssertTimeout time.Duration
	// LogDir receives <scenario>.log, chainsaw's output, and <scenario>.json, its report; those
	// of RunAll are scenarios.log and scenarios.json.
	LogDir string
	// Progress is told, as "scenario: step", of each step that begins. May be nil.
	Progress func(string)
}

// Run runs the scenario and returns what it found. When ctx is done, chainsaw and all its
// children are killed. See the package comment for what an error means.
func (r Runner) Run(ctx context.Context, request Request) (Result, error) {
	results, err := r.run(ctx, request, request.Scenario, []string{request.Scenario})
	if err != nil {
		return Result{}, fmt.Errorf("run scenario %s: %w", request.Scenario, err)
	}
	return results[0], nil
}

// RunAll runs several scenarios as Run does one, and returns what they found in the order of
// names. They run side by side, as many as the suite's configuration says; in a namespace that
// they share, one after the other, because some of them set a quota there.
func (r Runner) RunAll(ctx context.Context, request Request, names ...string) ([]Result, error) {
	results, err := r.run(ctx, request, "scenarios", names)
	if err != nil {
		return nil, fmt.Errorf("run %d scenarios: %w", len(names), err)
	}
	return results, nil
}

// run calls the log and the report file.
func (r Runner) run(ctx context.Context, request Request, file string, names []string) ([]Result, error) {
	// Chainsaw runs in a folder of its own.
	for _, path := range []*string{&r.Suite.Dir, &r.Chainsaw, &request.Kubeconfig, &request.LogDir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return nil, err
		}
		*path = absolute
	}
	if len(names) == 0 {
		return nil, errors.New("no scenario is given")
	}
	for _, name := range names {
		if !isScenario(filepath.Join(r.Suite.Dir, name)) {
			return nil, fmt.Errorf("there is no %s in %s", filepath.Join(name, testFile), r.Suite.Dir)
		}
	}
	if err := os.MkdirAll(request.LogDir, 0o755); err != nil {
		return nil, err
	}
	reportFile := filepath.Join(request.LogDir, file+".json")
	// An earlier run's report must not be taken for this one's.
	if err := os.Remove(reportFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	work, err := os.MkdirTemp("", "scenario-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	values, err := json.Marshal(request.Values)
	if err != nil {
		return nil, err
	}
	overrides := filepath.Join(work, "values.json")
	if err := os.WriteFile(overrides, values, 0o600); err != nil {
		return nil, err
	}
	log := filepath.Join(request.LogDir, file+".log")
	if err := r.chainsaw(ctx, r.arguments(request, names, overrides, reportFile), work, request, log); err != nil {
		return nil, err
	}
	results, err := readResults(reportFile, names)
	if err != nil {
		return nil, fmt.Errorf("%w; the end of %s:\n%s", err, log, tail(log))
	}
	return results, explained(results, log)
}

// verdictLine is what chainsaw writes at the end of a scenario.
var verdictLine = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL): chainsaw/(\S+)`)

// explained compares the report, which knows operations only, with chainsaw's own verdicts:
// a scenario can also fail around its operations.
func explained(results []Result, log string) error {
	content, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	passed := map[string]bool{}
	for _, line := range verdictLine.FindAllSubmatch(content, -1) {
		passed[string(line[2])] = string(line[1]) == "PASS"
	}
	for _, result := range results {
		if verdict, given := passed[result.Name]; !given || verdict != result.Passed {
			return fmt.Errorf("chainsaw's verdict on %s is one that its report does not explain; the end of %s:\n%s", result.Name, log, tail(log))
		}
	}
	return nil
}

// chainsaw runs the process in dir; its output goes to the file log. That scenarios failed is
// no error.
func (r Runner) chainsaw(ctx context.Context, arguments []string, dir string, request Request, log string) error {
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, r.Chainsaw, arguments...)
	cmd.Dir = dir
	cmd.Env = environment(os.Environ(), request.Kubeconfig)
	cmd.Stdout = out
	if request.Progress != nil {
		cmd.Stdout = io.MultiWriter(out, &stepWatcher{tell: request.Progress})
	}
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = killDelay
	err = subprocess.Run(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("chainsaw: %w; the end of %s:\n%s", err, log, tail(log))
	}
	return nil
}

// stepLine is what chainsaw writes when a step begins.
var stepLine = regexp.MustCompile(`\| ([^|]+) \| ([^|]+) \| TRY +\| BEGIN`)

// stepWatcher reads chainsaw's output as it comes and tells of each step that begins.
type stepWatcher struct {
	tell func(string)
	rest []byte
}

func (w *stepWatcher) Write(output []byte) (int, error) {
	w.rest = append(w.rest, output...)
	for {
		line, rest, complete := bytes.Cut(w.rest, []byte("\n"))
		if !complete {
			return len(output), nil
		}
		w.rest = rest
		if match := stepLine.FindSubmatch(line); match != nil {
			w.tell(string(match[1]) + ": " + string(bytes.TrimSpace(match[2])))
		}
	}
}

func (r Runner) arguments(request Request, names []string, overrides, reportFile string) []string {
	args := []string{
		"test",
		"--config", filepath.Join(r.Suite.Dir, configurationFile),
		"--values", filepath.Join(r.Suite.Dir, valuesFile),
		"--values", overrides,
		"--report-format", "JSON",
		"--report-path", filepath.Dir(reportFile),
		"--report-name", filepath.Base(reportFile),
		"--no-color",
	}
	if request.Namespace != "" {
		args = append(args, "--namespace", request.Namespace, "--parallel", "1")
	}
	if request.AssertTimeout > 0 {
		timeout := request.AssertTimeout.String()
		args = append(args, "--assert-timeout", timeout, "--error-timeout", timeout)
	}
	for _, name := range names {
		args = append(args, filepath.Join(r.Suite.Dir, name))
	}
	return args
}

// environment is the caller's, with the kubeconfig and without any folder that holds a
// kubectl, so that a scenario that needs one fails everywhere and not only where there is
// none.
func environment(inherited []string, kubeconfig string) []string {
	env := make([]string, 0, len(inherited)+1)
	for _, entry := range inherited {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "KUBECONFIG":
		case "PATH":
			env = append(env, "PATH="+withoutKubectl(value))
		default:
			env = append(env, entry)
		}
	}
	return append(env, "KUBECONFIG="+kubeconfig)
}

func withoutKubectl(path string) string {
	var kept []string
	for _, dir := range filepath.SplitList(path) {
		if _, err := exec.LookPath(filepath.Join(dir, "kubectl")); err != nil {
			kept = append(kept, dir)
		}
	}
	return strings.Join(kept, string(os.PathListSeparator))
}

// tail returns the last lines of a file, or why they can't be had.
func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-tailLines):], "\n")
}
