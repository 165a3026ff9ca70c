package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// matrixFile has a plain row, one with an id of its own, and one with its own Kubernetes versions.
const matrixFile = `
apiVersion: compatibility.trussium.io/v1
operatorReleases:
  - {version: 0.3.1, commit: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}
  - version: 1.0.4
    commit: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    knownDefects:
      - {id: role-incomplete, summary: The role is incomplete., fixedIn: 1.0.5}
runtimeReleases:
  - {version: v1.27.0, imageTag: 1.27.0, contractImpact: representative, decision: validated}
  - {version: v1.30.0, imageTag: 1.30.0, contractImpact: representative, decision: validated}
kubernetes:
  floor: "1.25"
  versions:
    default: [1.34.4]
    embedded: [1.34.4, 1.37.2]
upgrades:
  - from: 0.3.1
    runtime: {baseline: v1.27.0, target: v1.30.0}
    rollback: chart
    crds: apply
  - id: broken-role
    from: 1.0.4
    runtime: {baseline: v1.27.0, target: v1.30.0}
    rollback: runtime-image
    rollbackReason: The chart is broken.
    crds: none
    kubernetes: [1.31.13]
`

func load(t *testing.T, content string) *compat.File {
	t.Helper()
	file, err := compat.Parse("compatibility.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// describe is a cell in one line: its id, and why it is skipped.
func describe(cells []Cell) []string {
	var lines []string
	for _, cell := range cells {
		lines = append(lines, strings.TrimSpace(cell.ID+" "+string(cell.Skip.Code)))
	}
	return lines
}

func TestCells(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		want    []string
	}{
		{"a provider with a list of its own", Options{Provider: "embedded", Candidate: "1.0.5"}, []string{
			"0.3.1--checkout--k8s-1.34.4--embedded",
			"0.3.1--checkout--k8s-1.37.2--embedded",
			"broken-role--checkout--k8s-1.31.13--embedded",
		}},
		{"a provider without", Options{Provider: "kind", Candidate: "1.0.5"}, []string{
			"0.3.1--checkout--k8s-1.34.4--kind",
			"broken-role--checkout--k8s-1.31.13--kind",
		}},
		{"an existing cluster", Options{Provider: "existing", Candidate: "1.0.5"}, []string{
			"0.3.1--checkout--existing",
			"broken-role--checkout--existing",
		}},
		{"other Kubernetes versions", Options{Provider: "embedded", Candidate: "1.0.5", Kubernetes: []string{"1.36.0", "1.35.0", "1.36.0"}}, []string{
			"0.3.1--checkout--k8s-1.36.0--embedded",
			"0.3.1--checkout--k8s-1.35.0--embedded",
			"broken-role--checkout--k8s-1.36.0--embedded",
			"broken-role--checkout--k8s-1.35.0--embedded",
		}},
		{"a version that the provider lacks", Options{Provider: "embedded", Candidate: "1.0.5", Available: []string{"1.34.4", "1.31.13"}}, []string{
			"0.3.1--checkout--k8s-1.34.4--embedded",
			"0.3.1--checkout--k8s-1.37.2--embedded kubernetes-unavailable",
			"broken-role--checkout--k8s-1.31.13--embedded",
		}},
		{"a candidate of a row's version", Options{Provider: "kind", Candidate: "1.0.4"}, []string{
			"0.3.1--checkout--k8s-1.34.4--kind",
			"broken-role--checkout--k8s-1.31.13--kind same-version",
		}},
		{"a candidate before a row's version", Options{Provider: "kind", Candidate: "1.0.4-rc.1"}, []string{
			"0.3.1--checkout--k8s-1.34.4--kind",
			"broken-role--checkout--k8s-1.31.13--kind older-candidate",
		}},
		{"one row", Options{Provider: "embedded", Candidate: "1.0.5", Rows: []string{"0.3.1"}}, []string{
			"0.3.1--checkout--k8s-1.34.4--embedded",
			"0.3.1--checkout--k8s-1.37.2--embedded",
		}},
		{"one cell", Options{Provider: "embedded", Candidate: "1.0.5", Cells: []string{"0.3.1--checkout--k8s-1.37.2--embedded"}}, []string{
			"0.3.1--checkout--k8s-1.37.2--embedded",
		}},
		{"a cell of a row", Options{
			Provider: "embedded", Candidate: "1.0.5",
			Rows:  []string{"0.3.1"},
			Cells: []string{"0.3.1--checkout--k8s-1.37.2--embedded", "broken-role--checkout--k8s-1.31.13--embedded"},
		}, []string{"0.3.1--checkout--k8s-1.37.2--embedded"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cells, err := Cells(load(t, matrixFile), test.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := describe(cells); !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			for _, cell := range cells {
				if (cell.Skip.Code == "") != (cell.Skip.Text == "") {
					t.Errorf("%s: a code and a sentence belong together: got %+v", cell.ID, cell.Skip)
				}
			}
		})
	}
}

func TestCellContent(t *testing.T) {
	cells, err := Cells(load(t, matrixFile), Options{Provider: "kind", Candidate: "1.0.5", Rows: []string{"broken-role"}})
	if err != nil || len(cells) != 1 {
		t.Fatalf("got %d cells, %v, want one", len(cells), err)
	}
	cell := cells[0]
	if cell.From.Version != "1.0.4" || cell.From.Commit == "" || len(cell.From.KnownDefects) != 1 || cell.Candidate != "1.0.5" {
		t.Errorf("releases: got %+v to %s", cell.From, cell.Candidate)
	}
	if cell.Baseline.ImageTag != "1.27.0" || cell.Target.ImageTag != "1.30.0" || cell.Kubernetes != "1.31.13" || cell.Provider != "kind" {
		t.Errorf("got %+v", cell)
	}
}

func TestCellsErrors(t *testing.T) {
	for _, test := range []struct {
		name    string
		options Options
		want    string
	}{
		{"an unknown row", Options{Provider: "kind", Candidate: "1.0.5", Rows: []string{"0.3.1", "0.3.2"}},
			`there is no row "0.3.2": use one of 0.3.1, broken-role`},
		{"an unknown cell", Options{Provider: "kind", Candidate: "1.0.5", Cells: []string{"0.3.1"}},
			`there is no cell "0.3.1": use one of 0.3.1--checkout--k8s-1.34.4--kind, broken-role--checkout--k8s-1.31.13--kind`},
		{"a cell of another row", Options{Provider: "kind", Candidate: "1.0.5", Rows: []string{"broken-role"}, Cells: []string{"0.3.1--checkout--k8s-1.34.4--kind"}},
			"none of the wanted cells belongs to a wanted row: cells 0.3.1--checkout--k8s-1.34.4--kind, rows broken-role"},
		{"a minor version", Options{Provider: "kind", Candidate: "1.0.5", Kubernetes: []string{"1.34"}},
			`the Kubernetes version "1.34": write the exact version without v, as in 1.34.4`},
		{"a version for an existing cluster", Options{Provider: "existing", Candidate: "1.0.5", Kubernetes: []string{"1.34.4"}},
			`the Kubernetes version "1.34.4": an existing cluster has the version that it has`},
		{"a candidate without a version", Options{Provider: "kind", Candidate: "next"},
			`the checkout has the version "next", which is not X.Y.Z: correct the version of its chart`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if cells, err := Cells(load(t, matrixFile), test.options); err == nil || err.Error() != test.want {
				t.Errorf("got %v, %v, want %s", describe(cells), err, test.want)
			}
		})
	}
}

// TestKey checks that everything a result depends on changes its key.
func TestKey(t *testing.T) {
	inputs := map[string]string{"chart": "sha256:1", "control": "2"}
	first := func(content string, options Options) Cell {
		t.Helper()
		options.Provider = "embedded"
		if options.Candidate == "" {
			options.Candidate = "1.0.5"
		}
		options.Rows = []string{"broken-role"}
		cells, err := Cells(load(t, content), options)
		if err != nil || len(cells) == 0 {
			t.Fatalf("got %d cells, %v", len(cells), err)
		}
		return cells[0]
	}
	base := first(matrixFile, Options{}).Key(inputs)
	if again := first(matrixFile, Options{}).Key(map[string]string{"control": "2", "chart": "sha256:1"}); again != base {
		t.Errorf("the same cell: got %s and %s", base, again)
	}
	keys := map[string]string{
		"another input":      first(matrixFile, Options{}).Key(map[string]string{"chart": "sha256:2", "control": "2"}),
		"one more input":     first(matrixFile, Options{}).Key(map[string]string{"chart": "sha256:1", "control": "2", "checks": ""}),
		"another Kubernetes": first(matrixFile, Options{Kubernetes: []string{"1.34.4"}}).Key(inputs),
		"another candidate":  first(matrixFile, Options{Candidate: "1.0.6"}).Key(inputs),
	}
	for name, change := range map[string][2]string{
		"another reason":       {"The chart is broken.", "The chart is bad."},
		"another CRD strategy": {"crds: none", "crds: hook"},
		"other values":         {"crds: none", "crds: none\n    values: reuse"},
		"another rollback":     {"rollback: runtime-image", "rollback: none"},
		"another defect":       {"id: role-incomplete", "id: other"},
		"another fix":          {"fixedIn: 1.0.5", "fixedIn: 1.0.6"},
		"another release":      {"from: 1.0.4", "from: 0.3.1"},
		"no defect": {
			"\n    knownDefects:\n      - {id: role-incomplete, summary: The role is incomplete., fixedIn: 1.0.5}", ""},
	} {
		if !strings.Contains(matrixFile, change[0]) {
			t.Fatalf("%s: the file has no %q", name, change[0])
		}
		keys[name] = first(strings.Replace(matrixFile, change[0], change[1], 1), Options{}).Key(inputs)
	}
	seen := map[string]string{base: "the cell itself"}
	for name, key := range keys {
		if other, ok := seen[key]; ok {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[key] = name
	}
}

// thousandRows is a file whose rows make a thousand cells.
func thousandRows() []byte {
	var content strings.Builder
	head, row, _ := strings.Cut(matrixFile, "  - id: broken-role\n")
	content.WriteString(head)
	for i := range 998 {
		fmt.Fprintf(&content, "  - id: row-%d\n%s", i, row)
	}
	return []byte(content.String())
}

// readAndPlan does what every command does first.
func readAndPlan(t testing.TB, content []byte) {
	t.Helper()
	file, err := compat.Parse("compatibility.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := Cells(file, Options{Provider: "embedded", Candidate: "1.0.5"})
	if err != nil || len(cells) != 1000 {
		t.Fatalf("got %d cells, %v, want 1000", len(cells), err)
	}
}

// TestLargeMatrix reads and plans a thousand cells, which must take less than a second. The best of some tries counts:
// the machine may be busy with other tests.
func TestLargeMatrix(t *testing.T) {
	content := thousandRows()
	best := time.Hour
	for range 5 {
		start := time.Now()
		readAndPlan(t, content)
		best = min(best, time.Since(start))
	}
	t.Logf("read and planned 1000 cells in %s", best)
	if best > time.Second {
		t.Errorf("it took %s", best)
	}
}

func BenchmarkThousandCells(b *testing.B) {
	content := thousandRows()
	for b.Loop() {
		readAndPlan(b, content)
	}
}
