package matrix

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/cell"
	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// scenarios are those that a cell runs.
var scenarios = []string{"roll-forward", "roll-back"}

// prepared is all that the cells of a run share.
type prepared struct {
	options  Options
	subject  check.Subject
	runDir   string
	provider provider
	registry *artifact.Registry
	chainsaw *chainsaw
	// bundle is where everything is taken from; nil if it is built or pulled.
	bundle   *artifact.Bundle
	checkout artifact.Release
	releases map[string]artifact.Release
	runtimes map[string]artifact.Artifact
	// inside is the image of the matrix's own pods, which only clusters with real containers run.
	inside artifact.Artifact
	// trees are the source trees of the releases and of the checkout, by version.
	trees map[string]*static.Tree
	// controls are the content keys of the control planes, by Kubernetes version.
	controls map[string]string
	// common are the key inputs that all cells share.
	common map[string]string
	tool   evidence.Tool
}

// newPrepared has nothing built yet.
func newPrepared(o Options, file *compat.File) (*prepared, error) {
	p := &prepared{
		options: o, runDir: RunDir(o.Repository, o.CacheDir), releases: map[string]artifact.Release{}, runtimes: map[string]artifact.Artifact{},
		controls: map[string]string{}, common: map[string]string{},
		chainsaw: newChainsaw(o, file.Operator.Scenarios),
	}
	var err error
	if p.subject, err = Subject(o.Repository, file); err != nil {
		return nil, err
	}
	if p.provider, err = o.provider(); err != nil {
		return nil, inputError(err)
	}
	return p, nil
}

// prepare builds or finds everything that the cells which are to be run need.
func prepare(ctx context.Context, o Options, file *compat.File, cells []plan.Cell) (*prepared, error) {
	p, err := newPrepared(o, file)
	if err != nil {
		return nil, err
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(c plan.Cell) bool { return c.Skip.Code != "" })
	if err := p.openBundle(ctx, cells); err != nil {
		return nil, err
	}
	p.provider.clusters = pace(p.provider.clusters, runtime.GOMAXPROCS(0))
	if err := p.build(ctx, cells); err != nil {
		return nil, err
	}
	if err := p.inputs(ctx); err != nil {
		return nil, err
	}
	if err := p.plant(ctx, cells); err != nil {
		return nil, err
	}
	var artifacts []artifact.Artifact
	for _, release := range append(values(p.releases), p.checkout) {
		artifacts = append(artifacts, release.Chart, release.Image)
	}
	if p.provider.realContainers {
		artifacts = append(artifacts, p.inside)
	}
	if p.registry, err = p.serve(ctx, append(artifacts, values(p.runtimes)...)); err != nil {
		return nil, err
	}
	return p, nil
}

// plant gets the source trees that the static checks read.
func (p *prepared) plant(ctx context.Context, cells []plan.Cell) error {
	if p.bundle != nil { // reading a tree takes its modules, and compiles it
		return nil
	}
	p.trees = map[string]*static.Tree{p.checkout.Version: p.tree(p.options.Repository)}
	for _, c := range cells {
		for _, listed := range c.Sources() {
			release := p.releases[listed.Version]
			if p.trees[listed.Version] != nil || release.Commit == "" {
				continue
			}
			dir := filepath.Join(p.runDir, "trees", release.Commit)
			if err := p.extract(ctx, release.Commit, dir); err != nil {
				return err
			}
			p.trees[listed.Version] = p.tree(dir)
		}
	}
	return nil
}

// tree is the source tree in dir.
func (p *prepared) tree(dir string) *static.Tree {
	return static.NewTree(dir, static.Tools{Repository: p.options.tools(), CacheDir: p.options.CacheDir})
}

// extract keeps the tree of a commit in dir, which is whole or not there.
func (p *prepared) extract(ctx context.Context, commit, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	temp := dir + ".tmp"
	if err := os.RemoveAll(temp); err != nil {
		return fmt.Errorf("keep the source of commit %s: %w", commit, err)
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return fmt.Errorf("keep the source of commit %s: %w", commit, err)
	}
	if err := (git.Repository{Dir: p.options.Repository}).Extract(ctx, commit, temp); err != nil {
		return err
	}
	if err := os.Rename(temp, dir); err != nil {
		return fmt.Errorf("keep the source of commit %s: %w", commit, err)
	}
	return nil
}

