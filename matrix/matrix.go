// Package matrix runs the upgrade matrix: it plans the cells of a compatibility file, resolves
// the artifacts they need, runs them, and keeps evidence and report in the checkout.
package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/cell"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/filelock"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// ErrInput marks a mistake in what was given to the matrix: nothing was started.
var ErrInput = errors.New("bad input")

// infrastructureAttempts is how often a cell is run whose cluster or registry failed.
const infrastructureAttempts = 2

// Options say what to run and where.
type Options struct {
	// Repository is the root of the checkout of the operator, CacheDir the matrix's folder in the user's cache.
	Repository string
	CacheDir   string
	// Tools is the root of the checkout that the matrix's tools are built from. Default: Repository.
	Tools string
	// File is the compatibility file.
	File string
	// Provider is the name of the cluster provider.
	Provider string
	// Published pulls releases and runtime images as they are published, as far as they are, from the registries that
	// Mirrors stand in for; a mirror alone says so, too.
	Published bool
	Mirrors   []artifact.Mirror
	// Bundle is an archive from which everything is taken; empty if it is built or pulled.
	Bundle string
	// Kubernetes, Rows and Cells narrow the plan; nil keeps what the file says.
	Kubernetes, Rows, Cells []string
	// Jobs is how many cells run at once.
	Jobs int
	// Fresh runs cells again whose result is still valid.
	Fresh bool
	// Retain keeps the clusters when their cells end.
	Retain bool
	// Observer is told what happens.
	Observer Observer
}

// Observer is told what the matrix does, for a person who waits. Its methods may be called
// from several goroutines.
type Observer interface {
	cell.Observer
	// TaskStarted, TaskProgress and TaskEnded tell of the preparations.
	TaskStarted(task string)
	TaskProgress(task, text string)
	TaskEnded(task string, took time.Duration, err error)
	// CellEnded tells the verdict of a cell; reused that it is that of an earlier run.
	CellEnded(cell *evidence.Cell, reused bool)
}

// Paths in a checkout that the matrix writes.
const (
	EvidenceDir = "evidence"
	ReportFile  = "UPGRADE-MATRIX.md"

	compatibilityFile = "compatibility.yaml"
)

// Load reads and checks the compatibility file, and plans its cells.
func Load(ctx context.Context, o Options) ([]plan.Cell, error) {
	_, cells, err := o.load(ctx)
	return cells, err
}

func (o Options) load(ctx context.Context) (*compat.File, []plan.Cell, error) {
	file, err := compat.Load(o.File)
	if err != nil {
		return nil, nil, inputError(err)
	}
	if err := file.CheckCommits(ctx, git.Repository{Dir: o.Repository}); err != nil {
		return nil, nil, inputError(err)
	}
	provider, err := o.provider()
	if err != nil {
		return nil, nil, inputError(err)
	}
	for _, version := range o.Kubernetes {
		if provider.available != nil && compat.CheckKubernetes(version) == nil && !slices.Contains(provider.available, version) {
			return nil, nil, inputError(fmt.Errorf("the provider %s has no Kubernetes %s: choose one of %s", o.Provider, version, strings.Join(provider.available, ", ")))
		}
	}
	chart, err := artifact.Metadata(o.Repository, file.Operator.Chart.Path)
	if err != nil {
		return nil, nil, inputError(err)
	}
	cells, err := plan.Cells(file, plan.Options{
		Provider: o.Provider, Available: provider.available, Candidate: chart.Version,
		Kubernetes: o.Kubernetes, Rows: o.Rows, Cells: o.Cells,
	})
	if err != nil {
		return nil, nil, inputError(err)
	}
	return file, cells, nil
}

