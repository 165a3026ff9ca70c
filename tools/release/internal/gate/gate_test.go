package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

const (
	cellID     = "0.4.0--checkout--k8s-1.34.4--embedded"
	commit     = "1111111111111111111111111111111111111111"
	nextCommit = "2222222222222222222222222222222222222222"
)

// sound are facts that nothing stands against.
func sound() Facts {
	released := compat.OperatorRelease{Position: compat.Position{Line: 6, Column: 5}, Version: "0.4.0", Commit: commit}
	return Facts{
		Version: "0.5.0",
		Chart:   Chart{File: "charts/trussium-operator/Chart.yaml", Version: "0.5.0", AppVersion: "0.5.0"},
		Compatibility: &compat.File{
			Path: "compatibility.yaml", OperatorReleases: []compat.OperatorRelease{released},
			RuntimeReleases: []compat.RuntimeRelease{{Version: "v1.0.0", ImageTag: "1.0.0"}, {Version: "v1.1.0", ImageTag: "1.1.0"}},
			Combinations: []compat.Combination{
				{Position: compat.Position{Line: 20, Column: 5}, Operator: "0.4.0", Runtime: "v1.0.0", Kubernetes: ">=1.25", Status: compat.StatusHistorical},
				{Position: compat.Position{Line: 25, Column: 5}, Operator: "0.5.0", Runtime: "v1.1.0", Kubernetes: ">=1.25", Status: compat.StatusTested},
			},
		},
		Changelog: []byte("# Changelog\n\n## [0.5.0] - 2026-03-04\n\n- Better.\n"),
		Planned: []plan.Cell{{
			ID: cellID, Provider: "embedded", Kubernetes: "1.34.4", Candidate: "0.5.0", From: released, Baseline: compat.RuntimeRelease{ImageTag: "1.0.0"}, Target: compat.RuntimeRelease{ImageTag: "1.1.0"},
			Row: compat.Upgrade{ID: "0.4.0", Rollback: compat.RollbackChart, CRDs: compat.CRDHook, Values: compat.ValuesDefault},
		}},
		Evidence: []Evidence{{
			Cell: &evidence.Cell{
				ID: cellID, Verdict: evidence.Proven,
				Upgrade: evidence.Upgrade{Row: "0.4.0", Rollback: "chart", CRDs: "hook", Values: "default"},
				From:    evidence.Release{Version: "0.4.0", Commit: commit},
				To:      evidence.Release{Version: "0.5.0", Chart: evidence.Artifact{Digest: "sha256:c"}, Image: evidence.Artifact{Digest: "sha256:i"}},
				Runtime: evidence.RuntimeImages{Baseline: evidence.Artifact{Ref: "ghcr.io/x:1.0.0"}, Target: evidence.Artifact{Ref: "ghcr.io/x:1.1.0"}},
				Cluster: evidence.Cluster{Provider: "embedded", Kubernetes: "v1.34.4"},
				Tool:    evidence.Tool{Commit: nextCommit, Go: "go1.26.8"},
				Steps:   []evidence.Step{{ID: "alive-after", Outcome: evidence.Passed}, {ID: "roll-forward", Outcome: evidence.Passed}},
			},
			Chart: "sha256:c", Image: "sha256:i", Go: "go1.26.8", Ancestor: true,
		}},
	}
}

