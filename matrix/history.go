package matrix

import (
	"os"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// History is how long cells took that passed: those of all checkouts on this machine, and those of the evidence in this
// one. What can't be read is left out.
func (o Options) History() []plan.Past {
	return append(
		pastCells(false, filepath.Dir(RunDir(o.Repository, o.CacheDir)), "*", "evidence", "*.json"),
		pastCells(true, o.Repository, EvidenceDir, "*.json")...)
}

// pastCells are the proven ones of the documents that the pattern, given in its parts, matches.
func pastCells(elsewhere bool, pattern ...string) []plan.Past {
	files, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil {
		return nil
	}
	var past []plan.Past
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		cell, err := evidence.Unmarshal(content)
		if err != nil || cell.Verdict != evidence.Proven {
			continue
		}
		past = append(past, plan.Past{
			Cell: cell.ID, Provider: cell.Cluster.Provider, Took: cell.Took(), Finished: *cell.Finished, Elsewhere: elsewhere,
		})
	}
	return past
}
