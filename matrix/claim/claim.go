// Package claim holds what compatibility.yaml says against the evidence: which cells of the matrix are tested, which
// are not and why, and which combinations may be called tested. It is pure.
package claim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// State is what is known about a cell.
type State string

const (
	// Tested is a cell whose evidence is about the planned row and proves it.
	Tested State = "tested"
	// Red is a cell whose evidence says that it did not pass.
	Red State = "red"
	// Uncommitted is a cell that passed with changes that nobody else has.
	Uncommitted State = "uncommitted"
	// Outdated is a cell that passed as something else than the row says now.
	Outdated State = "outdated"
	// NotRun is a cell without evidence.
	NotRun State = "not-run"
	// Unlisted is evidence of a row that the file does not have.
	Unlisted State = "unlisted"
)

// Cell is a planned cell and the evidence of it.
type Cell struct {
	ID string
	// Planned is nil if State is Unlisted.
	Planned *plan.Cell
	// Evidence is nil if there is none.
	Evidence *evidence.Cell
	State    State
	// Reason says why the state is not Tested. It is empty for Tested.
	Reason string
}

// Provider is the name of its cluster provider.
func (c Cell) Provider() string {
	if c.Planned != nil {
		return c.Planned.Provider
	}
	return c.Evidence.Cluster.Provider
}

// Rerun is the command that runs it.
func (c Cell) Rerun() string {
	return fmt.Sprintf("go run ./tools/matrix run --provider %s --cell %s", c.Provider(), c.ID)
}

// Cells pairs the plan with the evidence: the planned cells in their order, then the evidence that is left, by id. Of
// the latter, cells of planned rows count like planned ones: they ran on another Kubernetes version or provider.
func Cells(planned []plan.Cell, documents []*evidence.Cell) []Cell {
	byID := map[string]*evidence.Cell{}
	for _, document := range documents {
		byID[document.ID] = document
	}
	var cells []Cell
	for i := range planned {
		p := &planned[i]
		state, reason := judge(p, byID[p.ID])
		cells = append(cells, Cell{ID: p.ID, Planned: p, Evidence: byID[p.ID], State: state, Reason: reason})
		delete(byID, p.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		cells = append(cells, unplanned(planned, byID[id]))
	}
	return cells
}

// unplanned is a cell that the plan does not ask for.
func unplanned(planned []plan.Cell, document *evidence.Cell) Cell {
	i := slices.IndexFunc(planned, func(p plan.Cell) bool { return p.Row.ID == document.Upgrade.Row })
	if i < 0 {
		return Cell{ID: document.ID, Evidence: document, State: Unlisted, Reason: "the compatibility file has no row " + document.Upgrade.Row}
	}
	asked := planned[i]
	asked.ID, asked.Provider, asked.Kubernetes = document.ID, document.Cluster.Provider, strings.TrimPrefix(document.Cluster.Kubernetes, "v")
	if asked.Skip.Code == plan.SkipKubernetesUnavailable {
		asked.Skip = plan.Skip{}
	}
	state, reason := judge(&asked, document)
	return Cell{ID: document.ID, Planned: &asked, Evidence: document, State: state, Reason: reason}
}

func judge(planned *plan.Cell, document *evidence.Cell) (State, string) {
	if planned.Skip.Code != "" {
		return NotRun, planned.Skip.Text
	}
	if document == nil || document.Verdict == evidence.NotRun {
		return NotRun, "there is no evidence yet"
	}
	if objection := objection(document); objection != "" {
		return Red, objection
	}
	if difference := Difference(*planned, document); difference != "" {
		return Outdated, difference
	}
	if !Committed(document) {
		return Uncommitted, "the evidence was gathered with changes that were not committed"
	}
	return Tested, ""
}

// objection says why a document proves nothing; empty if it does.
func objection(document *evidence.Cell) string {
	if document.Verdict == evidence.Proven {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s", document.Verdict, document.Reason), ": ")
}

// Committed tells that the evidence is of a commit, without changes that only one machine had.
func Committed(document *evidence.Cell) bool { return !document.To.Dirty && !document.Tool.Dirty }

// Difference says how the evidence is about something else than the planned cell; empty if it is about that cell.
func Difference(planned plan.Cell, document *evidence.Cell) string {
	releases := document.Sources()
	listed := planned.Sources()
	type field struct{ name, now, then string }
	fields := []field{
		{"the candidate", planned.Candidate, document.To.Version},
		{"from and through", versions(listed, func(r compat.OperatorRelease) string { return r.Version }), versions(releases, func(r evidence.Release) string { return r.Version })},
		{"rollback", string(planned.Row.Rollback), document.Upgrade.Rollback},
		{"rollbackReason", planned.Row.RollbackReason, document.Upgrade.RollbackReason},
		{"crds", string(planned.Row.CRDs), document.Upgrade.CRDs},
		{"values", string(planned.Row.Values), document.Upgrade.Values},
		{"runtime.baseline", planned.Baseline.ImageTag, Tag(document.Runtime.Baseline)},
		{"runtime.target", planned.Target.ImageTag, Tag(document.Runtime.Target)},
		{"the provider", planned.Provider, document.Cluster.Provider},
	}
	if planned.Kubernetes != "" {
		fields = append(fields, field{"the Kubernetes version", planned.Kubernetes, strings.TrimPrefix(document.Cluster.Kubernetes, "v")})
	}
	for _, f := range fields {
		if f.now != f.then {
			return fmt.Sprintf("%s is %s, and was %s in the evidence", f.name, orNone(f.now), orNone(f.then))
		}
	}
	for i, release := range listed {
		if difference := releaseDifference(release, releases[i]); difference != "" {
			return difference
		}
	}
	return cmp.Or(imageDifference(planned.Baseline, document.Runtime.Baseline), imageDifference(planned.Target, document.Runtime.Target))
}

func releaseDifference(now compat.OperatorRelease, then evidence.Release) string {
	// A published release has no commit.
	if then.Commit != "" && then.Commit != now.Commit {
		return fmt.Sprintf("the commit of %s is %s, and was %s in the evidence", now.Version, now.Commit, then.Commit)
	}
	var defects []string
	for _, defect := range now.KnownDefects {
		defects = append(defects, defect.ID+": "+defect.Summary)
	}
	if !slices.Equal(defects, then.KnownDefects) {
		return fmt.Sprintf("the known defects of %s are %s, and were %s in the evidence", now.Version, orNone(strings.Join(defects, "; ")), orNone(strings.Join(then.KnownDefects, "; ")))
	}
	return ""
}

// imageDifference compares the digest that a decision about a runtime release is about.
func imageDifference(now compat.RuntimeRelease, then evidence.Artifact) string {
	if now.Digest == "" || then.Simulated || now.Digest == then.Digest {
		return ""
	}
	return fmt.Sprintf("the image of %s is %s, and was %s in the evidence", now.Version, now.Digest, then.Digest)
}

func versions[T any](releases []T, version func(T) string) string {
	var all []string
	for _, release := range releases {
		all = append(all, version(release))
	}
	return strings.Join(all, ", ")
}

func orNone(text string) string { return cmp.Or(text, "none") }

// Tag is the tag of an image or chart.
func Tag(a evidence.Artifact) string { return a.Ref[strings.LastIndex(a.Ref, ":")+1:] }

// Simulated tells that a runtime image of the cell was only a stand-in.
func Simulated(document *evidence.Cell) bool {
	return document.Runtime.Baseline.Simulated || document.Runtime.Target.Simulated
}
