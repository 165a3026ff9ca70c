package artifact

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

func newBuilder(t *testing.T, repository string) (*Builder, *progressLog) {
	t.Helper()
	log := &progressLog{}
	return &Builder{Repository: repository, CacheDir: t.TempDir(), Progress: log.add}, log
}

// binaryIn is the content of the only file of an image.
func binaryIn(t *testing.T, artifact Artifact) string {
	t.Helper()
	image, err := artifact.Image()
	if err != nil {
		t.Fatal(err)
	}
	root := mutate.Extract(image)
	defer root.Close()
	archive := tar.NewReader(root)
	if _, err := archive.Next(); err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(archive)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestCheckout(t *testing.T) {
	dir, head := newRepository(t, sourceFiles("0.4.0"))
	builder, _ := newBuilder(t, dir)
	clean, err := builder.Checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if clean.Version != "0.4.0" || clean.Source != SourceCheckout || clean.Commit != head || clean.Dirty {
		t.Errorf("clean: got %+v", clean)
	}
	if clean.Chart.Ref != ChartRepository+":0.4.0" || clean.Image.Ref != OperatorRepository+":0.4.0" || clean.Image.Simulated {
		t.Errorf("references: got %s and %s", clean.Chart.Ref, clean.Image.Ref)
	}
	config := imageConfig(t, clean.Image)
	if got := strings.Join(config.Config.Entrypoint, " "); got != "/manager" || config.Config.User != "65532:65532" {
		t.Errorf("image: got entrypoint %q and user %q", got, config.Config.User)
	}
	if labels := config.Config.Labels; labels["org.opencontainers.image.version"] != "0.4.0" || labels["org.opencontainers.image.revision"] != "" {
		t.Errorf("labels: got %v", labels)
	}
	if !strings.Contains(binaryIn(t, clean.Image), "0.4.0") {
		t.Error("the operator does not hold its version")
	}

	// Each step adds a file to the checkout of the step before.
	for _, step := range []struct {
		name, path, content    string
		dirty, chart, operator bool
	}{
		{"the generated report", "UPGRADE-MATRIX.md", "report\n", false, false, false},
		{"evidence", "evidence/cell.json", "{}\n", false, false, false},
		{"a document", "docs/guide.md", "text\n", true, false, false},
		{"the chart", "charts/trussium-operator/templates/service.yaml", "kind: Service\n", true, true, false},
		{"the operator", "operator/manager/more.go", "package manager\n\nfunc init() { println(\"more\") }\n", true, true, true},
	} {
		gittest.Write(t, dir, map[string]string{step.path: step.content})
		changed, err := builder.Checkout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if changed.Dirty != step.dirty {
			t.Errorf("%s changed: got dirty %v, want %v", step.name, changed.Dirty, step.dirty)
		}
		if got := changed.Chart.Digest != clean.Chart.Digest; got != step.chart {
			t.Errorf("%s changed: got another chart %v, want %v", step.name, got, step.chart)
		}
		if got := changed.Image.Digest != clean.Image.Digest; got != step.operator {
			t.Errorf("%s changed: got another image %v, want %v", step.name, got, step.operator)
		}
	}
}

func TestCommit(t *testing.T) {
	dir, old := newRepository(t, sourceFiles("0.3.1"))
	next := sourceFiles("0.4.0")
	next["operator/main.go"] = "package main\n\nfunc main() { does not compile }\n"
	commitFiles(t, dir, next)
	builder, log := newBuilder(t, dir)
	release, err := builder.Commit(t.Context(), "0.3.1", old)
	if err != nil {
		t.Fatal(err)
	}
	if release.Version != "0.3.1" || release.Source != SourceCommit || release.Commit != old || release.Dirty {
		t.Errorf("got %+v", release)
	}
	if release.Chart.Ref != ChartRepository+":0.3.1" || release.Image.Ref != OperatorRepository+":0.3.1" {
		t.Errorf("references: got %s and %s", release.Chart.Ref, release.Image.Ref)
	}
	if got := imageConfig(t, release.Image).Config.Labels["org.opencontainers.image.revision"]; got != old {
		t.Errorf("revision: got %q, want %s", got, old)
	}
	if changes := gittest.Run(t, dir, "status", "--porcelain"); changes != "" {
		t.Errorf("the checkout was touched:\n%s", changes)
	}

	// Another machine builds the same; here it is another cache and another folder.
	clone := t.TempDir()
	gittest.Run(t, clone, "clone", "-q", dir, ".")
	other, _ := newBuilder(t, clone)
	again, err := other.Commit(t.Context(), "0.3.1", old)
	if err != nil {
		t.Fatal(err)
	}
	if again.Chart.Digest != release.Chart.Digest || again.Image.Digest != release.Image.Digest {
		t.Errorf("built again: got %s and %s, want %s and %s", again.Chart.Digest, again.Image.Digest, release.Chart.Digest, release.Image.Digest)
	}

	// The second time nothing is built: the repository is not even there.
	log.take()
	builder.Repository = filepath.Join(dir, "missing")
	cached, err := builder.Commit(t.Context(), "0.3.1", old)
	if err != nil || cached.Image.Digest != release.Image.Digest || cached.Chart.Digest != release.Chart.Digest {
		t.Errorf("from the cache: got %+v, %v, want %+v", cached, err, release)
	}
	if lines := log.take(); len(lines) != 0 {
		t.Errorf("from the cache: got the progress %q, want none", lines)
	}
}

func TestCommitErrors(t *testing.T) {
	dir, good := newRepository(t, sourceFiles("0.3.1"))
	broken := commitFiles(t, dir, map[string]string{"operator/main.go": "package main\n\nfunc main() { undefined() }\n"})
	for _, test := range []struct {
		name, version, commit string
		cause                 error
		text                  string
	}{
		{"a version that the commit does not have", "0.3.2", good, ErrInput, "has the chart version 0.3.1"},
		{"a commit that is not there", "0.3.1", strings.Repeat("1", 40), ErrInput, strings.Repeat("1", 40)},
		{"a program that does not compile", "0.3.1", broken, ErrBuild, "undefined: undefined"},
	} {
		t.Run(test.name, func(t *testing.T) {
			builder, _ := newBuilder(t, dir)
			_, err := builder.Commit(t.Context(), test.version, test.commit)
			if !errors.Is(err, test.cause) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %v with %q", err, test.cause, test.text)
			}
		})
	}
}

