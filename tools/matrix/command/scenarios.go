package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
	"github.com/trussiumhq/trussium-operator/matrix/scenario/trial"
)

// redScenarios says which scenarios are red; it counts as red like a cell does.
type redScenarios struct{ names []string }

func (e redScenarios) Error() string        { return "red: " + strings.Join(e.names, ", ") }
func (e redScenarios) Is(target error) bool { return target == errRed }

// scenarioSettings are the flags of the command.
type scenarioSettings struct {
	selector   string
	release    string
	namespace  string
	kubernetes string
	repeat     int
}

func newScenarios(s *settings, stdout io.Writer) *cobra.Command {
	var flags scenarioSettings
	cmd := &cobra.Command{
		Use:   "scenarios [NAME...]",
		Short: "Run the scenarios of chainsaw/ against one release of the operator on a cluster of its own",
		RunE: func(cmd *cobra.Command, names []string) error {
			return runScenarios(cmd.Context(), s, flags, names, stdout)
		},
	}
	cmd.Flags().StringVar(&flags.selector, "selector", "", "run only the scenarios with these labels, as in level=smoke")
	cmd.Flags().StringVar(&flags.release, "release", "", "a release of the compatibility file, with the scenarios that it supports (default: the checkout)")
	cmd.Flags().StringVar(&flags.namespace, "namespace", "", "let the operator work in this namespace only, and a user with the rights of chainsaw/role.yaml run all scenarios there")
	cmd.Flags().StringVar(&flags.kubernetes, "kubernetes", "", "exact Kubernetes version (default: the provider's)")
	s.addProviderFlag(cmd)
	s.addSourceFlags(cmd)
	s.addBundleFlag(cmd)
	cmd.Flags().IntVar(&flags.repeat, "repeat", 1, "how often to run them; the first red run is the last")
	return cmd
}

func runScenarios(ctx context.Context, s *settings, flags scenarioSettings, names []string, stdout io.Writer) error {
	options, err := s.options()
	if err != nil {
		return err
	}
	file, err := compat.Load(options.File)
	if err != nil {
		return usageError{err}
	}
	subject, err := matrix.Subject(options.Repository, file)
	if err != nil {
		return err
	}
	suite := scenario.Suite{Dir: filepath.Join(options.Repository, filepath.FromSlash(subject.Scenarios))}
	release, err := chooseRelease(options, file, flags.release)
	if err != nil {
		return err
	}
	wanted, err := chooseScenarios(suite, flags, names, release.Version)
	if err != nil {
		return usageError{err}
	}
	if _, err := options.Clusters(nil); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "scenarios-")
	if err != nil {
		return fmt.Errorf("make a folder for the run: %w", err)
	}
	fmt.Fprintf(stdout, "%d scenarios against operator %s; logs in %s\n", len(wanted), release.Version, dir)
	screen := newConsole(stdout)
	r := scenarioRun{options: options, subject: subject, tags: tagsOf(file), flags: flags, screen: screen, dir: dir, runner: scenario.Runner{Suite: suite}}
	if err := r.prepare(ctx, release); err != nil {
		return versionError(err)
	}
	defer r.stop()
	for round := range flags.repeat {
		if flags.repeat > 1 {
			screen.ended("run %d of %d", round+1, flags.repeat)
		}
		if err := r.round(ctx, wanted); err != nil {
			return err
		}
	}
	return nil
}

// chooseRelease finds the version in the compatibility file; an empty one is the checkout.
func chooseRelease(options matrix.Options, file *compat.File, version string) (compat.OperatorRelease, error) {
	if version == "" {
		chart, err := artifact.Metadata(options.Repository, file.Operator.Chart.Path)
		if err != nil {
			return compat.OperatorRelease{}, usageError{err}
		}
		return compat.OperatorRelease{Version: chart.Version}, nil
	}
	release, ok := file.OperatorRelease(version)
	if !ok {
		return compat.OperatorRelease{}, usageError{fmt.Errorf("--release %s: %s lists no such release", version, options.File)}
	}
	return release, nil
}

// tagsOf are the images for the scenarios: of another operator those of its first row.
func tagsOf(file *compat.File) trial.Tags {
	if file.Operator.Runtime.Image == artifact.RuntimeRepository {
		return trial.Usual
	}
	// The loader made sure that what a row refers to is listed.
	from, _ := file.RuntimeRelease(file.Upgrades[0].Baseline)
	to, _ := file.RuntimeRelease(file.Upgrades[0].Target)
	return trial.Tags{From: from.ImageTag, To: to.ImageTag}
}

