package artifact

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// ChartPath is the folder, in a checkout of this repository, of the chart.
const ChartPath = "charts/trussium-operator"

// simulatorPackage is the main package, in a checkout of this repository, of the runtime's simulator.
const simulatorPackage = "./tools/runtimesim"

// Generated are the paths in a checkout that the matrix itself writes. Changes there do not
// make a checkout dirty.
var Generated = []string{"UPGRADE-MATRIX.md", "evidence", "README.md", "docs/COMPATIBILITY.md"}

// Builder resolves releases and runtime images. Each method returns at once what the cache has.
type Builder struct {
	// Repository is the root of the checkout.
	Repository string
	// CacheDir holds the artifacts (in oci) and the built programs (in bin). It can be deleted at any time.
	CacheDir string
	// Operator says what is built and under which names. Default: compat.DefaultOperator.
	Operator *compat.Operator
	// Arch is the architecture of the images. Default: this machine's.
	Arch string
	// Published is asked first for releases and runtime images, if it is not nil.
	Published *Published
	// Bundle is where everything is taken from, if it is not nil: nothing is built or pulled then.
	Bundle *Bundle
	// Progress receives one line of text for each step that takes long. It may be nil.
	Progress func(string)
}

// Checkout is the working tree as a release: the candidate. Its version is that of its chart.
func (b *Builder) Checkout(ctx context.Context) (Release, error) {
	if b.Bundle != nil {
		return b.Bundle.Checkout, nil // which ReadBundle compared
	}
	repository := git.Repository{Dir: b.Repository}
	head, err := repository.Head(ctx)
	if err != nil {
		return Release{}, gitError(err)
	}
	changes, err := repository.Changes(ctx, Generated...)
	if err != nil {
		return Release{}, gitError(err)
	}
	packaged, err := packageChart(filepath.Join(b.Repository, b.operator().Chart.Path))
	if err != nil {
		return Release{}, err
	}
	chart, err := b.store().putChart(packaged.key(), packaged)
	if err != nil {
		return Release{}, err
	}
	tag := imageTag(packaged.metadata)
	binary, err := b.operatorProgram(ctx, tag)
	if err != nil {
		return Release{}, err
	}
	// Without the commit among its labels, the image stays the same when a commit does not touch it.
	image, err := b.imageOf(b.operatorImage(tag, ""), binary)
	if err != nil {
		return Release{}, err
	}
	return Release{
		Version: packaged.metadata.Version,
		Source:  SourceCheckout,
		Commit:  head,
		Dirty:   len(changes) > 0,
		Chart:   chart.artifact(b.operator().Chart.Repository + ":" + packaged.metadata.Version),
		Image:   image.artifact(b.operator().Image.Repository + ":" + tag),
	}, nil
}

// Release resolves a release that is not the checkout: as it is published, if Published is set
// and has it, else from the commit that it was cut from.
func (b *Builder) Release(ctx context.Context, version, commit string) (Release, error) {
	if b.Bundle != nil {
		return b.Bundle.release(version)
	}
	if b.Published != nil {
		release, err := b.published(ctx, version)
		if !errors.Is(err, ErrNotPublished) {
			return release, err
		}
		b.progress(fmt.Sprintf("operator %s is not published: building it from commit %s", version, commit))
	}
	return b.Commit(ctx, version, commit)
}

// Commit rebuilds the release from the commit of this repository that it was cut from. The
// checkout is not touched.
func (b *Builder) Commit(ctx context.Context, version, commit string) (Release, error) {
	goVersion, err := goVersion(ctx)
	if err != nil {
		return Release{}, err
	}
	part := func(name string) string {
		operator := b.operator()
		return contentkey.Of(map[string]string{
			"recipe": recipe, "part": name, "version": version, "commit": commit, "go": goVersion, "arch": b.arch(),
			"chart": operator.Chart.Path, "package": operator.Image.Package, "variable": operator.Image.VersionVariable,
		})
	}
	release := Release{Version: version, Source: SourceCommit, Commit: commit}
	chart, chartFound, err := b.store().get(part("chart"))
	if err != nil {
		return Release{}, err
	}
	image, imageFound, err := b.store().get(part("image"))
	if err != nil {
		return Release{}, err
	}
	if !chartFound || !imageFound {
		chart, image, err = b.buildCommit(ctx, version, commit, part)
		if err != nil {
			return Release{}, fmt.Errorf("release %s: %w", version, err)
		}
	}
	content, err := chart.image()
	if err != nil {
		return Release{}, infrastructure(fmt.Errorf("read the chart of release %s from the cache: %w", version, err))
	}
	metadata, err := chartMetadata(content)
	if err != nil {
		return Release{}, infrastructure(fmt.Errorf("read the chart of release %s from the cache: %w", version, err))
	}
	release.Chart = chart.artifact(b.operator().Chart.Repository + ":" + version)
	release.Image = image.artifact(b.operator().Image.Repository + ":" + imageTag(metadata))
	return release, nil
}