func TestNothingAgainstIt(t *testing.T) {
	for name, change := range map[string]func(*Facts){
		"as it is": func(*Facts) {},
		"a cell that is not run": func(f *Facts) {
			f.Planned = append(f.Planned, plan.Cell{ID: "other", Skip: plan.Skip{Code: plan.SkipSameVersion, Text: "the same"}})
			f.Evidence = append(f.Evidence, Evidence{Cell: &evidence.Cell{ID: "other", Verdict: evidence.NotRun}})
		},
		"a cell of another provider": func(f *Facts) {
			other := *f.Evidence[0].Cell
			other.ID, other.Cluster.Provider = "on-kind", "kind"
			f.Evidence = append(f.Evidence, f.Evidence[0])
			f.Evidence[1].Cell = &other
		},
		"a cell of another provider that was not run": func(f *Facts) {
			f.Evidence = append(f.Evidence, Evidence{Cell: &evidence.Cell{ID: "on-kind", Verdict: evidence.NotRun, Upgrade: f.Evidence[0].Cell.Upgrade}})
		},
		"a published release":   func(f *Facts) { f.Evidence[0].Cell.From.Commit = "" },
		"another version of Go": func(f *Facts) { f.Evidence[0].Go = "go1.27.0" },
	} {
		facts := sound()
		change(&facts)
		if refusals := Refusals(facts); len(refusals) != 0 {
			t.Errorf("%s: got %+v", name, refusals)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Facts)
		what, do string
	}{
		{"a change", func(f *Facts) { f.Changes = []string{" M a", "?? b", "?? c", "?? d", "?? e", "?? f", "?? g"} }, "differs from its commit: M a, ?? b, ?? c, ?? d, ?? e and 2 more", "commit them"},
		{"the chart's version", func(f *Facts) { f.Chart.Version = "0.4.9" }, `Chart.yaml has the version "0.4.9", not 0.5.0`, "set version to 0.5.0"},
		{"the chart's appVersion", func(f *Facts) { f.Chart.AppVersion = "" }, `Chart.yaml has the appVersion "", not 0.5.0`, "set appVersion to 0.5.0"},
		{"released before", func(f *Facts) { f.Compatibility.OperatorReleases[0].Version = "0.5.0" }, "compatibility.yaml:6:5: 0.5.0 was released from commit " + commit, "choose a later version"},
		{"released later", func(f *Facts) { f.Compatibility.OperatorReleases[0].Version = "0.10.0" }, "compatibility.yaml:6:5: 0.10.0 was released already", "choose a later version"},
		{"an old claim", func(f *Facts) { f.Compatibility.Combinations[0].Status = compat.StatusTested }, "compatibility.yaml:20:5: operator 0.4.0 with runtime v1.0.0 is said to be tested", "historical"},
		{"a claim that nothing proves", func(f *Facts) { f.Evidence[0].Cell.Steps = nil }, "compatibility.yaml:25:5: operator 0.5.0 with runtime v1.1.0 is said to be tested", "historical"},
		{"no claim", func(f *Facts) { f.Compatibility.Combinations[1].Status = compat.StatusHistorical }, "compatibility.yaml claims no combination of operator 0.5.0", "add what"},
		{"the changelog", func(f *Facts) { f.Changelog = []byte("## [0.4.0] - 2026-03-04\n") }, "CHANGELOG.md has no section for 0.5.0", "## [0.5.0] - YYYY-MM-DD"},
		{"generated files", func(f *Facts) { f.OutOfSync = []string{"UPGRADE-MATRIX.md"} }, "generated files are out of date: UPGRADE-MATRIX.md", "make generate"},

		{"a red cell", func(f *Facts) {
			f.Evidence[0].Cell.Verdict, f.Evidence[0].Cell.Reason = evidence.Refuted, "traffic: no answer"
		}, "failed: traffic: no answer", "--cell " + cellID},
		{"evidence of another version", func(f *Facts) { f.Evidence[0].Cell.To.Version = "0.4.9" }, "the candidate is 0.5.0, and was 0.4.9", "--cell " + cellID},
		{"a dirty checkout", func(f *Facts) { f.Evidence[0].Cell.To.Dirty = true }, "changes that were not committed", "--cell " + cellID},
		{"a dirty tool", func(f *Facts) { f.Evidence[0].Cell.Tool.Dirty = true }, "changes that were not committed", "--cell " + cellID},
		{"another history", func(f *Facts) { f.Evidence[0].Ancestor = false }, "at commit " + nextCommit + ", which does not belong", "--cell " + cellID},
		{"another chart", func(f *Facts) { f.Evidence[0].Chart = "sha256:x" }, "about the chart sha256:c, and this commit's is sha256:x", "--cell " + cellID},
		{"another image", func(f *Facts) { f.Evidence[0].Image = "sha256:x" }, "about the operator image sha256:i, and this commit's is sha256:x", "--cell " + cellID},
		{"an image by another Go", func(f *Facts) { f.Evidence[0].Image = "sha256:x"; f.Evidence[0].Go = "go1.26.9" }, "it was gathered with go1.26.8, and this machine has go1.26.9", "--cell " + cellID},
		{"other checks", func(f *Facts) { f.Evidence[0].Changed = []string{"matrix/check/alive.go"} }, "has changed since: matrix/check/alive.go", "--fresh"},

		{"another row", func(f *Facts) { f.Planned[0].Row.Rollback = compat.RollbackNone }, "rollback is none, and was chart", "--cell " + cellID},
		{"a row that is no more", func(f *Facts) {
			other := *f.Evidence[0].Cell
			other.ID, other.Upgrade.Row = "gone", "gone"
			f.Evidence = append(f.Evidence, Evidence{Cell: &other})
		}, "evidence of gone: the compatibility file has no row gone", "delete evidence/gone.json"},
		{"a cell that has no evidence", func(f *Facts) { f.Planned = append(f.Planned, plan.Cell{ID: "other"}) }, "evidence of other: there is no evidence yet", "--cell other"},
		{"a cell that was not run", func(f *Facts) { f.Evidence[0].Cell.Verdict = evidence.NotRun }, "evidence of " + cellID + ": there is no evidence yet", "--cell " + cellID},
		{"a red cell of another provider", func(f *Facts) {
			other := *f.Evidence[0].Cell
			other.ID, other.Cluster.Provider, other.Verdict = "on-kind", "kind", evidence.Refuted
			f.Evidence = append(f.Evidence, Evidence{Cell: &other})
		}, "evidence of on-kind: failed", "--cell on-kind"},
		{"nothing proven", func(f *Facts) { f.Planned, f.Evidence = nil, nil }, "is said to be tested, and nothing proves it: there is no evidence", "go run ./tools/matrix"},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := sound()
			test.change(&facts)
			refusals := Refusals(facts)
			// Where the only cell proves nothing, the combination that rests on it is refused too.
			if others := slices.DeleteFunc(slices.Clone(refusals), func(r Refusal) bool {
				return strings.Contains(r.What, test.what) || strings.Contains(r.What, "is said to be tested")
			}); len(others) > 0 {
				t.Errorf("it also says %+v", others)
			}
			if !slices.ContainsFunc(refusals, func(r Refusal) bool { return strings.Contains(r.What, test.what) && strings.Contains(r.Do, test.do) }) {
				t.Errorf("got %+v, want one with %q and %q", refusals, test.what, test.do)
			}
		})
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{"1.0.5": "1.0.5", "v1.0.5": "1.0.5", "2.0.0-rc.1": "2.0.0-rc.1"} {
		if got, err := ParseVersion(text); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1.0", "v", "vv1.0.5", "1.0.5+build", "latest", "1.0.5 "} {
		if got, err := ParseVersion(text); err == nil || !strings.Contains(err.Error(), "X.Y.Z") {
			t.Errorf("%q: got %q, %v, want an error", text, got, err)
		}
	}
}

func TestCounts(t *testing.T) {
	for file, want := range map[string]bool{
		"matrix/check/alive.go": true, "chainsaw/roll-back/chainsaw-test.yaml": true, "tools/chainsaw/go.sum": true,
		"matrix/check/compare_test.go": false, "chainsaw/roll-back/README.md": false, "matrix/compat/testdata/valid/full.yaml": false,
	} {
		if got := Counts(file); got != want {
			t.Errorf("%s: got %v, want %v", file, got, want)
		}
	}
}
