package triage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// StateReason is why an issue is closed, in GitHub's words.
type StateReason string

// The reasons for closing an issue.
const (
	Completed  StateReason = "completed"
	NotPlanned StateReason = "not_planned"
	Duplicate  StateReason = "duplicate"
)

// Closing is how a proposal is closed.
type Closing struct {
	Reason StateReason `json:"reason"`
	// Comment says why. It begins with Marker, by which a comment that is already there is known.
	Comment string `json:"comment"`
	Marker  string `json:"marker"`
	// summary is the reason in a few words.
	summary string
}

func newClosing(reason StateReason, key, summary, text string) Closing {
	marker := fmt.Sprintf("<!-- trussium-triage closing=%s -->", key)
	return Closing{Reason: reason, Marker: marker, Comment: marker + "\n" + text, summary: summary}
}

// closing is the step that closes an issue, unless a person opened it again: then a person has
// to close it.
func closing(issue Issue, version string, c Closing) Step {
	if issue.Reopened {
		return Step{Action: Nothing, Version: version, Issue: issue.Number, Reason: c.summary + ", but somebody reopened it: left alone"}
	}
	return Step{Action: Close, Version: version, Issue: issue.Number, Reason: c.summary, Closing: &c}
}

func duplicateOf(first Issue) Closing {
	return newClosing(Duplicate, "duplicate", fmt.Sprintf("it is a duplicate of #%d", first.Number),
		fmt.Sprintf("Two runs proposed the same release at once. Its proposal is #%d.", first.Number))
}

func outdatedBy(current proposed) Closing {
	return newClosing(NotPlanned, "outdated", fmt.Sprintf("the image changed, #%d is about the new one", current.Number),
		fmt.Sprintf("The tag names another image since this was written. The proposal of that image is #%d.", current.Number))
}

// maxCells bounds how many cells of the evidence a comment lists.
const maxCells = 50

// decisionOn is how the decision closes a proposal.
func decisionOn(row compat.RuntimeRelease, cells []*evidence.Cell) Closing {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	why := ""
	if row.Reason != "" {
		why = "\nReason: " + code(row.Reason, maxValue) + "\n"
	}
	var reason StateReason
	var summary string
	switch row.Decision {
	case compat.DecisionValidated:
		reason, summary = Completed, fmt.Sprintf("validated by %d cells", len(cells))
		p("**Validated.** %s is in the validation set, with this evidence:", row.Version)
		p("")
		p("| Cell | Operator | Kubernetes | Runtime | Rollback |")
		p("| --- | --- | --- | --- | --- |")
		for _, c := range cells[:min(len(cells), maxCells)] {
			p("| `%s` | %s to %s | %s | %s to %s | %s |", c.ID, c.From.Version, c.To.Version, c.Cluster.Kubernetes,
				tagOf(c.Runtime.Baseline.Ref), tagOf(c.Runtime.Target.Ref), cmp.Or(c.Upgrade.Rollback, string(compat.RollbackNone)))
		}
		if len(cells) > maxCells {
			p("\nand %d more.", len(cells)-maxCells)
		}
		p("%s", why)
		p("It holds for this exact image, not for earlier or later releases.")
	case compat.DecisionSuperseded:
		reason, summary = NotPlanned, "superseded by "+row.SupersededBy
		p("**Superseded.** %s was selected in its place. %s stays unvalidated by this project, which is no claim that it does not work.", row.SupersededBy, row.Version)
		p("%s", why)
	default:
		reason, summary = NotPlanned, "not selected"
		p("**Not selected.** %s is not part of the validation set, and stays unvalidated by this project. That is neither a claim of compatibility nor a claim that it does not work.", row.Version)
		p("%s", why)
	}
	key := string(row.Decision)
	if row.SupersededBy != "" {
		key += "-by-" + row.SupersededBy
	}
	return newClosing(reason, key, summary, strings.TrimRight(b.String(), "\n"))
}

// tagOf is the tag of an image reference.
func tagOf(ref string) string { return ref[strings.LastIndexByte(ref, ':')+1:] }
