package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/triage"
	"github.com/trussiumhq/trussium-operator/matrix/triage/github"
	"github.com/trussiumhq/trussium-operator/matrix/triage/registry"
)

// Environment variables of GitHub Actions.
const (
	tokenVariable      = "GITHUB_TOKEN"
	apiVariable        = "GITHUB_API_URL"
	repositoryVariable = "GITHUB_REPOSITORY"
)

// triageJitter keeps clients that failed at the same time from trying again at the same time.
const triageJitter = 0.2

// triageSettings are the flags of triage.
type triageSettings struct {
	apply      bool
	output     string
	event      string
	out        string
	url        string
	proposals  string
	runtime    string
	image      string
	mirrors    []string
	imageWait  time.Duration
	githubWait time.Duration
}

func newTriage(s *settings, stdout io.Writer) *cobra.Command {
	t := &triageSettings{}
	cmd := &cobra.Command{
		Use:   "triage",
		Short: "Propose new runtime releases as issues, and close what is decided",
		Long: `Compares the releases of the runtime with the compatibility file. For a release without a decision
it makes a proposal: an issue with the image, what changed in the runtime contract, and what to do
to decide. Proposals that are decided are closed, with the reason.

Without --apply nothing is changed: what would be done is printed, and the texts are written as
files. With --apply it is done, with the token in ` + tokenVariable + `. Running it again does only
what is left.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.run(cmd.Context(), s, stdout, cmd.ErrOrStderr())
		},
	}
	addOutputFlag(cmd, &t.output)
	flags := cmd.Flags()
	flags.BoolVar(&t.apply, "apply", false, "open, comment and close issues (needs "+tokenVariable+")")
	flags.StringVar(&t.event, "event", "", "look only at the release that this `file` names: the payload of a repository_dispatch or release event")
	flags.StringVar(&t.out, "out", "", "`folder` for the proposals (default: in the cache folder)")
	flags.StringVar(&t.url, "github-url", environment(apiVariable, github.DefaultURL), "address of GitHub's API, or of a GitHub Enterprise Server (also "+apiVariable+")")
	flags.StringVar(&t.proposals, "repository", environment(repositoryVariable, "trussiumhq/trussium-operator"), "`repository` of the proposals (also "+repositoryVariable+")")
	flags.StringVar(&t.runtime, "runtime-repository", "trussiumhq/trussium", "`repository` of the runtime's releases")
	flags.StringVar(&t.image, "image", artifact.RuntimeRepository, "`repository` of the runtime's images")
	flags.StringArrayVar(&t.mirrors, "mirror", nil, "registry that stands in for another: `HOST=HOST[:PORT][/PREFIX]`, as in ghcr.io=127.0.0.1:5000")
	flags.DurationVar(&t.imageWait, "image-wait", 6*time.Hour, "how long after a release its image is waited for")
	flags.DurationVar(&t.githubWait, "github-wait", github.DefaultMaxWait, "how long one request to GitHub may take, waits for rate limits included")
	cmd.AddCommand(newDecide(s, stdout))
	return cmd
}

// environment is the value of a variable, or the fallback if it is empty.
func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}

// triageResult is what triage prints for programs.
type triageResult struct {
	// Applied tells that it was done, not only planned. Done is what was changed.
	Applied bool          `json:"applied"`
	Done    []triage.Step `json:"done,omitempty"`
	// Plan is what is left to do, or, if nothing was applied, what would be done. Files are its texts.
	Plan  triage.Plan `json:"plan"`
	Files []string    `json:"files,omitempty"`
}

func (t *triageSettings) run(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	if err := checkOutput(t.output); err != nil {
		return err
	}
	options, err := s.options()
	if err != nil {
		return err
	}
	world, err := t.world(options)
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	if t.output != outputTable {
		screen = newConsole(stderr)
	}
	progress := func(text string) { screen.TaskProgress("triage", text) }
	run, err := t.prepare(world, progress)
	if err != nil {
		return err
	}
	screen.TaskStarted("triage")
	start := time.Now()
	result := triageResult{Applied: t.apply}
	if t.apply {
		result.Done, result.Plan, err = run.Apply(ctx)
	} else {
		result.Plan, err = run.Plan(ctx)
	}
	screen.TaskEnded("triage", time.Since(start), err)
	if err == nil && !t.apply {
		result.Files, err = result.Plan.Write(t.folder(options))
	}
	if err != nil {
		if len(result.Done) == 0 {
			return err
		}
		// What was done before the failure is told; what is left is not known.
		result.Plan = triage.Plan{}
	}
	if err := errors.Join(err, printResult(stdout, t.output, result, result.table)); err != nil {
		return err
	}
	if unseen := result.Plan.Unseen; len(unseen) > 0 {
		return fmt.Errorf("the images of %s could not be looked at, so these releases were not proposed: run the same command again when the registry can be reached", strings.Join(unseen, ", "))
	}
	return nil
}

// folder is where the texts of a dry run are written.
func (t *triageSettings) folder(o matrix.Options) string {
	if t.out != "" {
		return t.out
	}
	return filepath.Join(matrix.RunDir(o.Repository, o.CacheDir), "triage")
}

// world is what is known without GitHub and the registry.
func (t *triageSettings) world(o matrix.Options) (triage.World, error) {
	world := triage.World{Now: time.Now(), ImageWait: t.imageWait, ImageRepository: t.image}
	var err error
	if world.File, err = compat.Load(o.File); err != nil {
		return world, usageError{err}
	}
	if world.Candidate, err = artifact.CheckoutVersion(o.Repository); err != nil {
		return world, usageError{err}
	}
	if world.Evidence, err = (evidence.Store{Dir: filepath.Join(o.Repository, matrix.EvidenceDir)}).All(); err != nil {
		return world, usageError{err}
	}
	if world.Contract, err = triage.OperatorContract(); err != nil {
		return world, err
	}
	if t.event != "" {
		version, err := triage.LoadEvent(t.event)
		if err != nil {
			return world, usageError{err}
		}
		world.Only = []string{version}
	}
	return world, nil
}

func (t *triageSettings) prepare(world triage.World, progress func(string)) (*triage.Run, error) {
	token := strings.TrimSpace(os.Getenv(tokenVariable))
	if t.apply && token == "" {
		return nil, usageError{fmt.Errorf("--apply needs a token: set %s, or leave --apply out to see what would be done", tokenVariable)}
	}
	client, err := github.New(github.Options{
		URL: t.url, Token: token, Runtime: t.runtime, Proposals: t.proposals, MaxWait: t.githubWait, Progress: progress, Jitter: triageJitter,
	})
	if errors.Is(err, github.ErrInput) {
		return nil, usageError{err}
	}
	if err != nil {
		return nil, err
	}
	var mirrors []artifact.Mirror
	for _, text := range t.mirrors {
		mirror, err := artifact.ParseMirror(text)
		if err != nil {
			return nil, usageError{err}
		}
		mirrors = append(mirrors, mirror)
	}
	if err := registry.CheckRepository(t.image); err != nil {
		return nil, usageError{err}
	}
	images, err := registry.New(mirrors)
	if err != nil {
		return nil, err
	}
	return triage.New(client, images, world, progress), nil
}

// describe is a step in one line.
func describe(step triage.Step) string {
	about := step.Version
	if step.Issue != 0 {
		about += fmt.Sprintf(" #%d", step.Issue)
	}
	if step.Action == triage.Nothing {
		return fmt.Sprintf("- %s: %s", about, step.Reason)
	}
	return fmt.Sprintf("%s %s: %s", step.Action, about, step.Reason)
}

// table prints what a maintainer may want to know; decided releases without a proposal are only
// counted.
func (r triageResult) table(w io.Writer) {
	for _, step := range r.Done {
		fmt.Fprintln(w, "✓", describe(step))
	}
	decided := 0
	for _, step := range r.Plan.Steps {
		if step.Action == triage.Nothing && step.Issue == 0 {
			decided++
			continue
		}
		fmt.Fprintln(w, " ", describe(step))
	}
	count := func(n int, one, many, rest string, args ...any) {
		switch n {
		case 0:
			return
		case 1:
			fmt.Fprintf(w, "1 %s", one)
		default:
			fmt.Fprintf(w, "%d %s", n, many)
		}
		fmt.Fprintf(w, rest+"\n", args...)
	}
	count(decided, "release is", "releases are", " decided and without a proposal")
	count(len(r.Plan.PassedOver), "older release is", "older releases are", " not proposed: a newer one was validated")
	count(len(r.Plan.Prereleases), "pre-release is", "pre-releases are", " not proposed: %s", strings.Join(r.Plan.Prereleases, ", "))
	count(len(r.Plan.Strange), "release is", "releases are", " not named vX.Y.Z: %q", r.Plan.Strange)
	if len(r.Plan.Superseded) > 0 {
		fmt.Fprintf(w, "To close proposals of releases that were overtaken: go run ./tools/matrix triage decide %s --superseded-by %s\n", strings.Join(r.Plan.Superseded, " "), r.Plan.Superseding)
	}
	if r.Applied {
		count(len(r.Done), "change was", "changes were", " made")
		if len(r.Done) == 0 {
			fmt.Fprintln(w, "Nothing had to be changed.")
		}
		return
	}
	fmt.Fprintln(w, "Nothing was changed. The texts:")
	for _, path := range r.Files {
		fmt.Fprintln(w, " ", relative(path))
	}
	if r.Plan.Writes() {
		fmt.Fprintln(w, "Run it again with --apply to do it.")
	}
}

// decideSettings are the flags of triage decide.
type decideSettings struct {
	validated, notSelected bool
	supersededBy           string
	reason, impact, digest string
}

func newDecide(s *settings, stdout io.Writer) *cobra.Command {
	d := &decideSettings{}
	cmd := &cobra.Command{
		Use:   "decide vX.Y.Z... --validated|--not-selected|--superseded-by vX.Y.Z",
		Short: "Write decisions about runtime releases into the compatibility file",
		Long: `Writes the decision about one or several runtime releases into runtimeReleases of the compatibility
file, and leaves every other byte of it as it is. The next run of triage closes their proposals.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("name a release, as in: matrix triage decide v1.30.0 --not-selected")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return d.run(args, s, stdout) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&d.validated, "validated", false, "it belongs to the validation set")
	flags.BoolVar(&d.notSelected, "not-selected", false, "it does not")
	flags.StringVar(&d.supersededBy, "superseded-by", "", "this later `release` was selected in its place")
	flags.StringVar(&d.reason, "reason", "", "why, in one line")
	flags.StringVar(&d.impact, "impact", "", "what it means for the runtime contract: contract-change, representative or routine")
	flags.StringVar(&d.digest, "digest", "", "digest of the image that the decision is about: sha256:...")
	return cmd
}

