package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/trussiumhq/trussium-operator/charts/bundle"
	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/notes"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/oci"
)

// Names of files of a release that do not depend on its version.
const (
	checksumsFile = "SHA256SUMS"
	notesFile     = "RELEASE-NOTES.md"
	installFile   = "install.yaml"
)

// replaceable checks that the folder can be replaced: it is not there, is empty, or holds a former release.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--output: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, checksumsFile)); len(entries) > 0 && err != nil {
		return fmt.Errorf("--output: %s holds files that are not a release's: empty it, or name another folder", dir)
	}
	return nil
}

// write writes the files of the release, all or none. A dry run keeps none.
func write(ctx context.Context, output string, dryRun bool, c *candidate, built images, screen *console) error {
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(output), ".release-")
	if err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := screen.step("files", func(func(string)) error { return writeFiles(dir, c, built) }); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dir, checksumsFile))
	if err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	screen.print("%s", bytes.TrimSpace(sums))
	if dryRun || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.RemoveAll(output)); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	if err := os.Rename(dir, output); err != nil {
		return fmt.Errorf("write the release: %w", err)
	}
	return nil
}

func writeFiles(dir string, c *candidate, built images) error {
	version := c.facts.Version
	if err := built.writeArchives(dir, version); err != nil {
		return err
	}
	operator, err := built.digest(artifact.OperatorTitle)
	if err != nil {
		return err
	}
	chart, err := loader.LoadArchive(bytes.NewReader(c.archive))
	if err != nil {
		return fmt.Errorf("load the packaged chart: %w", err)
	}
	install, err := bundle.Render(chart, operator)
	if err != nil {
		return err
	}
	text, err := c.notes(built)
	if err != nil {
		return err
	}
	report, err := os.ReadFile(filepath.Join(c.repository, matrix.ReportFile))
	if err != nil {
		return fmt.Errorf("read the report of the matrix: %w", err)
	}
	files := map[string][]byte{
		fmt.Sprintf("trussium-operator-%s.tgz", version): c.archive,
		installFile:       install,
		notesFile:         text,
		matrix.ReportFile: report,
	}
	for _, image := range built {
		for _, document := range image.sboms {
			files[document.Name] = document.Content
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return writeChecksums(dir)
}

// writeArchives writes an archive for each image.
func (list images) writeArchives(dir, version string) error {
	for _, image := range list {
		if err := oci.WriteArchive(filepath.Join(dir, image.archiveName(version)), image.artifact); err != nil {
			return err
		}
	}
	return nil
}

// notes are the notes of the release.
func (c *candidate) notes(built images) ([]byte, error) {
	changes, _ := notes.Section(c.facts.Changelog, c.facts.Version)
	text := notes.Release{Version: c.facts.Version, Previous: c.previous, Changes: changes, Cells: c.cells, Commits: c.commits}
	list := images{{product: product{title: "Chart"}, artifact: c.chart}}
	for _, image := range append(list, built...) {
		digest, err := image.artifact.Digest()
		if err != nil {
			return nil, err
		}
		text.Artifacts = append(text.Artifacts, notes.Artifact{Name: image.title, Ref: image.artifact.Ref, Digest: digest})
	}
	return notes.Markdown(text), nil
}

// writeChecksums writes the SHA-256 of all files in the form of sha256sum.
func writeChecksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	var sums bytes.Buffer
	for _, entry := range entries {
		sum, err := fileDigest(filepath.Join(dir, entry.Name()))
		if err != nil {
			return fmt.Errorf("write the checksums: %w", err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sum, entry.Name())
	}
	if err := os.WriteFile(filepath.Join(dir, checksumsFile), sums.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the checksums: %w", err)
	}
	return nil
}

func fileDigest(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return nil, err
	}
	return hash.Sum(nil), nil
}
