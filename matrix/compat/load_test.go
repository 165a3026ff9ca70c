package compat

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the problems found in testdata/invalid to the files beside")

func testFiles(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no test files match %s: %v", pattern, err)
	}
	return files
}

// TestInvalid compares all problems of each broken file with the text beside it.
func TestInvalid(t *testing.T) {
	for _, path := range testFiles(t, "testdata/invalid/*.yaml") {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("compatibility.yaml", data)
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an *Error", err)
			}
			got := invalid.Error() + "\n"
			golden := strings.TrimSuffix(path, ".yaml") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ from %s (-want +got):\n%s", golden, diff)
			}
			checkPositions(t, data, invalid)
		})
	}
}

// checkPositions checks that each problem lies in the file and that they are in order.
func checkPositions(t *testing.T, data []byte, invalid *Error) {
	t.Helper()
	lines := lineCount(data)
	var last Problem
	for _, problem := range invalid.Problems {
		if problem.Line < 1 || problem.Line > lines || problem.Column < 1 {
			t.Errorf("%s: the file has %d lines", problem, lines)
		}
		if problem.Line < last.Line || problem.Line == last.Line && problem.Column < last.Column {
			t.Errorf("%q comes after %q", problem, last)
		}
		if strings.ContainsAny(problem.Message+problem.Advice, "\n\r") {
			t.Errorf("%q is more than one line", problem)
		}
		last = problem
	}
	if len(invalid.Problems) == 0 {
		t.Error("an error without problems")
	}
}

func TestValidMinimal(t *testing.T) {
	got, err := Load("testdata/valid/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := &File{
		Path:     "testdata/valid/minimal.yaml",
		Operator: DefaultOperator(),
		OperatorReleases: []OperatorRelease{{
			Position: Position{3, 5}, Version: "0.3.1", Commit: strings.Repeat("a", 40), CommitPosition: Position{4, 13},
		}},
		RuntimeReleases: []RuntimeRelease{
			{Position: Position{6, 5}, Version: "v1.27.0", ImageTag: "1.27.0", ContractImpact: ImpactRepresentative, Decision: DecisionValidated},
			{Position: Position{7, 5}, Version: "v1.30.0", ImageTag: "1.30.0", ContractImpact: ImpactRepresentative, Decision: DecisionValidated},
		},
		Kubernetes: Kubernetes{Floor: "1.25", Default: []string{"1.34.4"}, Providers: map[string][]string{}},
		Upgrades: []Upgrade{{
			Position: Position{13, 5}, ID: "0.3.1", From: "0.3.1", Baseline: "v1.27.0", Target: "v1.30.0",
			Rollback: RollbackChart, CRDs: CRDApply, Values: ValuesDefault,
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidFull(t *testing.T) {
	file, err := Load("testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, row := range file.Upgrades {
		ids = append(ids, row.ID)
	}
	if want := []string{"0.3.1", "0.3.1-reuse-crds-none", "broken-role", "0.3.1-1.0.4"}; !slices.Equal(ids, want) {
		t.Errorf("row ids: got %q, want %q", ids, want)
	}
	row := file.Upgrades[2]
	row.Position = Position{}
	want := Upgrade{
		ID: "broken-role", From: "1.0.4", Baseline: "v1.27.0", Target: "v1.29.1", Rollback: RollbackRuntimeImage,
		RollbackReason: "The chart of 1.0.4 is known to be incomplete, so nobody should go back to it.",
		CRDs:           CRDHook, Values: ValuesResetThenReuse, Kubernetes: []string{"1.31.13", "1.37.2"},
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Errorf("row (-want +got):\n%s", diff)
	}
	if through := file.Upgrades[3].Through; !slices.Equal(through, []string{"1.0.4"}) {
		t.Errorf("releases on the way: got %q", through)
	}
	release, ok := file.OperatorRelease("1.0.4")
	if !ok || len(release.KnownDefects) != 1 || release.KnownDefects[0].FixedIn != "1.0.5" {
		t.Errorf("operator release 1.0.4: got %+v, %v", release, ok)
	}
	if superseded, ok := file.RuntimeRelease("v1.29.1"); !ok || superseded.SupersededBy != "v1.30.0" {
		t.Errorf("runtime release v1.29.1: got %+v, %v", superseded, ok)
	}
	if chart := file.RuntimeCharts[0]; chart.Version != "1.3.1" || chart.DefaultRuntime != "v1.27.0" {
		t.Errorf("runtime chart: got %+v", chart)
	}
	if combination := file.Combinations[1]; combination.Status != StatusHistorical || combination.Operator != "1.0.2" {
		t.Errorf("combination: got %+v", combination)
	}
	if operator := file.Operator; operator.Resource.CRD != "kiosks.fair.example.com" || operator.Resource.Managed[1].NameFor("a") != "a-notice" || operator.Rights.Packages[0].Namespaces != NamespacesRelease {
		t.Errorf("operator: got %+v", operator)
	}
	for provider, want := range map[string][]string{"embedded": {"1.34.4", "1.37.2"}, "kind": {"1.34.4"}, "existing": {"1.34.4"}} {
		if got := file.Kubernetes.Versions(provider); !slices.Equal(got, want) {
			t.Errorf("Kubernetes versions of %s: got %q, want %q", provider, got, want)
		}
	}
}

func TestLoadUnreadable(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "compatibility.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got %v", err)
	}
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# nothing\n"), maxFileSize/10+1), 0o644); err != nil {
		t.Fatal(err)
	}
	var invalid *Error
	if _, err := Load(large); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "larger than 4 MiB") {
		t.Errorf("a large file: got %v", err)
	}
}

// FuzzParse checks that no input makes the reader panic or name a place outside of the file,
// and that what it accepts refers only to what the file lists.
func FuzzParse(f *testing.F) {
	for _, path := range slices.Concat(testFiles(f, "testdata/valid/*.yaml"), testFiles(f, "testdata/invalid/*.yaml")) {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("compatibility.yaml", data)
		if err != nil {
			var invalid *Error
			if !errors.As(err, &invalid) {
				t.Fatalf("got %v, want an *Error", err)
			}
			checkPositions(t, data, invalid)
			return
		}
		for _, row := range file.Upgrades {
			_, from := file.OperatorRelease(row.From)
			_, baseline := file.RuntimeRelease(row.Baseline)
			_, target := file.RuntimeRelease(row.Target)
			if !from || !baseline || !target || row.ID == "" {
				t.Errorf("row %+v refers to something that is not listed", row)
			}
		}
	})
}