// Subject is the operator that the file is about, as the checkout of its repository has it.
func Subject(repository string, file *compat.File) (check.Subject, error) {
	folder := file.Operator.Chart.Path
	chart, err := artifact.Metadata(repository, folder)
	if err != nil {
		return check.Subject{}, inputError(err)
	}
	crds, err := artifact.CRDs(repository, folder)
	if err != nil {
		return check.Subject{}, inputError(err)
	}
	subject, err := check.NewSubject(file.Operator, chart.Name, crds)
	if err != nil {
		return check.Subject{}, inputError(fmt.Errorf("%s: %w", folder, err))
	}
	return subject, nil
}

// tools is the checkout that the matrix's tools are built from.
func (o Options) tools() string { return cmp.Or(o.Tools, o.Repository) }

// inputErr is an error whose cause is ErrInput, without a text of its own.
type inputErr struct{ error }

func (e inputErr) Unwrap() error        { return e.error }
func (e inputErr) Is(target error) bool { return target == ErrInput }

func inputError(err error) error { return inputErr{err} }

// Run runs the planned cells and returns their evidence, in the order of the plan. The error is
// non-nil if something prevented the run; cells that fail are no error.
func Run(ctx context.Context, o Options) ([]*evidence.Cell, error) {
	file, cells, err := o.load(ctx)
	if err != nil {
		return nil, err
	}
	if err := o.checkEvidence(cells); err != nil {
		return nil, err
	}
	unlock, err := o.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	restore, err := o.useTemp()
	if err != nil {
		return nil, err
	}
	defer restore()
	prepared, err := prepare(ctx, o, file, cells)
	if err != nil {
		return nil, err
	}
	defer prepared.registry.Close()
	results := make([]*evidence.Cell, len(cells))
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return prepared.chainsaw.build(groupCtx, o) })
	group.Go(func() error { return prepared.cells(groupCtx, cells, results) })
	runErr := group.Wait()
	if err := prepared.publish(context.WithoutCancel(ctx), results); err != nil {
		return results, errors.Join(runErr, err)
	}
	return results, runErr
}

// checkEvidence finds out before the run whether the report can be made after it: that takes the
// documents of all cells, of which those of the run are written anew.
func (o Options) checkEvidence(cells []plan.Cell) error {
	var anew []string
	for _, c := range cells {
		anew = append(anew, c.ID)
	}
	if _, err := (evidence.Store{Dir: filepath.Join(o.Repository, EvidenceDir)}).All(anew...); err != nil {
		return inputError(err)
	}
	return nil
}

// lock keeps a second run of the same checkout from taking the first one's clusters.
func (o Options) lock() (unlock func(), err error) {
	dir := RunDir(o.Repository, o.CacheDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder for the run: %w", err)
	}
	unlock, err = filelock.Try(filepath.Join(dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, fmt.Errorf("the matrix is being run in this checkout already: wait for its end, or end it: %w", err)
	}
	return unlock, err
}

// useTemp gives this process and its children a folder for temporary files that the next run
// empties: a run that is killed can't do that itself. The caller holds the lock.
func (o Options) useTemp() (restore func(), err error) {
	dir := filepath.Join(RunDir(o.Repository, o.CacheDir), "tmp")
	if err := emptyDir(dir); err != nil {
		return nil, fmt.Errorf("empty the folder for temporary files: %w", err)
	}
	before, set := os.LookupEnv(tempVariable)
	if err := os.Setenv(tempVariable, dir); err != nil {
		return nil, fmt.Errorf("use the folder for temporary files: %w", err)
	}
	return func() {
		if set {
			_ = os.Setenv(tempVariable, before)
		} else {
			_ = os.Unsetenv(tempVariable)
		}
		_ = emptyDir(dir) // it stays for clusters that are kept
	}, nil
}

// tempVariable names the folder for temporary files.
const tempVariable = "TMPDIR"

// emptyDir makes the folder, or deletes what it holds.
func emptyDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// RunDir is the folder, in the cache, for the state of the runs of one checkout: cells/<id> has
// the state, logs and diagnostics of a cell, evidence the documents while they grow, tmp the
// temporary files.
func RunDir(repository, cacheDir string) string {
	return filepath.Join(cacheDir, "runs", contentkey.Of(map[string]string{"repository": repository})[:12])
}

// cells runs the cells, as many at once as are wanted, and puts their evidence into results.
func (p *prepared) cells(ctx context.Context, cells []plan.Cell, results []*evidence.Cell) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(p.options.Jobs, 1))
	for _, i := range plan.Order(cells, plan.Predict(cells, p.options.History())) {
		group.Go(func() error {
			result, err := p.cell(ctx, cells[i])
			results[i] = result
			return err
		})
	}
	return group.Wait()
}

