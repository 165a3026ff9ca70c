package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
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

// Values are what a scenario works on; an empty one is the default of the suite's values
// file, which also describes them.
type Values struct {
	// Runtime is the name of the TrussiumRuntime, created if there is none in the namespace.
	Runtime string `json:"runtime,omitempty"`
	// Repository is the runtime's image repository.
	Repository string `json:"repository,omitempty"`
	// From and To are tags of the image.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Request says what to run and against which cluster.
type Request struct {
	// Scenario is the name of a scenario of the suite.
	Scenario string
	// Kubeconfig is the path of the kubeconfig; its current context is used.
	Kubeconfig string
	// Namespace holds the runtime. One that exists is used and kept; one that doesn't is
	// created and deleted. Empty: a new namespace with a name of chainsaw's choice.
	Namespace string
	// Values are laid over the suite's values file.
	Values Values
	// AssertTimeout replaces the suite's time for one assertion. 0: the suite's.
	AssertTimeout time.Duration
	// LogDir receives <scenario>.log, chainsaw's output, and <scenario>.json, its report.
	LogDir string
}

// Run runs the scenario and returns what it found. When ctx is done, chainsaw and all its
// children are killed. See the package comment for what an error means.
func (r Runner) Run(ctx context.Context, request Request) (Result, error) {
	result, err := r.run(ctx, request)
	if err != nil {
		return Result{}, fmt.Errorf("run scenario %s: %w", request.Scenario, err)
	}
	return result, nil
}

func (r Runner) run(ctx context.Context, request Request) (Result, error) {
	// Chainsaw runs in a folder of its own.
	for _, path := range []*string{&r.Suite.Dir, &r.Chainsaw, &request.Kubeconfig, &request.LogDir} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return Result{}, err
		}
		*path = absolute
	}
	if !isScenario(filepath.Join(r.Suite.Dir, request.Scenario)) {
		return Result{}, fmt.Errorf("there is no %s in %s", filepath.Join(request.Scenario, testFile), r.Suite.Dir)
	}
	if err := os.MkdirAll(request.LogDir, 0o755); err != nil {
		return Result{}, err
	}
	reportFile := filepath.Join(request.LogDir, request.Scenario+".json")
	// An earlier run's report must not be taken for this one's.
	if err := os.Remove(reportFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Result{}, err
	}
	work, err := os.MkdirTemp("", "scenario-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(work)
	values, err := json.Marshal(request.Values)
	if err != nil {
		return Result{}, err
	}
	overrides := filepath.Join(work, "values.json")
	if err := os.WriteFile(overrides, values, 0o600); err != nil {
		return Result{}, err
	}
	log := filepath.Join(request.LogDir, request.Scenario+".log")
	code, err := r.chainsaw(ctx, request, overrides, reportFile, log)
	if err != nil {
		return Result{}, err
	}
	result, err := readResult(reportFile, request.Scenario)
	if err != nil {
		return Result{}, fmt.Errorf("chainsaw ended with code %d: %w\n%s", code, err, tail(log))
	}
	// Chainsaw's report knows operations only; what fails around them shows in its exit code.
	if result.Passed != (code == 0) {
		return Result{}, fmt.Errorf("chainsaw ended with code %d, which its report does not explain; the end of %s:\n%s", code, log, tail(log))
	}
	return result, nil
}

// chainsaw runs the process and returns its exit code; its output goes to the file log.
func (r Runner) chainsaw(ctx context.Context, request Request, overrides, reportFile, log string) (int, error) {
	out, err := os.Create(log)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, r.Chainsaw, r.arguments(request, overrides, reportFile)...)
	cmd.Dir = filepath.Dir(overrides)
	cmd.Env = environment(os.Environ(), request.Kubeconfig)
	cmd.Stdout = out
	cmd.Stderr = out
	cmd.WaitDelay = killDelay
	ownGroup(cmd)
	err = cmd.Run()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("chainsaw: %w; the end of %s:\n%s", err, log, tail(log))
	}
	return 0, nil
}

func (r Runner) arguments(request Request, overrides, reportFile string) []string {
	args := []string{
		"test", filepath.Join(r.Suite.Dir, request.Scenario),
		"--config", filepath.Join(r.Suite.Dir, configurationFile),
		"--values", filepath.Join(r.Suite.Dir, valuesFile),
		"--values", overrides,
		"--report-format", "JSON",
		"--report-path", filepath.Dir(reportFile),
		"--report-name", filepath.Base(reportFile),
		"--no-color",
	}
	if request.Namespace != "" {
		args = append(args, "--namespace", request.Namespace)
	}
	if request.AssertTimeout > 0 {
		args = append(args, "--assert-timeout", request.AssertTimeout.String())
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
