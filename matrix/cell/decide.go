package cell

import (
	"fmt"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// infrastructureMark begins the reason of a step that could not look, as opposed to one that
// saw something wrong.
const infrastructureMark = "infrastructure: "

// notReachedMark begins the reason of a step that was not run because of an earlier one.
const notReachedMark = "not reached: "

// notApplicableMark begins the reason of a step that has nothing to look at in this operator.
const notApplicableMark = "not applicable: "

// notApplicable is the reason of a step that returned check.ErrNotApplicable, which may stand anywhere in the text.
func notApplicable(err error) string {
	return notApplicableMark + strings.Replace(err.Error(), notApplicableMark, "", 1)
}

// resumeAt decides where an interrupted cell goes on: the index of the first step to run, 0 to
// start again; begun is the step that was begun last. It goes on only with the same key, with its
// cluster, and never in the middle of steps that belong together: those from a step marked as an
// entry to the next entry are run whole or not at all, so that the cell falls back to the start
// when one of them is cut. A step that changes the cluster can't be begun twice either: a `helm
// upgrade` that was killed leaves its release pending.
func resumeAt(steps []step, previous *evidence.Cell, begun, key string, clusterAlive bool) int {
	if previous == nil || !clusterAlive || previous.Key != key || previous.Verdict != evidence.Unfinished {
		return 0
	}
	for i, step := range steps {
		if previous.Step(step.id) != nil {
			continue
		}
		if step.repeatable || step.entry && step.id != begun {
			return i
		}
		return 0
	}
	return 0
}

// notReached says why a step can't be run: one that it needs did not pass. Empty if it can.
func notReached(document *evidence.Cell, step step) string {
	for _, id := range step.needs {
		needed := document.Step(id)
		if needed != nil && needed.Outcome == evidence.Skipped && strings.HasPrefix(needed.Reason, notApplicableMark) {
			continue // it leaves the cluster as it was
		}
		if needed == nil || needed.Outcome != evidence.Passed {
			return notReachedMark + "it needs " + id
		}
	}
	return ""
}

// judge gives the verdict of a cell whose steps have all been run: the first step that did not
// end well decides, since later ones may only show its consequences. A release with a declared
// known defect must show it.
func judge(document *evidence.Cell, defectDeclared bool) (evidence.Verdict, string) {
	for _, step := range document.Steps {
		notReached := step.Outcome == evidence.Skipped && strings.HasPrefix(step.Reason, notReachedMark)
		if step.Outcome != evidence.Failed && !notReached {
			continue
		}
		if text, found := strings.CutPrefix(step.Reason, infrastructureMark); found {
			return evidence.Infrastructure, fmt.Sprintf("%s: %s", step.ID, text)
		}
		if step.ID == check.BaselineAlive.ID && defectDeclared {
			return evidence.BaselineBroken, fmt.Sprintf("%s is declared to have a known defect, and works: correct its knownDefects", document.From.Version)
		}
		if step.ID == check.BaselineAlive.ID || step.ID == stepInstall || step.ID == stepRuntime {
			return evidence.BaselineBroken, fmt.Sprintf("%s does not work, and no known defect says so: %s: %s", document.From.Version, step.ID, step.Reason)
		}
		return evidence.Refuted, fmt.Sprintf("%s: %s", step.ID, step.Reason)
	}
	return evidence.Proven, ""
}
