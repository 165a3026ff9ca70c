package cell

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func chartRow() Spec { return Spec{Upgrade: evidence.Upgrade{Rollback: "chart"}} }

// upTo is the evidence of a cell in which all steps before the one with that id passed.
func upTo(list []step, id string) *evidence.Cell {
	cell := &evidence.Cell{Key: "k", Verdict: evidence.Unfinished}
	for _, s := range list {
		if s.id == id {
			break
		}
		cell.Record(evidence.Step{ID: s.id, Check: s.check, Outcome: evidence.Passed})
	}
	return cell
}

func TestResumeAt(t *testing.T) {
	list := steps(chartRow())
	index := map[string]int{}
	for i, s := range list {
		index[s.id] = i
	}
	tests := []struct {
		name     string
		previous *evidence.Cell
		key      string
		alive    bool
		want     string // the step to go on with; empty: the beginning
	}{
		{"never run", nil, "k", true, ""},
		{"before the upgrade", upTo(list, stepUpgrade), "k", true, stepUpgrade},
		{"cluster gone", upTo(list, stepUpgrade), "k", false, ""},
		{"other artifacts", upTo(list, stepUpgrade), "other", true, ""},
		{"in the middle of the upgrade", upTo(list, check.AliveAfter.ID), "k", true, ""},
		{"in the comparisons", upTo(list, check.SpecUntouched.ID), "k", true, check.SpecUntouched.ID},
		{"before the roll", upTo(list, check.RollForward.ID), "k", true, check.RollForward.ID},
		{"between the rolls", upTo(list, check.RollBack.ID), "k", true, ""},
		{"before the rollback", upTo(list, stepNewest), "k", true, stepNewest},
		{"before the second upgrade", upTo(list, check.ForwardAgain.ID), "k", true, check.ForwardAgain.ID},
		{"before the removal", upTo(list, check.UninstallReinstall.ID), "k", true, check.UninstallReinstall.ID},
		{"in the middle of the rollback", upTo(list, check.OldAlive.ID), "k", true, ""},
		{"before the comparison of releases", upTo(list, check.FreshEqualsUpgraded.ID), "k", true, check.FreshEqualsUpgraded.ID},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := 0
			if test.want != "" {
				want = index[test.want]
			}
			if got := resumeAt(list, test.previous, "", test.key, test.alive); got != want {
				t.Errorf("goes on with step %d (%s), want %d (%s)", got, list[got].id, want, list[want].id)
			}
		})
	}
	finished := upTo(list, "none")
	finished.Verdict = evidence.Refuted
	if got := resumeAt(list, finished, "", "k", true); got != 0 {
		t.Errorf("a finished cell goes on with step %d", got)
	}
}

// A cell that was killed in the middle of a step goes on with that step if it only looks, and
// starts again if it changes the cluster. Without its cluster it starts again in any case.
func TestResumeAfterAKillInEachStep(t *testing.T) {
	looks := []string{
		stepSnapshot, check.WorkloadUntouched.ID, check.ChildrenKept.ID, check.SpecUntouched.ID, check.StatusKept.ID, check.NoNewEvents.ID,
		check.CRDLiveEqualsChart.ID, check.Quiet.ID, check.CRDAndObjectsSurvive.ID, check.NoFlapping.ID, check.UpgradeInFlight.ID, check.FreshEqualsUpgraded.ID,
	}
	list := steps(chartRow())
	for i, s := range list {
		want := 0
		if slices.Contains(looks, s.id) {
			want = i
		}
		previous := upTo(list, s.id)
		if got := resumeAt(list, previous, s.id, "k", true); got != want {
			t.Errorf("killed in %s it goes on with step %d (%s), want %d (%s)", s.id, got, list[got].id, want, list[want].id)
		}
		if got := resumeAt(list, previous, s.id, "k", false); got != 0 {
			t.Errorf("killed in %s and without its cluster it goes on with step %d (%s)", s.id, got, list[got].id)
		}
	}
}

