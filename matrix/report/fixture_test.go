package report

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// sample is real evidence: the upgrade from 0.3.1 on Kubernetes 1.34.4.
func sample(t testing.TB) *evidence.Cell {
	t.Helper()
	cells, err := (evidence.Store{Dir: filepath.Join("testdata", "evidence")}).All()
	if err != nil || len(cells) != 1 {
		t.Fatalf("%d samples, %v", len(cells), err)
	}
	document := cells[0]
	document.To.Version = "1.0.5"
	return document
}

// variant is the sample as the evidence of another cell.
func variant(t testing.TB, id string, change func(*evidence.Cell)) *evidence.Cell {
	t.Helper()
	document := sample(t)
	document.ID = id
	document.Reproduce = strings.ReplaceAll(document.Reproduce, "0.3.1--checkout--k8s-1.34.4--embedded", id)
	document.Upgrade.Row, _, _ = strings.Cut(id, "--")
	if strings.HasSuffix(id, "--kind") {
		document.Cluster.Provider, document.Cluster.Limits = "kind", nil
		document.Runtime.Baseline.Simulated, document.Runtime.Target.Simulated = false, false
	}
	change(document)
	return document
}

func fail(document *evidence.Cell, verdict evidence.Verdict, step, reason string) {
	document.Verdict, document.Reason = verdict, step+": "+reason
	failed := document.Step(step)
	failed.Outcome, failed.Reason = evidence.Failed, reason
}

func skip(document *evidence.Cell, reason string, steps ...string) {
	for _, id := range steps {
		step := document.Step(id)
		step.Outcome, step.Reason, step.Seen = evidence.Skipped, reason, nil
	}
}

// results are one cell of each kind.
func results(t testing.TB) []*evidence.Cell {
	t.Helper()
	return []*evidence.Cell{
		variant(t, "0.3.1--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			up := d.Disruption("upgrade")
			up.Requests, up.FailedRequests, up.LongestGapSeconds, up.PodsReplaced, up.HandoverSeconds = new(79), new(0), new(10.742), new(0), new(2.234)
			forward := d.Disruption("roll-forward")
			forward.Requests, forward.FailedRequests, forward.LongestGapSeconds = new(195), new(1), new(0.0885)
		}),
		variant(t, "0.3.1--checkout--k8s-1.34.4--kind", func(d *evidence.Cell) {}),
		variant(t, "0.3.1--checkout--k8s-1.31.13--kind", func(d *evidence.Cell) { d.Cluster.Kubernetes = "v1.31.13" }),
		variant(t, "0.5.0--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			d.From.Version, d.From.Commit, d.Upgrade.CRDs = "0.5.0", "1111111111111111111111111111111111111111", "hook"
			fail(d, evidence.Refuted, "traffic", "3 of 79 requests failed (first: <b>no</b> | [answer](https://example.org))")
			skip(d, "not reached: it needs traffic", "roll-forward", "roll-back")
		}),
		variant(t, "0.5.0--checkout--k8s-1.34.4--kind", func(d *evidence.Cell) {
			d.From.Version, d.From.Commit, d.Upgrade.CRDs = "0.5.0", "1111111111111111111111111111111111111111", "hook"
			d.Verdict, d.Reason = evidence.Infrastructure, "cluster: no space left on device"
			d.Steps = []evidence.Step{{ID: "cluster", Phase: "cluster", Outcome: evidence.Failed, Reason: "infrastructure: no space left on device", Claim: "A cluster is up."}}
			d.Cluster = evidence.Cluster{}
		}),
		variant(t, "0.10.0--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			d.From.Version, d.From.Commit = "0.10.0", "2222222222222222222222222222222222222222"
		}),
		variant(t, "1.0.4--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			d.From.Version, d.From.Commit, d.Upgrade.CRDs = "1.0.4", "3333333333333333333333333333333333333333", "hook"
			d.From.KnownDefects = []string{"role-incomplete: The role <lacks> a | kind."}
			d.Upgrade.Rollback, d.Upgrade.RollbackReason = "runtime-image", "Nobody should go back to a broken chart."
			skip(d, "the row does not roll the chart back: Nobody should go back to a broken chart.", "helm-rollback", "old-alive", "crd-and-objects-survive")
		}),
		variant(t, "chain--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			d.Upgrade.CRDs, d.Upgrade.Rollback, d.Upgrade.RollbackReason = "hook", "none", "It only goes forward."
			d.Through = []evidence.Release{{Version: "0.5.0", Source: "published"}, {Version: "1.0.4", Source: "published", KnownDefects: []string{"role-incomplete: The role <lacks> a | kind."}}}
			d.To.Dirty, d.Tool.Dirty = true, true
		}),
		variant(t, "1.0.5--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {
			*d = evidence.Cell{
				APIVersion: d.APIVersion, Kind: d.Kind, ID: d.ID, Upgrade: d.Upgrade, To: d.To, Cluster: evidence.Cluster{Provider: "embedded", Kubernetes: "1.34.4"},
				Started: d.Started, Finished: &d.Started, Verdict: evidence.NotRun, Reason: "same-version: the checkout has the version 1.0.5 too: there is nothing to upgrade to", Reproduce: d.Reproduce,
			}
		}),
		variant(t, "gone--checkout--k8s-1.34.4--embedded", func(d *evidence.Cell) {}),
	}
}

// input is a file, its plan on two providers, and the results.
func input(t testing.TB) Input {
	t.Helper()
	file, err := compat.Load(filepath.Join("testdata", "compatibility.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	in := Input{File: file, Documents: results(t), EvidenceDir: "evidence", MatrixFile: "UPGRADE-MATRIX.md"}
	for _, provider := range []string{"embedded", "kind"} {
		cells, err := plan.Cells(file, plan.Options{Provider: provider, Candidate: "1.0.5"})
		if err != nil {
			t.Fatal(err)
		}
		in.Planned = append(in.Planned, cells...)
	}
	return in
}

// hostile makes every text of a document say what may end up as markup, and keeps its ids.
func hostile(t testing.TB, document *evidence.Cell, payload string) *evidence.Cell {
	t.Helper()
	content, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil {
		t.Fatal(err)
	}
	kept := []string{"id", "row", "step", "verdict", "outcome", "started", "finished"}
	var change func(key string, value any) any
	change = func(key string, value any) any {
		switch value := value.(type) {
		case string:
			if value == "" || slices.Contains(kept, key) {
				return value
			}
			switch key {
			case "phase", "provider", "kubernetes":
				return value + payload // what is grouped by these stays so
			case "claim":
				return strings.ReplaceAll(payload, "`", "") // claims may hold code
			}
			return payload
		case map[string]any:
			for k, v := range value {
				value[k] = change(k, v)
			}
		case []any:
			for i, v := range value {
				value[i] = change("", v)
			}
		}
		return value
	}
	content, err = json.Marshal(change("", fields))
	if err != nil {
		t.Fatal(err)
	}
	changed := &evidence.Cell{}
	if err := json.Unmarshal(content, changed); err != nil {
		t.Fatal(err)
	}
	return changed
}
