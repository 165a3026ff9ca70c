package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

var update = flag.Bool("update", false, "write the golden file")

func load(t *testing.T) []*evidence.Cell {
	t.Helper()
	cells, err := (evidence.Store{Dir: filepath.Join("testdata", "evidence")}).All()
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

func TestMarkdownEqualsGolden(t *testing.T) {
	golden := filepath.Join("testdata", "UPGRADE-MATRIX.md")
	got := Markdown(load(t))
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

func TestMarkdownDoesNotDependOnTheOrder(t *testing.T) {
	cells := load(t)
	want := Markdown(cells)
	slices.Reverse(cells)
	if !bytes.Equal(want, Markdown(cells)) {
		t.Error("the same evidence in another order gives other bytes")
	}
}

// Whatever the evidence says, the word "tested" is for proven cells only.
func TestOnlyProvenCellsAreCalledTested(t *testing.T) {
	for _, v := range []evidence.Verdict{evidence.Refuted, evidence.BaselineBroken, evidence.Infrastructure, evidence.NotRun, evidence.Unfinished, "nonsense", ""} {
		cell := load(t)[0]
		cell.Verdict = v
		if text := string(Markdown([]*evidence.Cell{cell})); strings.Contains(text, "✅ tested") {
			t.Errorf("a cell with verdict %q is called tested", v)
		}
	}
}

func TestSimulatedAndDigestsAreShown(t *testing.T) {
	cell := load(t)[0]
	text := string(Markdown([]*evidence.Cell{cell}))
	for _, want := range []string{"(simulated)", cell.From.Chart.Digest, cell.To.Image.Digest, cell.Runtime.Target.Digest, cell.Cluster.Kubernetes, "provider `embedded`", cell.Tool.Commit} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not show %q", want)
		}
	}
}