// chooseScenarios returns the names of the scenarios that the command line asks for and the
// release supports.
func chooseScenarios(suite scenario.Suite, flags scenarioSettings, names []string, version string) ([]string, error) {
	selector, err := labels.Parse(flags.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	matching, err := suite.Scenarios(selector)
	if err != nil {
		return nil, err
	}
	supported, err := scenario.Supported(matching, version)
	if err != nil {
		return nil, err
	}
	chosen := scenario.Names(supported)
	for _, name := range names {
		if !slices.Contains(chosen, name) {
			return nil, fmt.Errorf("scenario %s: choose from %s", name, strings.Join(chosen, ", "))
		}
	}
	switch {
	case len(names) > 0:
		return names, nil
	case len(chosen) == 0:
		return nil, fmt.Errorf("operator %s supports no scenario with the labels %q", version, flags.selector)
	}
	return chosen, nil
}

// scenarioRun is a cluster with a release in it.
type scenarioRun struct {
	options matrix.Options
	subject check.Subject
	tags    trial.Tags
	flags   scenarioSettings
	screen  *console
	dir     string
	runner  scenario.Runner
	stage   *trial.Stage
	request scenario.Request
}

func (r *scenarioRun) task(name string, run func(progress func(string)) error) error {
	r.screen.TaskStarted(name)
	start := time.Now()
	err := run(func(text string) { r.screen.TaskProgress(name, text) })
	r.screen.TaskEnded(name, time.Since(start), err)
	return err
}

// prepare brings up the cluster with the release.
func (r *scenarioRun) prepare(ctx context.Context, wanted compat.OperatorRelease) error {
	builder := r.options.Builder()
	builder.Operator = &r.subject.Operator
	var err error
	if builder.Bundle, err = r.options.OpenBundle(ctx); err != nil {
		return err
	}
	clusters, err := r.options.Clusters(builder.Bundle)
	if err != nil {
		return err
	}
	var release artifact.Release
	var images trial.Images
	if err := r.task("chainsaw", func(progress func(string)) (err error) {
		if builder.Bundle != nil {
			bundled, err := matrix.Chainsaw(builder.Bundle)
			r.runner.Chainsaw = bundled.Path
			return err
		}
		r.runner.Chainsaw, err = scenario.Program(r.options.Tools).Cached(ctx, r.options.CacheDir, progress)
		return err
	}); err != nil {
		return err
	}
	if err := r.task("operator and runtime images", func(progress func(string)) (err error) {
		builder.Progress = progress
		if r.flags.release == "" {
			release, err = builder.Checkout(ctx)
		} else {
			release, err = builder.Release(ctx, wanted.Version, wanted.Commit)
		}
		if err != nil {
			return err
		}
		images, err = trial.Resolve(ctx, &builder, r.tags)
		return err
	}); err != nil {
		return err
	}
	return r.task("cluster with operator "+release.Version, func(progress func(string)) (err error) {
		r.stage, err = trial.Start(ctx, trial.Options{
			Provider: clusters, Kubernetes: r.flags.kubernetes,
			Dir: r.dir, Images: images, Artifacts: []artifact.Artifact{release.Chart, release.Image}, Progress: progress,
		})
		if err != nil {
			return err
		}
		r.request = scenario.Request{
			Kubeconfig: r.stage.Cluster.Kubeconfig(), Namespace: r.flags.namespace, Values: r.stage.Values, LogDir: r.dir,
		}
		if err := r.stage.Install(ctx, r.subject, release, r.flags.namespace); err != nil {
			r.stop()
			return err
		}
		if r.flags.namespace != "" {
			r.request.Kubeconfig, err = r.stage.Member(ctx, r.flags.namespace, filepath.Join(r.runner.Suite.Dir, "role.yaml"))
		}
		if err != nil {
			r.stop()
		}
		return err
	})
}

// stop ends the cluster; the logs of the run stay.
func (r *scenarioRun) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), downTimeout)
	defer cancel()
	if err := r.stage.Stop(ctx); err != nil {
		r.screen.ended("the cluster did not end cleanly: %v", err)
	}
}

// round runs the scenarios once and tells what each of them found.
func (r *scenarioRun) round(ctx context.Context, names []string) error {
	start := time.Now()
	r.request.Progress = func(step string) { r.screen.running("scenarios", step) }
	results, err := r.runner.RunAll(ctx, r.request, names...)
	if err != nil {
		return err
	}
	var red []string
	for _, result := range results {
		if result.Passed {
			r.screen.ended("  ✓ %s (%s)", result.Name, round(result.Duration))
			continue
		}
		red = append(red, result.Name)
		r.screen.ended("  ✗ %s (%s)", result.Name, round(result.Duration))
		for _, line := range result.Lines() {
			r.screen.ended("      %s", line)
		}
	}
	r.screen.ended("%d of %d scenarios passed in %s", len(results)-len(red), len(results), round(time.Since(start)))
	if len(red) > 0 {
		return redScenarios{red}
	}
	return nil
}
