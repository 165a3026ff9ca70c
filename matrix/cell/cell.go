// Package cell runs one cell of the matrix: a fixed list of steps from an empty cluster to a
// rolled-back release, each of which leaves its result in the evidence as soon as it ends.
package cell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// Spec says what a cell is about.
type Spec struct {
	// ID is the cell's id, Key its content key.
	ID, Key string
	Upgrade evidence.Upgrade
	// From is the release that is installed first, To the one that it is upgraded to.
	From, To evidence.Release
	// Through are the releases on the way.
	Through []evidence.Release
	Runtime evidence.RuntimeImages
	// Kubernetes is the wanted version without a leading v; empty for the provider's default.
	Kubernetes string
	Tool       evidence.Tool
	// Reproduce is the command that runs this cell again and keeps its cluster.
	Reproduce string
}

// Environment is what a cell needs from outside.
type Environment struct {
	// Subject is the operator.
	Subject check.Subject
	// Dir is the folder for the cell's state, logs and diagnostics.
	Dir string
	// Provider makes the cluster; Attach returns the cluster that an interrupted run left in
	// the folder, or an error if there is none.
	Provider cluster.Provider
	Attach   func(ctx context.Context, dir string) (cluster.Cluster, error)
	// Mirrors are the registries that stand for the published ones, Local the published
	// reference as the local registry has it.
	Mirrors map[string]string
	Local   func(ref string) string
	// Inside is the reference of the image of tools/inside, for pods of the matrix's own.
	Inside string
	// Trees are the source trees of the releases, by version; a release without one was published.
	Trees map[string]*static.Tree
	// Scenarios returns what runs scenarios, as soon as that is built.
	Scenarios func(context.Context) (scenario.Runner, error)
	// Store gets the evidence after every step.
	Store evidence.Store
	// Observe is told what happens; see Observer.
	Observe Observer
	// Retain keeps the cluster when the cell ends.
	Retain bool
}

// Observer is told what a cell does, for a person who waits. Its methods may be called from
// several goroutines.
type Observer interface {
	// StepStarted is called before a step, StepProgress while it runs, StepEnded after it.
	StepStarted(cell string, step evidence.Step)
	StepProgress(cell string, step evidence.Step, text string)
	StepEnded(cell string, step evidence.Step)
}

const (
	// stopTimeout bounds the end of a cluster, also after the context has ended.
	stopTimeout = 8 * time.Second
	// diagnoseTimeout bounds what is gathered when a step fails.
	diagnoseTimeout = 20 * time.Second
)

// Run runs the cell and returns its evidence. A cell that an interrupted run left behind goes on
// where it stopped if its cluster is still there; otherwise it starts at the beginning. The
// error is non-nil only if the evidence can't be kept or the context ended: a cell that
// fails is no error.
func Run(ctx context.Context, spec Spec, env Environment) (*evidence.Cell, error) {
	r := &run{spec: spec, env: env, steps: steps(spec)}
	if err := os.MkdirAll(env.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("cell %s: %w", spec.ID, err)
	}
	start := r.resume(ctx)
	defer r.end()
	if start == 0 {
		if err := r.save(); err != nil { // what an earlier run left is void from here on
			return r.document, fmt.Errorf("cell %s: %w", spec.ID, err)
		}
	}
	r.document.Verdict = evidence.Unfinished
	for _, step := range r.steps[start:] {
		if err := r.step(ctx, step); err != nil {
			return r.document, fmt.Errorf("cell %s: %w", spec.ID, err)
		}
	}
	r.document.Verdict, r.document.Reason = judge(r.document, broken(spec.From))
	finished := time.Now().UTC()
	r.document.Finished = &finished
	return r.document, r.save()
}

// run is a cell that is being run. What must outlive an interruption is in document and state.
type run struct {
	spec     Spec
	env      Environment
	steps    []step
	document *evidence.Cell
	state    state
	cluster  cluster.Cluster
	target   check.Target
	load     trafficLoad
	// current is the step that is running.
	current evidence.Step
	// observed is the version the API server told, once connected.
	observed string
}