// serve starts the registry where the one of the run before was: a cluster that was retained pulls
// from there.
func (p *prepared) serve(ctx context.Context, artifacts []artifact.Artifact) (*artifact.Registry, error) {
	file := filepath.Join(p.runDir, "registry")
	address, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the address of the registry of the run before: %w", err)
	}
	served, err := artifact.ServeAt(ctx, string(address), artifacts...)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(served.Addr()), 0o600); err != nil {
		return nil, fmt.Errorf("keep the address of the registry: %w", errors.Join(err, served.Close()))
	}
	return served, nil
}

// build runs the tasks that take long the first time, one after the other: each of them uses
// all cores when it compiles.
func (p *prepared) build(ctx context.Context, cells []plan.Cell) error {
	builder := p.builder()
	task := func(name string, run func(progress func(string)) error) error {
		observer := p.options.Observer
		observer.TaskStarted(name)
		start := time.Now()
		progress := func(text string) { observer.TaskProgress(name, text) }
		builder.Progress = progress
		err := run(progress)
		observer.TaskEnded(name, time.Since(start), err)
		return err
	}
	for _, c := range cells {
		if _, done := p.controls[c.Kubernetes]; done || p.bundle != nil {
			continue
		}
		if err := task(fmt.Sprintf("%s cluster, Kubernetes %s", p.options.Provider, c.Kubernetes), func(progress func(string)) (err error) {
			p.controls[c.Kubernetes], err = p.provider.prepare(ctx, c.Kubernetes, progress)
			return err
		}); err != nil {
			return err
		}
	}
	if err := task("operator of the checkout", func(func(string)) (err error) {
		p.checkout, err = builder.Checkout(ctx)
		return err
	}); err != nil {
		return artifactError(err)
	}
	if p.provider.realContainers {
		if err := task("program for pods of the matrix", func(func(string)) (err error) {
			own := artifact.Builder{Repository: p.options.tools(), CacheDir: p.options.CacheDir, Progress: builder.Progress}
			p.inside, err = own.Inside(ctx)
			return err
		}); err != nil {
			return artifactError(err)
		}
	}
	for _, c := range cells {
		if err := p.buildFor(ctx, &builder, c, task); err != nil {
			return artifactError(err)
		}
	}
	return nil
}