// buildCommit packages the chart and builds the operator image of a commit.
func (b *Builder) buildCommit(ctx context.Context, version, commit string, part func(string) string) (chart, image entry, err error) {
	temp, err := os.MkdirTemp("", "release-")
	if err != nil {
		return entry{}, entry{}, infrastructure(fmt.Errorf("create a folder for commit %s: %w", commit, err))
	}
	defer os.RemoveAll(temp)
	tree := filepath.Join(temp, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return entry{}, entry{}, infrastructure(fmt.Errorf("create a folder for commit %s: %w", commit, err))
	}
	if err := (git.Repository{Dir: b.Repository}).Extract(ctx, commit, tree); err != nil {
		return entry{}, entry{}, gitError(err)
	}
	packaged, err := packageChart(filepath.Join(tree, b.operator().Chart.Path))
	if err != nil {
		return entry{}, entry{}, err
	}
	if packaged.metadata.Version != version {
		return entry{}, entry{}, badInput(fmt.Errorf("commit %s has the chart version %s: name the commit that the release was cut from", commit, packaged.metadata.Version))
	}
	tag := imageTag(packaged.metadata)
	program := gobuild.Program{Dir: tree, Package: b.operator().Image.Package, LDFlags: b.versionFlag(tag), GOOS: "linux", GOARCH: b.arch()}
	binary := filepath.Join(temp, "manager") // in the tree there may be a folder of that name
	b.progress(fmt.Sprintf("operator %s: building it from commit %.12s", version, commit))
	if err := program.Build(ctx, binary, b.Progress); err != nil {
		return entry{}, entry{}, buildError(ctx, err)
	}
	chart, err = b.store().putChart(part("chart"), packaged)
	if err != nil {
		return entry{}, entry{}, err
	}
	image, err = b.store().putImage(part("image"), b.operatorImage(tag, commit), binary)
	return chart, image, err
}

// operatorImage describes the operator image. The revision is left out if it is empty.
func (b *Builder) operatorImage(tag, revision string) imageSpec {
	labels := b.labels(path.Base(b.operator().Image.Repository), tag)
	if revision != "" {
		labels["org.opencontainers.image.revision"] = revision
	}
	return imageSpec{Path: "/manager", User: "65532:65532", Arch: b.arch(), Labels: labels}
}

// labels of an image. Of other operators the source and the licence are not known.
func (b *Builder) labels(title, version string) map[string]string {
	if b.Operator == nil || b.operator().Image.Repository == OperatorRepository {
		return labels(title, version)
	}
	return map[string]string{"org.opencontainers.image.title": title, "org.opencontainers.image.version": version}
}

func labels(title, version string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  version,
		"org.opencontainers.image.source":   "https://github.com/trussiumhq/trussium-operator",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}

// versionFlag makes the linker set the version of the operator, if it has a variable for it.
func (b *Builder) versionFlag(version string) string {
	variable := b.operator().Image.VersionVariable
	if variable == "" {
		return ""
	}
	return "-X " + variable + "=" + version
}

func (b *Builder) operator() compat.Operator {
	if b.Operator != nil {
		return *b.Operator
	}
	return compat.DefaultOperator()
}

func (b *Builder) store() store {
	return store{dir: filepath.Join(b.CacheDir, "oci")}
}

func (b *Builder) arch() string {
	if b.Arch != "" {
		return b.Arch
	}
	return runtime.GOARCH
}

func (b *Builder) progress(text string) {
	if b.Progress != nil {
		b.Progress(text)
	}
}

// gitError tells a wrong folder or commit from a fault of the machine.
func gitError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return badInput(err)
}
