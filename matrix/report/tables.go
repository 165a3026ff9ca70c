package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/claim"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// tables are those that documents show between markers. root leads from the document to the root of the checkout: it is
// empty, or ends with a slash.
var tables = map[string]func(in Input, root string) []byte{
	"combinations":      combinationTable,
	"operator-releases": operatorTable,
	"runtime-releases":  runtimeTable,
	"upgrades":          upgradeTable,
}

func combinationTable(in Input, root string) []byte {
	w := &writer{}
	w.table([]string{"Operator", "Runtime", "Runtime chart", "Kubernetes, declared", "Status", "Evidence"}, rows(claim.Combinations(in.File, in.Documents), func(c claim.Combination) []string {
		return []string{text(c.Operator), text(c.Runtime), text(c.RuntimeChart), text(c.Kubernetes), combinationStatus(c), in.proofLinks(c, root)}
	}))
	return w.Bytes()
}

func combinationStatus(c claim.Combination) string {
	switch {
	case c.Status == compat.StatusHistorical:
		return "🗄️ historical: claimed by an earlier release, and not repeated here"
	case !c.Tested():
		return "❔ declared, and not proven: " + text(c.Reason)
	}
	var clusters []string
	for _, proof := range c.Proofs {
		if claim.Simulated(proof) != c.Simulated() {
			continue // said only of what the published image has shown
		}
		if on := cluster(proof); !slices.Contains(clusters, on) {
			clusters = append(clusters, on)
		}
	}
	status := "✅ tested on Kubernetes " + strings.Join(clusters, ", ")
	if c.Simulated() {
		status += ", with a simulated runtime image"
	}
	return status
}

func cluster(document *evidence.Cell) string {
	return text(fmt.Sprintf("%s (%s)", strings.TrimPrefix(document.Cluster.Kubernetes, "v"), document.Cluster.Provider))
}

func (in Input) proofLinks(c claim.Combination, root string) string {
	if !c.Tested() {
		return ""
	}
	links := in.sectionLink(c.Proofs[0].ID, c.Proofs[0].ID, root)
	if more := len(c.Proofs) - 1; more > 0 {
		links += fmt.Sprintf(" and %d more", more)
	}
	return links
}

// sectionLink leads to the section of a cell in the upgrade matrix.
func (in Input) sectionLink(name, id, root string) string {
	return fmt.Sprintf("[%s](%s%s#%s)", name, root, in.MatrixFile, anchor(id))
}

func upgradeTable(in Input, root string) []byte {
	w := &writer{}
	var byRow [][]claim.Cell
	for _, c := range in.cells() {
		last := len(byRow) - 1
		switch {
		case c.State == claim.Unlisted:
		case last >= 0 && rowID(byRow[last][0]) == rowID(c):
			byRow[last] = append(byRow[last], c)
		default:
			byRow = append(byRow, []claim.Cell{c})
		}
	}
	w.table([]string{"Operator", "Runtime image", "Chart rollback", "Result"}, rows(byRow, func(cells []claim.Cell) []string {
		var results []string
		for _, c := range cells {
			results = append(results, in.upgradeResult(c, root))
		}
		return []string{upgradeOf(cells[0]), runtimeOf(cells[0]), rollbackOf(cells[0]), strings.Join(results, "<br>")}
	}))
	return w.Bytes()
}

func (in Input) upgradeResult(c claim.Cell, root string) string {
	s := statusOf(c)
	on := text(fmt.Sprintf("on Kubernetes %s (%s)", kubernetes(c), c.Provider()))
	if c.State == claim.NotRun {
		return fmt.Sprintf("%s %s: %s", s, on, text(c.Reason))
	}
	return fmt.Sprintf("%s %s %s%s", s.symbol, in.sectionLink(s.word, c.ID, root), on, simulated(c.Evidence))
}

func operatorTable(in Input, _ string) []byte {
	w := &writer{}
	releases := slices.Clone(in.File.OperatorReleases)
	slices.SortStableFunc(releases, func(a, b compat.OperatorRelease) int { return claim.CompareVersions(b.Version, a.Version) })
	w.table([]string{"Operator release", "Commit", "Known defects"}, rows(releases, func(r compat.OperatorRelease) []string {
		var defects []string
		for _, d := range r.KnownDefects {
			defects = append(defects, fmt.Sprintf("%s Fixed in %s.", text(d.Summary), text(d.FixedIn)))
		}
		return []string{text(r.Version), code(r.Commit[:12]), strings.Join(defects, "<br>")}
	}))
	return w.Bytes()
}

func runtimeTable(in Input, _ string) []byte {
	w := &writer{}
	releases := slices.Clone(in.File.RuntimeReleases)
	slices.SortStableFunc(releases, func(a, b compat.RuntimeRelease) int { return claim.CompareVersions(b.Version, a.Version) })
	w.table([]string{"Runtime release", "Image tag", "Contract", "Decision", "Reason"}, rows(releases, func(r compat.RuntimeRelease) []string {
		decision := string(r.Decision)
		if r.SupersededBy != "" {
			decision += " by " + r.SupersededBy
		}
		return []string{text(r.Version), text(r.ImageTag), text(string(r.ContractImpact)), text(decision), text(r.Reason)}
	}))
	return w.Bytes()
}
