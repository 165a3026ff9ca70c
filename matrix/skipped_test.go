package matrix

import (
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// skippedCell is a cell that is not run, so that nobody resolves its artifacts.
var skippedCell = plan.Cell{
	ID: "1.0.4--checkout--k8s-1.99.0--embedded",
	From: compat.OperatorRelease{
		Version: "1.0.4", Commit: strings.Repeat("a", 40), KnownDefects: []compat.KnownDefect{{ID: "role", Summary: "The role is incomplete."}},
	},
	Baseline: compat.RuntimeRelease{Version: "v1.27.0", ImageTag: "1.27.0"}, Target: compat.RuntimeRelease{Version: "v1.30.0", ImageTag: "1.30.0"},
	Candidate: "1.0.5", Kubernetes: "1.99.0", Provider: "embedded",
	Skip: plan.Skip{Code: plan.SkipKubernetesUnavailable, Text: "there is none"},
}

// The evidence of a cell that was not run says what was not run, and why.
func TestSkippedCellSaysWhatItIsAbout(t *testing.T) {
	p := &prepared{}
	p.subject.Runtime.Image = "ghcr.io/trussiumhq/trussium"
	got := skipped(p.spec(skippedCell), skippedCell)
	if got.From.Version != "1.0.4" || got.From.Commit != skippedCell.From.Commit || len(got.From.KnownDefects) != 1 {
		t.Errorf("from is %+v", got.From)
	}
	if got.Runtime.Baseline.Ref != "ghcr.io/trussiumhq/trussium:1.27.0" || got.Runtime.Target.Ref != "ghcr.io/trussiumhq/trussium:1.30.0" {
		t.Errorf("the runtime images are %+v", got.Runtime)
	}
	if got.Verdict != evidence.NotRun || got.Reason != "kubernetes-unavailable: there is none" || got.Cluster.Kubernetes != "1.99.0" {
		t.Errorf("the verdict is %s %q on %+v", got.Verdict, got.Reason, got.Cluster)
	}
}

func TestAgain(t *testing.T) {
	const usual = "go run ./tools/matrix run --fresh --retain --cell a"
	for _, test := range []struct {
		options Options
		cell    plan.Cell
		want    string
	}{
		{Options{Repository: "/r", Tools: "/r", File: "../r/compatibility.yaml"}, plan.Cell{ID: "a", Provider: "embedded"}, usual},
		{Options{}, plan.Cell{ID: "a", Provider: "kind"}, usual + " --provider kind"},
		{Options{Kubernetes: []string{"1.34.4", "1.35.8"}}, plan.Cell{ID: "a", Provider: "embedded", Kubernetes: "1.35.8"}, usual + " --kubernetes 1.35.8"},
		{Options{Repository: "/r", Tools: "/t", File: "/r/other.yaml"}, plan.Cell{ID: "a", Provider: "embedded"}, usual + " --repository PATH --file other.yaml"},
	} {
		if got := test.options.again(test.cell); got != test.want {
			t.Errorf("%+v: %q, want %q", test.options, got, test.want)
		}
	}
}

// Everything that decides how a cell ends is in its key.
func TestKeyCoversWhatDecidesTheResult(t *testing.T) {
	key := func(change func(*prepared, *plan.Cell)) string {
		p := &prepared{common: map[string]string{}, controls: map[string]string{}}
		c := skippedCell
		change(p, &c)
		return p.spec(c).Key
	}
	keys := map[string]string{key(func(*prepared, *plan.Cell) {}): "nothing"}
	for name, change := range map[string]func(*prepared, *plan.Cell){
		"the tool":             func(p *prepared, _ *plan.Cell) { p.common["tool"] = "x" },
		"the checkout's code":  func(p *prepared, _ *plan.Cell) { p.common["source"] = "x" },
		"controller-gen":       func(p *prepared, _ *plan.Cell) { p.common["controller-gen"] = "x" },
		"the control plane":    func(p *prepared, c *plan.Cell) { p.controls[c.Kubernetes] = "x" },
		"the release's commit": func(_ *prepared, c *plan.Cell) { c.From.Commit = strings.Repeat("b", 40) },
		"a declared defect":    func(_ *prepared, c *plan.Cell) { c.From.KnownDefects = nil },
		"the candidate":        func(p *prepared, _ *plan.Cell) { p.checkout.Image.Digest = "x" },
		"the candidate's name": func(_ *prepared, c *plan.Cell) { c.Candidate = "1.0.6" },
		"the row's values":     func(_ *prepared, c *plan.Cell) { c.Row.Values = compat.ValuesReuse },
	} {
		got := key(change)
		if same, known := keys[got]; known {
			t.Errorf("the key of a change of %s is that of a change of %s", name, same)
		}
		keys[got] = name
	}
}