// decision is what the flags say, without a version.
func (d *decideSettings) decision(versions []string) (compat.RuntimeDecision, error) {
	out := compat.RuntimeDecision{SupersededBy: d.supersededBy, Reason: d.reason, Digest: d.digest, ContractImpact: compat.Impact(d.impact)}
	given := 0
	for decision, set := range map[compat.Decision]bool{
		compat.DecisionValidated: d.validated, compat.DecisionNotSelected: d.notSelected, compat.DecisionSuperseded: d.supersededBy != "",
	} {
		if set {
			given++
			out.Decision = decision
		}
	}
	impacts := []compat.Impact{"", compat.ImpactContractChange, compat.ImpactRepresentative, compat.ImpactRoutine}
	switch {
	case given != 1:
		return out, usageError{errors.New("give one of --validated, --not-selected and --superseded-by vX.Y.Z")}
	case !slices.Contains(impacts, out.ContractImpact):
		return out, usageError{fmt.Errorf("--impact %q: use one of contract-change, representative, routine", d.impact)}
	case d.digest != "" && len(versions) > 1:
		return out, usageError{errors.New("--digest is for one release: decide them one after the other")}
	}
	return out, nil
}

func (d *decideSettings) run(versions []string, s *settings, stdout io.Writer) error {
	decision, err := d.decision(versions)
	if err != nil {
		return err
	}
	options, err := s.options()
	if err != nil {
		return err
	}
	before, err := os.ReadFile(options.File)
	if err != nil {
		return usageError{fmt.Errorf("read the compatibility file: %w", err)}
	}
	after := before
	for _, version := range versions {
		decision.Version = version
		if after, err = compat.Decide(options.File, after, decision); err != nil {
			return usageError{err}
		}
	}
	if string(after) == string(before) {
		fmt.Fprintf(stdout, "%s says so already\n", options.File)
		return nil
	}
	if err := replaceFile(options.File, after); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "wrote %s: %s %s\n", options.File, strings.Join(versions, ", "), decision.Decision)
	return nil
}

// replaceFile replaces the content of a file in one step. Of a symbolic link the target is
// replaced, not the link.
func replaceFile(path string, content []byte) error {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(target), ".compatibility-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(content)
	if err := errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
