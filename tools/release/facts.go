package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
	"github.com/trussiumhq/trussium-operator/matrix/report"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/gate"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/generated"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/oci"
)

// Files of a checkout.
const (
	compatibilityFile = "compatibility.yaml"
	changelogFile     = "CHANGELOG.md"
)

// candidate is the commit that is checked out.
type candidate struct {
	// repository is the root of the checkout.
	repository string
	facts      gate.Facts
	provenance artifact.Provenance
	// previous is the release before; empty if there is none. commits are those since, the newest first.
	previous string
	commits  []git.Commit
	// cells is the evidence.
	cells []*evidence.Cell
	// chart is the chart, the very one that the evidence is about; archive is its package.
	chart   oci.Artifact
	archive []byte
}

// gather finds out all that a release depends on.
func gather(ctx context.Context, places checkout.Places, version string, screen *console) (*candidate, error) {
	c := &candidate{repository: places.Repository, facts: gate.Facts{Version: version}}
	repository := git.Repository{Dir: places.Repository}
	if err := screen.step("the checkout", func(func(string)) error { return c.readCheckout(ctx, repository) }); err != nil {
		return nil, err
	}
	if err := screen.step("generated files", func(func(string)) error {
		files, err := generated.OutOfSync(ctx, repository, c.provenance.Revision)
		c.facts.OutOfSync = append(c.facts.OutOfSync, files...)
		return err
	}); err != nil {
		return nil, err
	}
	if err := screen.step("evidence", func(progress func(string)) error { return c.readEvidence(ctx, places, progress) }); err != nil {
		return nil, err
	}
	return c, nil
}

// readCheckout reads what the commit and the files in it say.
func (c *candidate) readCheckout(ctx context.Context, repository git.Repository) (err error) {
	c.provenance.Version = c.facts.Version
	if c.provenance.Revision, err = repository.Head(ctx); err != nil {
		return err
	}
	if c.provenance.Created, err = repository.CommitTime(ctx, c.provenance.Revision); err != nil {
		return err
	}
	// Generated files count: a release takes them from the commit.
	if c.facts.Changes, err = repository.Changes(ctx); err != nil {
		return err
	}
	metadata, err := artifact.CheckoutMetadata(repository.Dir)
	if err != nil {
		return err
	}
	c.facts.Chart = gate.Chart{File: artifact.ChartPath + "/Chart.yaml", Version: metadata.Version, AppVersion: metadata.AppVersion}
	path := relative(filepath.Join(repository.Dir, compatibilityFile))
	in, err := matrix.ReportInput(ctx, matrix.Options{Repository: repository.Dir, File: path})
	if err != nil {
		return err
	}
	c.facts.Compatibility = in.File
	// The other providers are for CI: what they have seen counts, but no release waits for it.
	c.facts.Planned = slices.DeleteFunc(slices.Clone(in.Planned), func(cell plan.Cell) bool { return cell.Provider != embedded.ProviderName })
	if c.facts.OutOfSync, err = stale(repository.Dir, in); err != nil {
		return err
	}
	c.cells = in.Documents
	if c.facts.Changelog, err = os.ReadFile(filepath.Join(repository.Dir, changelogFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the changelog: %w", err)
	}
	return c.readHistory(ctx, repository)
}

// stale are the documents that the matrix generates and that are not up to date.
func stale(root string, in report.Input) ([]string, error) {
	documents, err := report.Documents(root, in)
	if err != nil {
		return nil, err
	}
	return report.Stale(root, documents)
}

// relative shortens a path for messages where that is possible.
func relative(path string) string {
	working, err := os.Getwd()
	if err != nil {
		return path
	}
	short, err := filepath.Rel(working, path)
	if err != nil || !filepath.IsLocal(short) {
		return path
	}
	return short
}

// readHistory lists the commits since the release before.
func (c *candidate) readHistory(ctx context.Context, repository git.Repository) (err error) {
	before := previous(c.facts.Compatibility.OperatorReleases, c.facts.Version)
	if before.Version == "" {
		return nil
	}
	c.previous = before.Version
	c.commits, err = repository.Log(ctx, before.Commit, c.provenance.Revision)
	return err
}

// previous is the latest release before the version; its zero value if there is none.
func previous(releases []compat.OperatorRelease, version string) compat.OperatorRelease {
	// The loader and gate.ParseVersion made sure that these are versions.
	order := func(a, b compat.OperatorRelease) int {
		return semver.MustParse(a.Version).Compare(semver.MustParse(b.Version))
	}
	earlier := slices.DeleteFunc(slices.Clone(releases), func(release compat.OperatorRelease) bool {
		return order(release, compat.OperatorRelease{Version: version}) >= 0
	})
	if len(earlier) == 0 {
		return compat.OperatorRelease{}
	}
	return slices.MaxFunc(earlier, order)
}

// readEvidence reads the evidence of the checkout, and builds what the matrix would run now, to compare.
func (c *candidate) readEvidence(ctx context.Context, places checkout.Places, progress func(string)) error {
	built := map[string]artifact.Release{}
	checkoutFor := func(arch string) (artifact.Release, error) {
		release, done := built[arch]
		if done {
			return release, nil
		}
		builder := artifact.Builder{Repository: places.Repository, CacheDir: places.CacheDir, Arch: arch, Progress: progress}
		release, err := builder.Checkout(ctx)
		built[arch] = release
		return release, err
	}
	for _, cell := range c.cells {
		_, arch, _ := strings.Cut(cell.Tool.Platform, "/")
		release, err := checkoutFor(arch)
		if err != nil {
			return err
		}
		item := gate.Evidence{Cell: cell, Chart: release.Chart.Digest, Image: release.Image.Digest, Go: runtime.Version()}
		if err := trace(ctx, git.Repository{Dir: places.Repository}, &item); err != nil {
			return err
		}
		c.facts.Evidence = append(c.facts.Evidence, item)
	}
	release, err := checkoutFor(runtime.GOARCH)
	if err != nil {
		return err
	}
	return c.readChart(release)
}

// trace finds out how the commit of the evidence relates to the one that is checked out.
func trace(ctx context.Context, repository git.Repository, item *gate.Evidence) error {
	commit := item.Cell.Tool.Commit
	there, err := repository.HasCommit(ctx, commit)
	if err != nil || !there {
		return err
	}
	if item.Ancestor, err = repository.IsAncestor(ctx, commit, "HEAD"); err != nil {
		return err
	}
	changed, err := repository.Changed(ctx, commit, "HEAD", gate.RestsOn...)
	if err != nil {
		return err
	}
	item.Changed = slices.DeleteFunc(changed, func(file string) bool { return !gate.Counts(file) })
	return nil
}

func (c *candidate) readChart(release artifact.Release) error {
	image, err := release.Chart.Image()
	if err != nil {
		return err
	}
	c.chart = oci.Artifact{Ref: release.Chart.Ref, Content: image}
	layers, err := image.Layers()
	if err != nil {
		return fmt.Errorf("read the packaged chart: %w", err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return fmt.Errorf("read the packaged chart: %w", err)
	}
	defer content.Close()
	if c.archive, err = io.ReadAll(content); err != nil {
		return fmt.Errorf("read the packaged chart: %w", err)
	}
	return nil
}
