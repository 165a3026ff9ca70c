package triage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// LabelProposal is the key of the label that proposals are listed by. The other keys are the
// impacts of a release.
const LabelProposal = "proposal"

// labelTexts are the labels by key. Names may be changed on GitHub: what a label is known by is
// the end of its description, which has to fit into 100 characters.
var labelTexts = map[string]struct{ name, color, description string }{
	LabelProposal:                       {"runtime-proposal", "1d76db", "A runtime release that awaits a decision"},
	string(compat.ImpactContractChange): {"runtime-contract-change", "d93f0b", "The release may change the runtime contract"},
	string(compat.ImpactRepresentative): {"runtime-representative", "0e8a16", "The release shows the contract as it is"},
	string(compat.ImpactRoutine):        {"runtime-routine", "c5def5", "The release is of no interest to the contract"},
}

// NewLabel is the label of a key as it is created, with its colour.
func NewLabel(key string) (label Label, color string) {
	text := labelTexts[key]
	return Label{Name: text.name, Description: text.description + " " + labelMark(key)}, text.color
}

func labelMark(key string) string { return "(trussium-triage/" + key + ")" }

// labelNames are the names that the label of a key has in a repository: one that was renamed
// first, then one with the usual name.
func labelNames(existing []Label, key string) []string {
	var names []string
	usual, _ := NewLabel(key)
	for _, label := range existing {
		if strings.HasSuffix(label.Description, labelMark(key)) || strings.EqualFold(label.Name, usual.Name) {
			names = append(names, label.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(compareBool(strings.EqualFold(a, usual.Name), strings.EqualFold(b, usual.Name)), strings.Compare(a, b))
	})
	return names
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