// cell returns the evidence of one planned cell: that of an earlier run if it is still valid,
// else that of a run now.
func (p *prepared) cell(ctx context.Context, planned plan.Cell) (*evidence.Cell, error) {
	spec := p.spec(planned)
	if planned.Skip.Code != "" {
		result := skipped(spec, planned)
		p.options.Observer.CellEnded(result, false)
		return result, nil
	}
	store := evidence.Store{Dir: filepath.Join(p.runDir, "evidence")}
	if previous, err := store.Load(spec.ID); err == nil && !p.options.Fresh && previous.Key == spec.Key && previous.Verdict == evidence.Proven {
		p.options.Observer.CellEnded(previous, true)
		return previous, nil
	}
	env := cell.Environment{
		Subject:  p.subject,
		Dir:      filepath.Join(p.runDir, "cells", spec.ID),
		Provider: p.provider.clusters, Attach: p.provider.attach,
		Mirrors: p.registry.Mirrors(), Local: p.registry.Local,
		Inside: p.inside.Ref, Trees: p.trees, Scenarios: p.chainsaw.runner, Store: store,
		Observe: p.options.Observer, Retain: p.options.Retain,
	}
	var result *evidence.Cell
	for range infrastructureAttempts {
		var err error
		if result, err = cell.Run(ctx, spec, env); err != nil {
			return result, err
		}
		if result.Verdict != evidence.Infrastructure {
			break
		}
	}
	p.options.Observer.CellEnded(result, false)
	return result, nil
}

func skipped(spec cell.Spec, planned plan.Cell) *evidence.Cell {
	now := time.Now().UTC()
	return &evidence.Cell{
		APIVersion: evidence.APIVersion, Kind: evidence.Kind, ID: spec.ID, Key: spec.Key,
		Upgrade: spec.Upgrade, From: spec.From, Through: spec.Through, To: spec.To, Runtime: spec.Runtime, Tool: spec.Tool,
		Cluster: evidence.Cluster{Provider: planned.Provider, Kubernetes: planned.Kubernetes},
		Started: now, Finished: &now, Verdict: evidence.NotRun,
		Reason: fmt.Sprintf("%s: %s", planned.Skip.Code, planned.Skip.Text), Reproduce: spec.Reproduce,
	}
}

// publish copies the evidence of finished cells into the checkout and writes the report.
func (p *prepared) publish(ctx context.Context, results []*evidence.Cell) error {
	store := evidence.Store{Dir: filepath.Join(p.options.Repository, EvidenceDir)}
	for _, result := range results {
		if result == nil || result.Verdict == evidence.Unfinished {
			continue
		}
		// A cluster that failed says nothing about the product, nor does a cell that was not run:
		// they take no proof away.
		if previous, err := store.Load(result.ID); !result.Verdict.Final() && err == nil && previous.Verdict.Final() {
			continue
		}
		if err := store.Save(result); err != nil {
			return err
		}
	}
	// The documents are of the checkout's own file, whichever was run.
	_, err := WriteDocuments(ctx, Options{
		Repository: p.options.Repository, CacheDir: p.options.CacheDir, Tools: p.options.Tools, File: filepath.Join(p.options.Repository, compatibilityFile),
	})
	return err
}
