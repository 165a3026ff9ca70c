package cell

import (
	"context"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// step is one step of a cell.
type step struct {
	id, phase string
	// check tells that the step proves the claim, and does not only get there.
	check bool
	claim string
	// needs are the steps that must have passed.
	needs []string
	// entry marks a step that an interrupted cell can go on with, if the step had not begun.
	entry bool
	// repeatable marks an entry that changes nothing and only looks, so that an interrupted cell can
	// go on with it in any case.
	repeatable bool
	// skip is why the row leaves the step out; empty if it doesn't.
	skip string
	run  func(context.Context, *run) (check.Result, error)
}

// Phases of a cell, in the order of checks.md.
const (
	phaseStatic    = "static"
	phaseCluster   = "cluster"
	phaseBefore    = "before the upgrade"
	phaseUpgrade   = "across the operator upgrade"
	phaseRuntime   = "runtime image"
	phaseContainer = "real containers"
	phaseRollback  = "operator rollback"
	phaseReinstall = "removal and fresh install"
)

// rollbackChart is the rollback of a row that goes back to the earlier chart.
const rollbackChart = string(compat.RollbackChart)

// Steps that are actions. The others have the id of their check.
const (
	stepCluster  = "cluster"
	stepInstall  = "install"
	stepRuntime  = "runtime"
	stepSnapshot = "snapshot"
	stepUpgrade  = "upgrade"
	stepObserve  = "observe"
	stepRollback = "rollback"
	stepNewest   = "newest"
	// stepThrough is followed by the version of a release on the way.
	stepThrough = "through-"
)

// steps is the fixed list of steps of a cell.
func steps(spec Spec) []step {
	action := func(phase, id, claim string, needs []string, run func(context.Context, *run) (check.Result, error)) step {
		return step{id: id, phase: phase, claim: claim, needs: needs, run: run}
	}
	prove := func(phase string, c check.Check, needs []string, run func(context.Context, *run) (check.Result, error)) step {
		return step{id: c.ID, phase: phase, check: true, claim: c.Claim, needs: needs, run: run}
	}
	needs := func(ids ...string) []string { return ids }
	list := append(staticSteps(),
		action(phaseCluster, stepCluster, "A cluster is up.", nil, startCluster),
		action(phaseBefore, stepInstall, "The earlier release is installed with its own chart and image.", needs(stepCluster), install),
		action(phaseBefore, stepRuntime, "A runtime is there.", needs(stepInstall), createRuntime),
		prove(phaseBefore, check.BaselineAlive, needs(stepRuntime), baselineAlive),
		repeatable(action(phaseBefore, stepSnapshot, "What must not change is recorded.", needs(stepRuntime), snapshotBefore)),
	)
	last := stepSnapshot
	for _, release := range spec.Through {
		id := stepThrough + release.Version
		list = append(list, action(phaseBefore, id, "The chart is upgraded to "+release.Version+" on the way, which rolls no runtime.", needs(last), passThrough(release)))
		last = id
	}
	list = append(list,
		entry(action(phaseUpgrade, stepUpgrade, "The chart is upgraded with Helm.", needs(last), upgrade)),
		prove(phaseUpgrade, check.LiveRBAC, needs(stepUpgrade), liveRBAC),
		prove(phaseUpgrade, check.Handover, needs(stepUpgrade), handover),
		prove(phaseUpgrade, check.AliveAfter, needs(check.Handover.ID), aliveAfter),
		action(phaseUpgrade, stepObserve, "What must not have changed is observed.", needs(stepUpgrade), snapshotAfter),
		prove(phaseUpgrade, check.Traffic, needs(stepObserve), traffic),
		repeatable(prove(phaseUpgrade, check.WorkloadUntouched, needs(stepObserve), compare(check.CompareWorkload))),
		repeatable(prove(phaseUpgrade, check.ChildrenKept, needs(stepObserve), compare(check.CompareChildren))),
		repeatable(prove(phaseUpgrade, check.SpecUntouched, needs(stepObserve), compare(check.CompareSpecs))),
		repeatable(prove(phaseUpgrade, check.StatusKept, needs(stepObserve), compare(check.CompareStatus))),
		repeatable(prove(phaseUpgrade, check.NoNewEvents, needs(stepObserve), compare(check.CompareEvents))),
		repeatable(prove(phaseUpgrade, check.CRDLiveEqualsChart, needs(stepUpgrade), compareCRD)),
		entry(prove(phaseUpgrade, check.ReadinessHonest, needs(check.Handover.ID), readinessHonest)),
		repeatable(prove(phaseUpgrade, check.Quiet, needs(check.Handover.ID), quiet)),
		entry(prove(phaseUpgrade, check.ChangedWhileDown, needs(check.AliveAfter.ID), changedWhileDown)),
		entry(prove(phaseRuntime, check.RollForward, needs(check.AliveAfter.ID), rollForward)),
		prove(phaseRuntime, check.RollBack, needs(check.RollForward.ID), rollBack),
		entry(prove(phaseContainer, check.ContainerConfined, needs(check.AliveAfter.ID), contained(check.AwaitConfined))),
		entry(prove(phaseContainer, check.MemoryLimited, needs(stepCluster), contained(check.AwaitMemoryLimit))),
		entry(prove(phaseContainer, check.DrainsOnTerm, needs(check.AliveAfter.ID), contained(drains))),
		entry(prove(phaseContainer, check.MissingImageTold, needs(check.AliveAfter.ID), contained(missingImage))),
	)
	rollback := []step{
		entry(action(phaseRollback, stepNewest, "A runtime that uses the newest fields is there.", needs(check.AliveAfter.ID), createNewest)),
		action(phaseRollback, stepRollback, "The chart is rolled back with Helm.", needs(stepNewest), rollBackChart),
		prove(phaseRollback, check.HelmRollback, needs(stepRollback), helmRollback),
		repeatable(prove(phaseRollback, check.CRDAndObjectsSurvive, needs(stepRollback), survival)),
		prove(phaseRollback, check.OldAlive, needs(check.HelmRollback.ID), oldAlive),
		repeatable(prove(phaseRollback, check.NoFlapping, needs(check.HelmRollback.ID), noFlapping)),
		entry(prove(phaseRollback, check.ForwardAgain, needs(check.HelmRollback.ID), forwardAgain)),
		repeatable(prove(phaseRollback, check.UpgradeInFlight, needs(check.ForwardAgain.ID), inFlight)),
	}
	if spec.Upgrade.Rollback != rollbackChart {
		for i := range rollback {
			rollback[i].skip = "the row does not roll the chart back: " + spec.Upgrade.RollbackReason
		}
	}
	list = append(list, rollback...)
	installed := check.AliveAfter.ID
	if spec.Upgrade.Rollback == rollbackChart {
		installed = check.UpgradeInFlight.ID
	}
	list = append(list,
		entry(prove(phaseReinstall, check.UninstallReinstall, needs(installed), reinstall)),
		repeatable(prove(phaseReinstall, check.FreshEqualsUpgraded, needs(check.UninstallReinstall.ID, stepObserve), freshEqualsUpgraded)),
	)
	if broken(spec.From) {
		leaveOutForBrokenBaseline(list)
	}
	return list
}

// Checks are the checks of a cell that leaves nothing out, in the order of their steps.
func Checks() []check.Check {
	var checks []check.Check
	for _, s := range steps(Spec{Upgrade: evidence.Upgrade{Rollback: rollbackChart}}) {
		if s.check {
			checks = append(checks, check.Check{ID: s.id, Claim: s.claim})
		}
	}
	return checks
}

func entry(s step) step {
	s.entry = true
	return s
}

func repeatable(s step) step {
	s.entry, s.repeatable = true, true
	return s
}

// leaveOutForBrokenBaseline skips what compares with a state that a broken operator never made.
// That its objects come to life is alive-after's part.
func leaveOutForBrokenBaseline(list []step) {
	for i := range list {
		switch list[i].id {
		case check.WorkloadUntouched.ID, check.ChildrenKept.ID, check.StatusKept.ID, check.NoNewEvents.ID, check.Traffic.ID:
			list[i].skip = "nothing ran under a release that is known to be broken"
		case check.OldAlive.ID:
			list[i].skip = "the earlier release is known to be broken"
		}
	}
}