func TestJudge(t *testing.T) {
	list := steps(chartRow())
	with := func(changes ...evidence.Step) *evidence.Cell {
		cell := upTo(list, "none")
		for _, change := range changes {
			cell.Record(change)
		}
		return cell
	}
	failed := func(id, reason string) evidence.Step {
		return evidence.Step{ID: id, Check: true, Outcome: evidence.Failed, Reason: reason}
	}
	tests := []struct {
		name     string
		cell     *evidence.Cell
		declared bool
		want     evidence.Verdict
		says     string
	}{
		{"all passed", with(), false, evidence.Proven, ""},
		{"one failed", with(failed(check.Quiet.ID, "moved")), false, evidence.Refuted, "quiet: moved"},
		{"could not look", with(failed(check.Quiet.ID, infrastructureMark+"connection refused")), false, evidence.Infrastructure, "quiet: connection refused"},
		{"failed, then could not look", with(failed(check.LiveRBAC.ID, "no right"), failed(check.Quiet.ID, infrastructureMark+"timeout")), false, evidence.Refuted, "no right"},
		{"could not look, then failed", with(failed(check.LiveRBAC.ID, infrastructureMark+"timeout"), failed(check.Quiet.ID, "moved")), false, evidence.Infrastructure, "timeout"},
		{"baseline never installed", with(failed(stepInstall, "no pod")), false, evidence.BaselineBroken, "install: no pod"},
		{"baseline dead", with(failed(check.BaselineAlive.ID, "not Ready")), false, evidence.BaselineBroken, "no known defect says so"},
		{"baseline alive, declared dead", with(failed(check.BaselineAlive.ID, "it reconciles")), true, evidence.BaselineBroken, "correct its knownDefects"},
		{"skipped by the row", with(evidence.Step{ID: check.OldAlive.ID, Check: true, Outcome: evidence.Skipped, Reason: "the row does not roll the chart back"}), false, evidence.Proven, ""},
		{"not reached", with(evidence.Step{ID: check.OldAlive.ID, Check: true, Outcome: evidence.Skipped, Reason: "not reached: it needs rollback"}), false, evidence.Refuted, "not reached"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			verdict, reason := judge(test.cell, test.declared)
			if verdict != test.want || !strings.Contains(reason, test.says) {
				t.Errorf("verdict is %s %q, want %s with %q", verdict, reason, test.want, test.says)
			}
		})
	}
}

// A step is skipped when one it needs did not pass, and every needed step comes before.
func TestNeeds(t *testing.T) {
	list := steps(chartRow())
	seen := map[string]bool{}
	for _, s := range list {
		if seen[s.id] {
			t.Errorf("two steps have the id %s", s.id)
		}
		for _, need := range s.needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not come before it", s.id, need)
			}
		}
		seen[s.id] = true
		cell := upTo(list, s.id)
		if reason := notReached(cell, s); reason != "" {
			t.Errorf("%s after nothing but passed steps: %s", s.id, reason)
		}
		for _, need := range s.needs {
			cell := upTo(list, s.id)
			cell.Step(need).Outcome = evidence.Failed
			if notReached(cell, s) == "" {
				t.Errorf("%s is run although %s failed", s.id, need)
			}
		}
	}
}

// A row without a chart rollback, and one from a broken release, leave steps out with a reason,
// and never those that prove that the new operator lives.
func TestRowsLeaveStepsOut(t *testing.T) {
	skipped := func(spec Spec) map[string]string {
		out := map[string]string{}
		for _, s := range steps(spec) {
			if s.skip != "" {
				out[s.id] = s.skip
			}
		}
		return out
	}
	image := skipped(Spec{Upgrade: evidence.Upgrade{Rollback: "runtime-image", RollbackReason: "1.0.4 is broken"}})
	if len(image) != 8 || !strings.Contains(image[check.HelmRollback.ID], "1.0.4 is broken") {
		t.Errorf("a row that rolls back the runtime image alone leaves out %v", image)
	}
	for _, id := range []string{check.RollBack.ID, check.UninstallReinstall.ID, check.FreshEqualsUpgraded.ID} {
		if image[id] != "" {
			t.Errorf("a row that rolls back the runtime image alone leaves out %s", id)
		}
	}
	broken := skipped(Spec{Upgrade: evidence.Upgrade{Rollback: "chart"}, From: evidence.Release{KnownDefects: []string{"rbac"}}})
	for _, id := range []string{check.BaselineAlive.ID, check.AliveAfter.ID, check.LiveRBAC.ID, check.RollForward.ID} {
		if broken[id] != "" {
			t.Errorf("a row from a broken release leaves out %s", id)
		}
	}
	if broken[check.WorkloadUntouched.ID] == "" {
		t.Error("a row from a broken release compares pods that never ran")
	}
}

// A chain passes every release on the way, in order, before the checkout.
func TestChainPassesThrough(t *testing.T) {
	spec := chartRow()
	spec.Through = []evidence.Release{{Version: "0.5.0"}, {Version: "1.0.4"}}
	var ids []string
	for _, s := range steps(spec) {
		ids = append(ids, s.id)
	}
	at := slices.Index(ids, stepSnapshot)
	if want := []string{"snapshot", "through-0.5.0", "through-1.0.4", "upgrade"}; !slices.Equal(ids[at:at+4], want) {
		t.Errorf("the steps are %q, want %q among them", ids, want)
	}
}

// The documentation lists every check with its claim, word for word.
func TestChecksAreDocumented(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "matrix.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range steps(chartRow()) {
		row := fmt.Sprintf("| `%s` | %s |", s.id, s.claim)
		if s.check && !strings.Contains(string(content), row) {
			t.Errorf("docs/matrix.md lacks the row\n%s", row)
		}
	}
}
