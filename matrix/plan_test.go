package matrix

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// The generated matrix: releases, each from a commit of its own, in rows of every mode on several
// Kubernetes versions.
const (
	manyReleases = 25
	manyVersions = 5
	manyCells    = 1000
)

// hang is a time after which something is taken to be stuck, not slow.
const hang = time.Minute

// manyRows makes a checkout whose compatibility file has a thousand cells.
func manyRows(t testing.TB) Options {
	t.Helper()
	dir := gittest.Init(t)
	gittest.Write(t, dir, map[string]string{
		artifact.ChartPath + "/Chart.yaml": "apiVersion: v2\nname: trussium-operator\nversion: 9.0.0\n",
	})
	gittest.Commit(t, dir, "chart")
	var releases, rows strings.Builder
	for i := range manyReleases {
		gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "release")
		version := fmt.Sprintf("1.%d.0", i)
		fmt.Fprintf(&releases, "- version: %q\n  commit: %q\n", version, gittest.Run(t, dir, "rev-parse", "HEAD"))
		for _, values := range []string{"default", "reuse", "reset-then-reuse"} {
			for _, crds := range []string{"none", "hook", "apply"} {
				if values == "reuse" && crds == "apply" {
					continue // eight modes of a release, for a round number
				}
				fmt.Fprintf(&rows, "- id: %s-%s-%s\n  from: %q\n  runtime: {baseline: v1.27.0, target: v1.30.0}\n  rollback: chart\n  crds: %s\n  values: %s\n",
					version, values, crds, version, crds, values)
			}
		}
	}
	var versions []string
	for i := range manyVersions {
		versions = append(versions, fmt.Sprintf("%q", fmt.Sprintf("1.%d.0", 30+i)))
	}
	content := `apiVersion: compatibility.trussium.io/v1
kubernetes:
  floor: "1.25"
  versions: {default: [` + strings.Join(versions, ", ") + `]}
operatorReleases:
` + releases.String() + `runtimeReleases:
- {version: v1.27.0, imageTag: "1.27.0", contractImpact: representative, decision: validated}
- {version: v1.30.0, imageTag: "1.30.0", contractImpact: representative, decision: validated}
upgrades:
` + rows.String()
	file := filepath.Join(dir, compatibilityFile)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return Options{Repository: dir, CacheDir: t.TempDir(), File: file, Provider: Providers[0]}
}

func loadMany(t testing.TB, o Options) {
	t.Helper()
	cells, err := Load(t.Context(), o)
	if err != nil || len(cells) != manyCells {
		t.Fatalf("got %d cells, %v, want %d", len(cells), err, manyCells)
	}
}

// A thousand cells are no work. The time is a guard against work that grows with their square;
// BenchmarkLoad tells what it is.
func TestLoadAThousandCells(t *testing.T) {
	options := manyRows(t)
	start := time.Now()
	loadMany(t, options)
	if took := time.Since(start); took > hang {
		t.Errorf("it took %s", took)
	}
}

// BenchmarkLoad reads, checks and plans a matrix of a thousand cells, the look at its commits included.
func BenchmarkLoad(b *testing.B) {
	options := manyRows(b)
	for b.Loop() {
		loadMany(b, options)
	}
}