func TestCheckoutErrors(t *testing.T) {
	plain := t.TempDir()
	gittest.Write(t, plain, sourceFiles("0.4.0"))
	builder, _ := newBuilder(t, plain)
	if _, err := builder.Checkout(t.Context()); !errors.Is(err, ErrInput) || !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("without git: got %v", err)
	}
	dir, _ := newRepository(t, sourceFiles("0.4.0"))
	gittest.Write(t, dir, map[string]string{"operator/main.go": "package main\n\nfunc main() { undefined() }\n"})
	builder, _ = newBuilder(t, dir)
	if _, err := builder.Checkout(t.Context()); !errors.Is(err, ErrBuild) || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("a program that does not compile: got %v", err)
	}
	// Root can write anywhere, but not into a file.
	builder, _ = newBuilder(t, dir)
	if err := os.WriteFile(filepath.Join(builder.CacheDir, "oci"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.Checkout(t.Context()); !errors.Is(err, ErrInfrastructure) {
		t.Errorf("a cache that can't be written: got %v", err)
	}
}

// TestCancelledBuild checks that a build that is cancelled keeps nothing and is no verdict on
// the source.
func TestCancelledBuild(t *testing.T) {
	dir, commit := newRepository(t, sourceFiles("0.3.1"))
	builder, _ := newBuilder(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	builder.Progress = func(line string) {
		if strings.Contains(line, "building") {
			cancel()
		}
	}
	_, err := builder.Commit(ctx, "0.3.1", commit)
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrBuild) || errors.Is(err, ErrInput) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	if entries, err := os.ReadDir(filepath.Join(builder.CacheDir, "oci")); err == nil && len(entries) != 0 {
		t.Errorf("the cache holds %v", entries)
	}
}