// resume loads what an interrupted run left and decides where to go on: the index of the first
// step to run. A cluster that can't be used is ended.
func (r *run) resume(ctx context.Context) int {
	previous, _ := r.env.Store.Load(r.spec.ID) // unreadable evidence is as good as none
	live, err := r.env.Attach(ctx, r.clusterDir())
	if err != nil {
		live = nil
	}
	stateErr := r.state.load(r.env.Dir)
	start := resumeAt(r.steps, previous, r.state.Begun, r.spec.Key, live != nil && stateErr == nil)
	if start > 0 {
		r.cluster = live
		r.document = previous
		if r.connect(ctx) == nil {
			return start
		}
	}
	if live != nil {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = live.Stop(stopCtx) // Start reports a folder that is still in use
	}
	r.cluster = nil
	r.state = state{}
	r.document = &evidence.Cell{
		APIVersion: evidence.APIVersion, Kind: evidence.Kind,
		ID: r.spec.ID, Key: r.spec.Key,
		Upgrade: r.spec.Upgrade, From: r.spec.From, Through: r.spec.Through, To: r.spec.To, Runtime: r.spec.Runtime,
		Tool: r.spec.Tool, Reproduce: r.spec.Reproduce,
		Started: time.Now().UTC(), Verdict: evidence.Unfinished,
	}
	return 0
}

// step runs one step and records its result.
func (r *run) step(ctx context.Context, step step) error {
	r.current = evidence.Step{ID: step.id, Phase: step.phase, Started: time.Now().UTC(), Check: step.check, Claim: step.claim}
	if step.skip != "" {
		return r.skip(step.skip)
	}
	if reason := notReached(r.document, step); reason != "" {
		return r.skip(reason)
	}
	r.state.Begun = step.id
	if err := r.state.save(r.env.Dir); err != nil {
		return err
	}
	r.env.Observe.StepStarted(r.spec.ID, r.current)
	stepCtx, release := r.whileClusterLives(ctx)
	result, err := step.run(stepCtx, r)
	if errors.Is(context.Cause(stepCtx), errClusterEnded) {
		err = errClusterEnded
	}
	release()
	if errors.Is(err, check.ErrNotApplicable) {
		return r.skip(notApplicable(err))
	}
	r.current.Seconds = float64(time.Since(r.current.Started).Milliseconds()) / 1000
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted in step %s: %w", step.id, ctx.Err())
	}
	r.current.Seen = result.Seen
	switch {
	case err != nil:
		r.current.Outcome = evidence.Failed
		r.current.Reason = infrastructureMark + err.Error()
	default:
		r.current.Outcome = result.Outcome()
		r.current.Reason = result.Reason()
		if len(result.Failures) > 1 {
			r.current.Seen = append(r.current.Seen, result.Failures[1:]...)
		}
	}
	if r.current.Outcome == evidence.Failed {
		if fault := r.pullFault(ctx); fault != "" && err == nil {
			r.current.Reason = infrastructureMark + fault + "; so " + r.current.Reason
		}
		r.diagnose(ctx)
	}
	return r.record()
}

// errClusterEnded says that a step's cluster went away under it.
var errClusterEnded = errors.New("the cluster ended by itself: see its logs in the cell's folder")

// whileClusterLives ends a step whose cluster is no longer there, so that nothing it then sees
// is taken for the product's doing.
func (r *run) whileClusterLives(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if r.cluster != nil {
		ended := r.cluster.Done()
		go func() {
			select {
			case <-ended:
				cancel(errClusterEnded)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

func (r *run) skip(reason string) error {
	r.current.Outcome = evidence.Skipped
	r.current.Reason = reason
	return r.record()
}

func (r *run) record() error {
	r.document.Record(r.current)
	if err := r.save(); err != nil {
		return err
	}
	r.env.Observe.StepEnded(r.spec.ID, r.current)
	return nil
}

// save keeps the state first: evidence that names a step promises what that step has left in it.
func (r *run) save() error {
	if err := r.state.save(r.env.Dir); err != nil {
		return err
	}
	return r.env.Store.Save(r.document)
}

// diagnose gathers what a person needs who looks for the cause, before anything is destroyed.
func (r *run) diagnose(ctx context.Context) {
	if r.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	dir := filepath.Join("diagnostics", r.current.ID)
	path := filepath.Join(r.env.Dir, dir)
	if err := os.RemoveAll(path); err != nil {
		return
	}
	if err := r.cluster.Diagnose(ctx, path); err != nil {
		r.progress("diagnostics are incomplete: " + err.Error())
	}
	r.current.Diagnostics = filepath.ToSlash(dir)
}

func (r *run) progress(text string) {
	r.env.Observe.StepProgress(r.spec.ID, r.current, text)
}

// end stops what is still running, whatever way the cell ended.
func (r *run) end() {
	if r.load != nil {
		r.load.Stop()
	}
	if r.cluster == nil || r.env.Retain {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := r.cluster.Stop(ctx); err != nil {
		r.progress("the cluster did not end cleanly: " + err.Error())
	}
}

func (r *run) clusterDir() string {
	return filepath.Join(r.env.Dir, "cluster")
}