// buildFor resolves the artifacts of one cell that no earlier one had resolved.
func (p *prepared) buildFor(ctx context.Context, builder *artifact.Builder, c plan.Cell, task func(string, func(func(string)) error) error) error {
	for _, release := range c.Sources() {
		if _, done := p.releases[release.Version]; done {
			continue
		}
		if err := task("operator "+release.Version, func(func(string)) (err error) {
			p.releases[release.Version], err = builder.Release(ctx, release.Version, release.Commit)
			return err
		}); err != nil {
			return err
		}
	}
	for _, release := range []compat.RuntimeRelease{c.Baseline, c.Target} {
		tag := release.ImageTag
		if _, done := p.runtimes[tag]; done {
			continue
		}
		if err := task("runtime "+tag, func(func(string)) error {
			image, err := builder.Runtime(ctx, tag, artifact.VariantNone)
			if err == nil && release.Digest != "" && !image.Simulated && image.Digest != release.Digest {
				err = inputError(fmt.Errorf("%s is %s, and the decision in %s is about %s: triage decides about the new one", image.Ref, image.Digest, p.options.File, release.Digest))
			}
			p.runtimes[tag] = image
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// artifactError marks the mistakes among the errors of the artifact package.
func artifactError(err error) error {
	if errors.Is(err, artifact.ErrInput) {
		return inputError(err)
	}
	return err
}

// inputs gathers what every result depends on besides the artifacts.
func (p *prepared) inputs(ctx context.Context) error {
	for _, name := range scenarios {
		digest, err := p.chainsaw.suite.Digest(name)
		if err != nil {
			return inputError(err)
		}
		p.common["scenario."+name] = digest
	}
	p.common["inside"] = p.inside.Digest
	var err error
	if p.common["chainsaw"], err = p.chainsaw.key(ctx); err != nil {
		return err
	}
	// Comments of the source are read, too, which neither chart nor image hold.
	if p.common["source"], err = p.tree(p.options.Repository).Digest(); err != nil {
		return err
	}
	if p.bundle == nil { // without source trees it is not asked
		if p.common["controller-gen"], err = static.ControllerGen(p.options.tools()).Key(ctx); err != nil {
			return err
		}
	}
	declared, err := json.Marshal(p.subject.Operator)
	if err != nil {
		return fmt.Errorf("write what is declared of the operator: %w", err)
	}
	p.common["operator"] = string(declared)
	self, err := selfDigest()
	if err != nil {
		return err
	}
	p.common["tool"] = self
	p.tool = evidence.Tool{
		Commit: p.checkout.Commit, Dirty: p.checkout.Dirty,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	return nil
}

// selfDigest is the digest of this program, and so of the code of all checks.
func selfDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the matrix's own program: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the matrix's own program: %w", err)
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", fmt.Errorf("read the matrix's own program: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// again is the command that runs a cell by itself and keeps its cluster.
func (o Options) again(c plan.Cell) string {
	words := []string{"go run ./tools/matrix run --fresh --retain --cell", c.ID}
	if c.Provider != embedded.ProviderName {
		words = append(words, "--provider", c.Provider)
	}
	if o.Tools != "" && o.Tools != o.Repository {
		words = append(words, "--repository PATH") // which is another one everywhere
	}
	if o.File != "" && filepath.Base(o.File) != compatibilityFile {
		words = append(words, "--file", filepath.Base(o.File))
	}
	if len(o.Kubernetes) > 0 { // the file may not name the version
		words = append(words, "--kubernetes", c.Kubernetes)
	}
	return strings.Join(words, " ")
}

// spec is what a planned cell is about, with all artifacts resolved.
func (p *prepared) spec(c plan.Cell) cell.Spec {
	spec := cell.Spec{
		ID: c.ID,
		Upgrade: evidence.Upgrade{
			Row: c.Row.ID, Values: string(c.Row.Values), CRDs: string(c.Row.CRDs),
			Rollback: string(c.Row.Rollback), RollbackReason: c.Row.RollbackReason,
		},
		From: p.release(c.From), To: toRelease(p.checkout),
		Runtime:    evidence.RuntimeImages{Baseline: p.runtime(c.Baseline.ImageTag), Target: p.runtime(c.Target.ImageTag)},
		Kubernetes: c.Kubernetes, Tool: p.tool,
		Reproduce: p.options.again(c),
	}
	for _, release := range c.Through {
		spec.Through = append(spec.Through, p.release(release))
	}
	inputs := map[string]string{"control": p.controls[c.Kubernetes]}
	for name, a := range map[string]evidence.Artifact{
		"from.chart": spec.From.Chart, "from.image": spec.From.Image, "to.chart": spec.To.Chart, "to.image": spec.To.Image,
		"runtime.baseline": spec.Runtime.Baseline, "runtime.target": spec.Runtime.Target,
	} {
		inputs[name] = a.Digest
	}
	inputs["from.commit"] = spec.From.Commit
	for i, release := range spec.Through {
		inputs[fmt.Sprintf("through.%d.commit", i)] = release.Commit
		inputs[fmt.Sprintf("through.%d.chart", i)] = release.Chart.Digest
		inputs[fmt.Sprintf("through.%d.image", i)] = release.Image.Digest
	}
	for name, value := range p.common {
		inputs[name] = value
	}
	spec.Key = c.Key(inputs)
	return spec
}

// runtime is the runtime image with that tag. Nobody resolves those of cells that are not run.
func (p *prepared) runtime(tag string) evidence.Artifact {
	if resolved, ok := p.runtimes[tag]; ok {
		return toArtifact(resolved)
	}
	return evidence.Artifact{Ref: p.subject.Runtime.Image + ":" + tag}
}

// release is a listed release with what is declared about it. Nobody resolves the artifacts of
// those that only cells name which are not run.
func (p *prepared) release(listed compat.OperatorRelease) evidence.Release {
	release := evidence.Release{Version: listed.Version, Commit: listed.Commit}
	if resolved, ok := p.releases[listed.Version]; ok {
		release = toRelease(resolved)
	}
	for _, defect := range listed.KnownDefects {
		release.KnownDefects = append(release.KnownDefects, fmt.Sprintf("%s: %s", defect.ID, defect.Summary))
	}
	return release
}

func toRelease(r artifact.Release) evidence.Release {
	return evidence.Release{
		Version: r.Version, Source: string(r.Source), Commit: r.Commit, Dirty: r.Dirty,
		Chart: toArtifact(r.Chart), Image: toArtifact(r.Image),
	}
}

func toArtifact(a artifact.Artifact) evidence.Artifact {
	return evidence.Artifact{Ref: a.Ref, Digest: a.Digest, Simulated: a.Simulated}
}

func values[K comparable, V any](m map[K]V) []V {
	var out []V
	for _, v := range m {
		out = append(out, v)
	}
	return out
}
