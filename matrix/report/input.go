// Package report turns evidence into documents for people and for CI. It sees the compatibility file, its plan and the
// evidence, and nothing else: the same input gives the same bytes.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/claim"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// Input is what reports are made from.
type Input struct {
	// File is the compatibility file.
	File *compat.File
	// Planned are the cells of the file for every provider.
	Planned []plan.Cell
	// Documents are the evidence in the checkout.
	Documents []*evidence.Cell
	// EvidenceDir is the folder of the documents, and MatrixFile the path of the upgrade matrix, relative to the root of
	// the checkout, with slashes.
	EvidenceDir string
	MatrixFile  string
}

// cells pairs plan and evidence, newest first: by the release that is upgraded to, then by the one that is come from,
// then by Kubernetes version. Several providers stand side by side.
func (in Input) cells() []claim.Cell {
	cells := claim.Cells(in.Planned, in.Documents)
	slices.SortStableFunc(cells, func(a, b claim.Cell) int {
		return cmp.Or(
			claim.CompareVersions(candidate(b), candidate(a)),
			claim.CompareVersions(source(b), source(a)),
			cmp.Compare(rowID(a), rowID(b)),
			claim.CompareVersions(kubernetes(b), kubernetes(a)),
		)
	})
	return cells
}

// The evidence tells what was seen; the plan tells the rest. Evidence of a cell that was left out has no releases.

func rowID(c claim.Cell) string {
	if c.Evidence != nil {
		return c.Evidence.Upgrade.Row
	}
	return c.Planned.Row.ID
}

func candidate(c claim.Cell) string {
	if c.Planned != nil {
		return c.Planned.Candidate
	}
	return c.Evidence.To.Version
}

func source(c claim.Cell) string {
	if c.Planned != nil {
		return c.Planned.From.Version
	}
	return c.Evidence.From.Version
}

func kubernetes(c claim.Cell) string {
	if c.Planned != nil {
		return c.Planned.Kubernetes
	}
	return strings.TrimPrefix(c.Evidence.Cluster.Kubernetes, "v")
}

// upgradeOf names the releases of a cell in Markdown, oldest first.
func upgradeOf(c claim.Cell) string {
	var versions []string
	broken := false
	if c.Planned != nil {
		for _, release := range c.Planned.Sources() {
			versions = append(versions, release.Version)
			broken = broken || len(release.KnownDefects) > 0
		}
	} else {
		for _, release := range c.Evidence.Sources() {
			versions = append(versions, release.Version)
			broken = broken || len(release.KnownDefects) > 0
		}
	}
	chain := len(versions) > 1
	name := text(strings.Join(append(versions, candidate(c)), " → "))
	if c.Planned != nil || c.Evidence.To.Source == "checkout" {
		name += " (checkout)"
	}
	switch {
	case broken && chain:
		name += "<br>by way of a release known to be broken"
	case broken:
		name += "<br>from a release known to be broken"
	}
	return name
}

// runtimeOf names the runtime images of a cell.
func runtimeOf(c claim.Cell) string {
	if c.Planned != nil {
		return text(c.Planned.Baseline.ImageTag + " → " + c.Planned.Target.ImageTag)
	}
	return text(claim.Tag(c.Evidence.Runtime.Baseline) + " → " + claim.Tag(c.Evidence.Runtime.Target))
}

func rollbackOf(c claim.Cell) string {
	rollback, reason := "", ""
	if c.Planned != nil {
		rollback, reason = string(c.Planned.Row.Rollback), c.Planned.Row.RollbackReason
	} else {
		rollback, reason = c.Evidence.Upgrade.Rollback, c.Evidence.Upgrade.RollbackReason
	}
	if reason == "" {
		return text(rollback)
	}
	return text(rollback + ": " + reason)
}

// simulated is what a result on stand-ins for runtime images needs to be read with.
func simulated(document *evidence.Cell) string {
	if claim.Simulated(document) {
		return ", simulated runtime"
	}
	return ""
}

// status is a symbol and a word. Only proven cells are called tested.
type status struct{ symbol, word string }

func (s status) String() string { return s.symbol + " " + s.word }

func statusOf(c claim.Cell) status {
	switch c.State {
	case claim.Tested:
		return status{"✅", "tested"}
	case claim.Red, claim.Uncommitted:
		return documentStatus(c.Evidence)
	case claim.Outdated:
		return status{"⚠️", "outdated"}
	case claim.Unlisted:
		s := documentStatus(c.Evidence)
		s.word += ", and no longer in the compatibility file"
		return s
	default:
		return status{"⏭️", "not run"}
	}
}

// documentStatus is what a document says by itself.
func documentStatus(document *evidence.Cell) status {
	switch document.Verdict {
	case evidence.Proven:
		if !claim.Committed(document) {
			return status{"☑️", "passed with uncommitted changes"}
		}
		return status{"✅", "tested"}
	case evidence.Refuted:
		return status{"❌", "failed"}
	case evidence.BaselineBroken:
		return status{"❌", "baseline broken"}
	case evidence.Infrastructure:
		return status{"⚠️", "not judged: infrastructure"}
	case evidence.NotRun:
		return status{"⏭️", "not run"}
	default:
		return status{"⏳", "unfinished"}
	}
}

func outcomeSymbol(o evidence.Outcome) string {
	switch o {
	case evidence.Passed:
		return "✅"
	case evidence.Failed:
		return "❌"
	default:
		return "⏭️"
	}
}

// checkCount tells how many checks of a cell passed, of those that were not left out for a reason of the row.
func checkCount(document *evidence.Cell) string {
	passed, all, left := 0, 0, 0
	for _, step := range document.Steps {
		switch {
		case !step.Check:
		case step.Outcome == evidence.Skipped:
			left++
		default:
			all++
			if step.Outcome == evidence.Passed {
				passed++
			}
		}
	}
	text := fmt.Sprintf("%d of %d checks", passed, all)
	if left > 0 {
		text += fmt.Sprintf(", %d left out", left)
	}
	return text
}
