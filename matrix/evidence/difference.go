package evidence

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Difference is how the evidence of one cell differs between two sets.
type Difference struct {
	ID string `json:"id"`
	// Worse tells that the later set proves less: a cell or a check no longer passes, or clients and pods noticed more.
	Worse   bool     `json:"worse"`
	Changes []Change `json:"changes"`
}

// Change is one thing that differs. A side that does not have it is empty.
type Change struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
	Worse  bool   `json:"worse"`
}

// Compare tells how two sets of evidence differ, by id. Times differ with every run, and do not count.
func Compare(before, after []*Cell) []Difference {
	older, newer := byID(before), byID(after)
	ids := slices.Collect(maps.Keys(older))
	for id := range newer {
		if older[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	var differences []Difference
	for _, id := range ids {
		if changes := compareCells(older[id], newer[id]); len(changes) > 0 {
			worse := slices.ContainsFunc(changes, func(c Change) bool { return c.Worse })
			differences = append(differences, Difference{ID: id, Worse: worse, Changes: changes})
		}
	}
	return differences
}

func byID(cells []*Cell) map[string]*Cell {
	found := map[string]*Cell{}
	for _, cell := range cells {
		found[cell.ID] = cell
	}
	return found
}

// compareCells takes nil for a cell that a set does not have.
func compareCells(before, after *Cell) []Change {
	var changes []Change
	add := func(what, was, is string, worse bool) {
		if was != is {
			changes = append(changes, Change{What: what, Before: was, After: is, Worse: worse})
		}
	}
	if before == nil || after == nil {
		add("verdict", verdictOf(before), verdictOf(after), verdictOf(before) == string(Proven))
		return changes
	}
	add("verdict", verdictOf(before), verdictOf(after), before.Verdict == Proven)
	add("reason", before.Reason, after.Reason, false)
	for _, id := range union(stepIDs(before), stepIDs(after)) {
		was, is := outcomeOf(before, id), outcomeOf(after, id)
		add("step "+id, was, is, was == string(Passed))
	}
	was, is := facts(before), facts(after)
	for i := range was {
		add(was[i].name, was[i].value, is[i].value, false)
	}
	for _, step := range union(disruptedSteps(before), disruptedSteps(after)) {
		was, is := numbers(before, step), numbers(after, step)
		for i := range was {
			more := was[i].counts && was[i].number != nil && is[i].number != nil && *is[i].number > *was[i].number
			add("disruption by "+step+", "+was[i].name, was[i].String(), is[i].String(), more)
		}
	}
	return changes
}

func verdictOf(cell *Cell) string {
	if cell == nil {
		return ""
	}
	return string(cell.Verdict)
}

func stepIDs(cell *Cell) []string {
	var ids []string
	for _, step := range cell.Steps {
		ids = append(ids, step.ID)
	}
	return ids
}

func outcomeOf(cell *Cell, id string) string {
	if step := cell.Step(id); step != nil {
		return string(step.Outcome)
	}
	return ""
}

func disruptedSteps(cell *Cell) []string {
	var ids []string
	for _, d := range cell.Disruptions {
		ids = append(ids, d.Step)
	}
	return ids
}

// union keeps the order of a, then that of b.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, item := range b {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

type fact struct{ name, value string }

// facts are what a cell is about, the same list for every cell.
func facts(cell *Cell) []fact {
	var through []string
	for _, release := range cell.Through {
		through = append(through, release.Version)
	}
	return []fact{
		{"from", cell.From.Version}, {"through", strings.Join(through, ", ")}, {"to", cell.To.Version},
		{"values", cell.Upgrade.Values}, {"crds", cell.Upgrade.CRDs}, {"rollback", cell.Upgrade.Rollback},
		{"chart before", cell.From.Chart.Digest}, {"operator image before", cell.From.Image.Digest},
		{"chart after", cell.To.Chart.Digest}, {"operator image after", cell.To.Image.Digest},
		{"runtime image, baseline", image(cell.Runtime.Baseline)}, {"runtime image, target", image(cell.Runtime.Target)},
		{"Kubernetes", cell.Cluster.Kubernetes}, {"control plane", cell.Cluster.Control},
		{"commit", commit(cell.Tool)},
	}
}

func image(a Artifact) string {
	text := a.Ref + "@" + a.Digest
	if a.Simulated {
		text += " (simulated)"
	}
	return text
}

func commit(t Tool) string {
	if t.Dirty {
		return t.Commit + " with uncommitted changes"
	}
	return t.Commit
}

// number is a number of a disruption; nil if it is not known. Counts are the same in every run that goes the same way.
type number struct {
	name   string
	number *float64
	unit   string
	counts bool
}

func (n number) String() string {
	if n.number == nil {
		return ""
	}
	return strconv.FormatFloat(*n.number, 'f', -1, 64) + n.unit
}

func numbers(cell *Cell, step string) []number {
	var d Disruption
	if i := slices.IndexFunc(cell.Disruptions, func(d Disruption) bool { return d.Step == step }); i >= 0 {
		d = cell.Disruptions[i]
	}
	count := func(n *int) *float64 {
		if n == nil {
			return nil
		}
		return new(float64(*n))
	}
	return []number{
		{"failed requests", count(d.FailedRequests), "", true}, {"pods replaced", count(d.PodsReplaced), "", true},
		{"longest gap", rounded(d.LongestGapSeconds), " s", false}, {"handover", rounded(d.HandoverSeconds), " s", false},
	}
}

// rounded leaves out what no two runs have in common.
func rounded(seconds *float64) *float64 {
	if seconds == nil {
		return nil
	}
	value, err := strconv.ParseFloat(fmt.Sprintf("%.0f", *seconds), 64)
	if err != nil {
		return nil // NaN and infinities are no JSON
	}
	return &value
}
