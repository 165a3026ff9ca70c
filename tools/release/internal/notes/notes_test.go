package notes

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

var update = flag.Bool("update", false, "write the golden file")

const changelog = `# Changelog

## [Unreleased]

- Not yet.

## [1.1.0] - 2026-03-04

### Added

- One thing.

## [1.0.10] - 2026-03-03
- Ten.

## [1.0.1] - 2026-03-02

[1.1.0]: https://example.com/1.1.0
`

func TestSection(t *testing.T) {
	for version, want := range map[string]string{
		"1.1.0":  "### Added\n\n- One thing.",
		"1.0.10": "- Ten.",
		"1.0.1":  "",
	} {
		if got, found := Section([]byte(changelog), version); !found || got != want {
			t.Errorf("%s: got %q, %v, want %q", version, got, found, want)
		}
	}
	for name, text := range map[string]string{
		"not listed":      changelog,
		"no date":         "## [1.2.0]\n",
		"not released":    "## [1.2.0] - unreleased\n",
		"of a subsection": "### [1.2.0] - 2026-03-04\n",
		"a dot is a dot":  "## [1x2.0] - 2026-03-04\n",
	} {
		if got, found := Section([]byte(text), "1.2.0"); found {
			t.Errorf("%s: got %q, want none", name, got)
		}
	}
}

func release() Release {
	cell := func(verdict evidence.Verdict, from string, defects ...string) *evidence.Cell {
		return &evidence.Cell{
			Verdict: verdict, From: evidence.Release{Version: from, KnownDefects: defects}, To: evidence.Release{Version: "1.1.0"},
			Cluster: evidence.Cluster{Kubernetes: "v1.37.2", Provider: "embedded"},
		}
	}
	return Release{
		Version: "1.1.0", Previous: "1.0.10", Changes: "### Added\n\n- One thing.",
		Artifacts: []Artifact{{Name: "Chart", Ref: "ghcr.io/trussiumhq/charts/trussium-operator:1.1.0", Digest: "sha256:" + strings.Repeat("1", 64)}},
		Cells: []*evidence.Cell{
			cell(evidence.Proven, "0.3.1"), cell(evidence.Proven, "1.0.4", "role-incomplete"), cell(evidence.NotRun, "1.0.9"),
		},
		Commits: []git.Commit{{Hash: strings.Repeat("a", 40), Subject: "Keep `x_y` and <b> [here](there) *as they are*"}},
	}
}

func TestMarkdownEqualsGolden(t *testing.T) {
	golden := filepath.Join("testdata", "notes.md")
	got := Markdown(release())
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyProvenUpgradesAreListed(t *testing.T) {
	if text := string(Markdown(release())); strings.Contains(text, "1.0.9") || !strings.Contains(text, "0.3.1 → 1.1.0") {
		t.Errorf("got %s", text)
	}
}

func TestFirstRelease(t *testing.T) {
	first := release()
	first.Previous = ""
	if text := string(Markdown(first)); !strings.Contains(text, "\n## Commits\n") {
		t.Errorf("got %s", text)
	}
}
