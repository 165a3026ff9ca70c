package evidence

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompare changes a document in one way each.
func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Cell)
		want   []Change
	}{
		"nothing":     {func(*Cell) {}, nil},
		"times":       {func(c *Cell) { c.Started, c.Steps[0].Seconds = c.Started.AddDate(1, 0, 0), 99 }, nil},
		"key":         {func(c *Cell) { c.Key = "other" }, nil},
		"seen":        {func(c *Cell) { c.Steps[0].Seen = []string{"other"} }, nil},
		"verdict":     {func(c *Cell) { c.Verdict = Refuted }, []Change{{"verdict", "passed", "failed", true}}},
		"step":        {func(c *Cell) { c.Steps[0].Outcome = Failed }, []Change{{"step quiet", "passed", "failed", true}}},
		"step gone":   {func(c *Cell) { c.Steps = nil }, []Change{{"step quiet", "passed", "", true}}},
		"step more":   {func(c *Cell) { c.Record(Step{ID: "x", Outcome: Passed}) }, []Change{{"step x", "", "passed", false}}},
		"image":       {func(c *Cell) { c.To.Image.Digest = "sha256:9" }, []Change{{"operator image after", "", "sha256:9", false}}},
		"published":   {func(c *Cell) { c.Runtime.Baseline.Simulated = false }, []Change{{"runtime image, baseline", "r:1@sha256:2 (simulated)", "r:1@sha256:2", false}}},
		"Kubernetes":  {func(c *Cell) { c.Cluster.Kubernetes = "v1.37.2" }, []Change{{"Kubernetes", "v1.34.4", "v1.37.2", false}}},
		"commit":      {func(c *Cell) { c.Tool.Commit, c.Tool.Dirty = "c", true }, []Change{{"commit", "", "c with uncommitted changes", false}}},
		"more fail":   {func(c *Cell) { c.Disruption("upgrade").FailedRequests = new(3) }, []Change{{"disruption by upgrade, failed requests", "2", "3", true}}},
		"fewer fail":  {func(c *Cell) { c.Disruption("upgrade").FailedRequests = new(0) }, []Change{{"disruption by upgrade, failed requests", "2", "0", false}}},
		"not counted": {func(c *Cell) { c.Disruption("upgrade").FailedRequests = nil }, []Change{{"disruption by upgrade, failed requests", "2", "", false}}},
		"a little":    {func(c *Cell) { c.Disruption("upgrade").HandoverSeconds = new(2.4) }, nil},
		"longer":      {func(c *Cell) { c.Disruption("upgrade").HandoverSeconds = new(7.2) }, []Change{{"disruption by upgrade, handover", "2 s", "7 s", false}}},
		"another":     {func(c *Cell) { c.Disruption("rollback").PodsReplaced = new(2) }, []Change{{"disruption by rollback, pods replaced", "", "2", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := sample(), sample()
			for _, cell := range []*Cell{before, after} {
				d := cell.Disruption("upgrade")
				d.FailedRequests, d.HandoverSeconds = new(2), new(2.1)
			}
			test.change(after)
			var got []Change
			differences := Compare([]*Cell{before}, []*Cell{after})
			for _, difference := range differences {
				got = append(got, difference.Changes...)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if len(differences) == 1 && differences[0].Worse != test.want[0].Worse {
				t.Errorf("worse: %v, changes %v", differences[0].Worse, got)
			}
		})
	}
}

func TestCompareSets(t *testing.T) {
	cell := func(id string, verdict Verdict) *Cell {
		c := sample()
		c.ID, c.Verdict = id, verdict
		return c
	}
	got := Compare([]*Cell{cell("c", Proven), cell("a", Refuted), cell("same", Proven)}, []*Cell{cell("b", Proven), cell("same", Proven)})
	want := []Difference{
		{"a", false, []Change{{"verdict", "failed", "", false}}},
		{"b", false, []Change{{"verdict", "", "passed", false}}},
		{"c", true, []Change{{"verdict", "passed", "", true}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
