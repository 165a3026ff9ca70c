package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// What the checkouts under test release.
const (
	oldVersion = "0.4.0"
	newVersion = "0.5.0"
	cellID     = "0.4.0--checkout--k8s-1.37.2--embedded"
)

// compatibility is the compatibility file of a checkout, with the commit of the old release as COMMIT.
const compatibility = `apiVersion: compatibility.trussium.io/v1
operatorReleases:
- version: "0.4.0"
  commit: "COMMIT"
runtimeReleases:
- version: v1.27.0
  imageTag: "1.27.0"
  contractImpact: representative
  decision: validated
- version: v1.30.0
  imageTag: "1.30.0"
  contractImpact: representative
  decision: validated
runtimeCharts:
- version: "1.3.1"
kubernetes:
  floor: "1.25"
  versions: {default: ["1.37.2"]}
combinations:
- operator: "0.5.0"
  runtime: v1.30.0
  runtimeChart: "1.3.1"
  kubernetes: ">=1.25"
  status: tested
upgrades:
- from: "0.4.0"
  runtime: {baseline: v1.27.0, target: v1.30.0}
  rollback: chart
  crds: hook
`

// changelog is the changelog of a checkout.
const changelog = "# Changelog\n\n## [0.5.0] - 2026-03-04\n\n- Better in every way.\n\n## [0.4.0] - 2026-03-03\n\n- Good.\n"

// TestMain keeps what is built in one cache for all tests, and out of the user's.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		out, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			panic(err)
		}
		cache, err := os.MkdirTemp("", "release-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(cache)
		// The go command's own cache is in the user's cache folder too, and stays there.
		os.Setenv("GOCACHE", strings.TrimSpace(string(out)))
		os.Setenv("XDG_CACHE_HOME", cache)
		return m.Run()
	}())
}

// newCheckout makes a checkout that can be released, and works in it: this repository's chart, programs that build
// in a second, a generator, and the evidence of an upgrade.
func newCheckout(t *testing.T) string {
	t.Helper()
	// The same times and names give the same commits.
	t.Setenv("GIT_COMMITTER_DATE", "2026-03-04T05:06:07Z")
	t.Setenv("GIT_AUTHOR_DATE", "2026-03-04T05:06:07Z")
	dir := gittest.Init(t)
	copyChart(t, dir)
	gittest.Write(t, dir, map[string]string{
		"go.mod":     "module github.com/trussiumhq/trussium-operator\n\ngo 1.26.0\n",
		"go.sum":     "",
		".gitignore": "/dist/\n",
		"operator/main.go": "package main\n\nimport \"github.com/trussiumhq/trussium-operator/operator/manager\"\n\n" +
			"func main() { println(manager.Version) }\n",
		"operator/manager/version.go": "package manager\n\n// Version is set by the linker.\nvar Version = \"unset\"\n",
		"tools/runtimesim/main.go":    "package main\n\nfunc main() {}\n",
		"api/doc.go":                  "package api\n\n//go:generate cp source.txt generated.txt\n",
		"api/source.txt":              "text\n",
		"api/generated.txt":           "text\n",
	})
	setVersion(t, dir, oldVersion)
	old := gittest.Commit(t, dir, "Release 0.4.0")
	setVersion(t, dir, newVersion)
	gittest.Write(t, dir, map[string]string{
		"compatibility.yaml": strings.Replace(compatibility, "COMMIT", old, 1),
		"CHANGELOG.md":       changelog,
		"matrix/check.go":    "package matrix\n",
	})
	proven := gittest.Commit(t, dir, "Become better")
	prove(t, dir, old, proven)
	gittest.Commit(t, dir, "Prove it")
	t.Chdir(dir)
	return dir
}

// prove writes the evidence that a run of the matrix would at the commit, and its report.
func prove(t *testing.T, dir, old, commit string) {
	t.Helper()
	cache, err := checkout.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// What is checked out is built for amd64 whatever machine the test runs on.
	builder := artifact.Builder{Repository: dir, CacheDir: cache, Arch: "amd64"}
	release, err := builder.Checkout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	finished := time.Date(2026, 3, 4, 5, 8, 7, 0, time.UTC)
	cell := &evidence.Cell{
		APIVersion: evidence.APIVersion, Kind: evidence.Kind, ID: cellID, Key: "key",
		Upgrade: evidence.Upgrade{Row: oldVersion, Values: "default", CRDs: "hook", Rollback: "chart"},
		From:    evidence.Release{Version: oldVersion, Source: "source", Commit: old},
		To: evidence.Release{
			Version: newVersion, Source: "checkout", Commit: commit,
			Chart: evidence.Artifact{Ref: release.Chart.Ref, Digest: release.Chart.Digest},
			Image: evidence.Artifact{Ref: release.Image.Ref, Digest: release.Image.Digest},
		},
		Runtime: evidence.RuntimeImages{
			Baseline: evidence.Artifact{Ref: artifact.RuntimeRepository + ":1.27.0", Simulated: true},
			Target:   evidence.Artifact{Ref: artifact.RuntimeRepository + ":1.30.0", Simulated: true},
		},
		Cluster: evidence.Cluster{Provider: "embedded", Kubernetes: "v1.37.2"},
		Tool:    evidence.Tool{Commit: commit, Go: "go1.26.8", Platform: "linux/amd64"},
		Started: finished.Add(-time.Minute), Finished: &finished, Verdict: evidence.Proven,
		Steps: []evidence.Step{{ID: "roll-forward", Phase: "runtime image", Started: finished.Add(-time.Minute), Outcome: evidence.Passed, Check: true, Claim: "A claim."}},
	}
	if err := (evidence.Store{Dir: filepath.Join(dir, matrix.EvidenceDir)}).Save(cell); err != nil {
		t.Fatal(err)
	}
	if _, err := matrix.WriteDocuments(t.Context(), matrix.Options{Repository: dir, File: filepath.Join(dir, "compatibility.yaml")}); err != nil {
		t.Fatal(err)
	}
}

// copyChart copies this repository's chart.
func copyChart(t *testing.T, dir string) {
	t.Helper()
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root(working)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, artifact.ChartPath), os.DirFS(filepath.Join(root, artifact.ChartPath))); err != nil {
		t.Fatal(err)
	}
}

// setVersion gives the chart another version.
func setVersion(t *testing.T, dir, version string) {
	t.Helper()
	file := filepath.Join(dir, artifact.ChartPath, "Chart.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(content), "\n")
	changed := 0
	for i, line := range lines {
		if key, _, found := strings.Cut(line, ": "); found && (key == "version" || key == "appVersion") {
			lines[i] = key + ": " + version
			changed++
		}
	}
	if changed != 2 {
		t.Fatalf("%s has %d versions, want 2", file, changed)
	}
	gittest.Write(t, dir, map[string]string{artifact.ChartPath + "/Chart.yaml": strings.Join(lines, "\n")})
}

// replace changes one text in a file.
func replace(t *testing.T, file, old, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	if err := os.WriteFile(file, bytes.Replace(content, []byte(old), []byte(text), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}
