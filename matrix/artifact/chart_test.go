package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/registry"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// TestChartIsReproducible packages the same chart twice, from files of other times.
func TestChartIsReproducible(t *testing.T) {
	var digests []string
	for _, stamp := range []time.Time{time.Unix(1, 0), time.Now()} {
		dir := t.TempDir()
		gittest.Write(t, dir, sourceFiles("0.3.1"))
		chartDir := filepath.Join(dir, ChartPath)
		if err := os.Chtimes(filepath.Join(chartDir, "values.yaml"), stamp, stamp); err != nil {
			t.Fatal(err)
		}
		packaged, err := packageChart(chartDir)
		if err != nil {
			t.Fatal(err)
		}
		chart, err := store{dir: t.TempDir()}.putChart(packaged.key(), packaged)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, chart.root.Digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("got %q, want them equal", digests)
	}
}

// TestChartArchiveHasNoTimes would see the time of packaging, which two quick runs share.
func TestChartArchiveHasNoTimes(t *testing.T) {
	dir := t.TempDir()
	gittest.Write(t, dir, sourceFiles("0.3.1"))
	packaged, err := packageChart(filepath.Join(dir, ChartPath))
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(packaged.archive))
	if err != nil {
		t.Fatal(err)
	}
	if !compressed.ModTime.IsZero() {
		t.Errorf("the archive has the time %s", compressed.ModTime)
	}
	archive := tar.NewReader(compressed)
	files := 0
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files++
		if !header.ModTime.Equal(epoch) {
			t.Errorf("%s has the time %s", header.Name, header.ModTime)
		}
	}
	if files != 4 {
		t.Errorf("got %d files, want 4", files)
	}
}

// TestHelmPull pulls a chart as `helm pull oci://...` does.
func TestHelmPull(t *testing.T) {
	dir := t.TempDir()
	gittest.Write(t, dir, sourceFiles("0.3.1"))
	packaged, err := packageChart(filepath.Join(dir, ChartPath))
	if err != nil {
		t.Fatal(err)
	}
	entry, err := store{dir: t.TempDir()}.putChart(packaged.key(), packaged)
	if err != nil {
		t.Fatal(err)
	}
	artifact := entry.artifact(ChartRepository + ":0.3.1")
	served, err := Serve(t.Context(), artifact)
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close()
	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(served.Local(artifact.Ref))
	if err != nil {
		t.Fatal(err)
	}
	if pulled.Manifest.Digest != artifact.Digest {
		t.Errorf("digest: got %s, want %s", pulled.Manifest.Digest, artifact.Digest)
	}
	chart, err := loader.LoadArchive(bytes.NewReader(pulled.Chart.Data))
	if err != nil {
		t.Fatal(err)
	}
	if chart.Metadata.Version != "0.3.1" || len(chart.Templates) != 1 || len(chart.CRDObjects()) != 1 {
		t.Errorf("got version %s, %d templates, %d CRDs, want 0.3.1, 1, 1", chart.Metadata.Version, len(chart.Templates), len(chart.CRDObjects()))
	}
	tags, err := client.Tags(served.Local(ChartRepository))
	if err != nil || len(tags) != 1 || tags[0] != "0.3.1" {
		t.Errorf("tags: got %q, %v", tags, err)
	}
}

func TestPackageBrokenChart(t *testing.T) {
	for name, change := range map[string]map[string]string{
		"no version":     {"charts/trussium-operator/Chart.yaml": "apiVersion: v2\nname: trussium-operator\n"},
		"not YAML":       {"charts/trussium-operator/Chart.yaml": "a: b: c\n"},
		"invalid schema": {"charts/trussium-operator/values.schema.json": "{"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			gittest.Write(t, dir, sourceFiles("0.3.1"))
			gittest.Write(t, dir, change)
			chartDir := filepath.Join(dir, ChartPath)
			if _, err := packageChart(chartDir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), chartDir) {
				t.Errorf("got %v, want bad input that names the chart", err)
			}
		})
	}
	if _, err := packageChart(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, ErrInput) {
		t.Errorf("a missing chart: got %v, want bad input", err)
	}
}

func TestCheckoutVersion(t *testing.T) {
	dir := t.TempDir()
	gittest.Write(t, dir, sourceFiles("0.4.0"))
	if version, err := CheckoutVersion(dir); err != nil || version != "0.4.0" {
		t.Errorf("got %q, %v, want 0.4.0", version, err)
	}
	for name, content := range map[string]string{"no version": "name: trussium-operator\n", "not YAML": "a: b: c\n"} {
		gittest.Write(t, dir, map[string]string{"charts/trussium-operator/Chart.yaml": content})
		if version, err := CheckoutVersion(dir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "Chart.yaml") {
			t.Errorf("%s: got %q, %v, want bad input that names the file", name, version, err)
		}
	}
	if _, err := CheckoutVersion(t.TempDir()); !errors.Is(err, ErrInput) {
		t.Errorf("no chart: got %v, want bad input", err)
	}
}
