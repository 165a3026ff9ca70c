package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/claim"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// Evidence is the evidence of one cell, and what was found out about where it comes from.
type Evidence struct {
	Cell *evidence.Cell
	// Chart and Image are the digests that the commit's chart and operator image have, built for the platform that
	// the evidence was gathered on.
	Chart, Image string
	// Go is the version of Go that they were built with.
	Go string
	// Ancestor tells that the commit which the evidence was gathered at belongs to the history of this one.
	Ancestor bool
	// Changed are the files that the matrix is made of and that changed since.
	Changed []string
}

// RestsOn are the paths in a checkout that a result depends on besides chart and operator image: the checks, the
// scenarios, the cluster and the simulator. Tests and documents among them do not count, see Counts.
var RestsOn = []string{"chainsaw", "matrix", "tools/chainsaw", "tools/controlplane", "tools/matrix", "tools/runtimesim"}

// Counts tells whether a result depends on a file below RestsOn.
func Counts(file string) bool {
	return !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(file, ".md") && !strings.Contains(file, "/testdata/")
}

// proof is what evidence is missing, and what stands against the evidence that there is.
func proof(facts Facts) []Refusal {
	var refusals []Refusal
	for _, cell := range claim.Cells(facts.Planned, documents(facts)) {
		var reasons []string
		switch {
		case cell.State == claim.Tested:
			reasons = objections(facts, cell.ID)
		case cell.State != claim.NotRun || required(facts.Planned, cell.ID):
			reasons = []string{cell.Reason}
		}
		for _, reason := range reasons {
			refusals = append(refusals, Refusal{
				What: fmt.Sprintf("evidence of %s: %s", cell.ID, reason),
				Do:   advice(cell),
			})
		}
	}
	for _, problem := range claim.Problems(facts.Compatibility, nil, claim.Combinations(facts.Compatibility, documents(facts))) {
		refusals = append(refusals, Refusal{
			What: fmt.Sprintf("%s:%d:%d: %s", problem.File, problem.Line, problem.Column, problem.Message),
			Do:   problem.Advice,
		})
	}
	return refusals
}

func documents(facts Facts) []*evidence.Cell {
	var cells []*evidence.Cell
	for _, item := range facts.Evidence {
		cells = append(cells, item.Cell)
	}
	return cells
}

// required tells whether the cell has to be run. Evidence of other cells is not needed, but has to be sound.
func required(planned []plan.Cell, id string) bool {
	return slices.ContainsFunc(planned, func(cell plan.Cell) bool { return cell.ID == id && cell.Skip.Code == "" })
}

func advice(cell claim.Cell) string {
	if cell.State == claim.Unlisted {
		return fmt.Sprintf("delete evidence/%s.json, run `go run ./tools/matrix report`, and commit", cell.ID)
	}
	return fmt.Sprintf("run `%s --fresh`, and commit what it writes", cell.Rerun())
}

// objections are what stands against the evidence of a cell though it proves its row: that it is not about this commit.
func objections(facts Facts, id string) []string {
	item := facts.Evidence[slices.IndexFunc(facts.Evidence, func(item Evidence) bool { return item.Cell.ID == id })]
	cell := item.Cell
	var objections []string
	object := func(format string, args ...any) { objections = append(objections, fmt.Sprintf(format, args...)) }
	if !item.Ancestor {
		object("it was gathered at commit %s, which does not belong to the history of this one", cell.Tool.Commit)
	}
	if cell.To.Chart.Digest != item.Chart {
		object("it is about the chart %s, and this commit's is %s", cell.To.Chart.Digest, item.Chart)
	}
	if cell.To.Image.Digest != item.Image {
		because := ""
		if cell.Tool.Go != item.Go {
			because = fmt.Sprintf(" (it was gathered with %s, and this machine has %s)", cell.Tool.Go, item.Go)
		}
		object("it is about the operator image %s, and this commit's is %s%s", cell.To.Image.Digest, item.Image, because)
	}
	if len(item.Changed) > 0 {
		object("what it rests on has changed since: %s", list(item.Changed))
	}
	return objections
}
