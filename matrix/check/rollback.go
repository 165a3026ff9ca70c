package check

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HelmRollback is the check of the release after `helm rollback`.
var HelmRollback = Check{
	ID:    "helm-rollback",
	Claim: "`helm rollback` works, twice in a row: the release is deployed, its rendered manifest equals the first install's, and the old operator is back.",
}

// RolledBack is what Helm says of the release before the upgrade and after the rollback.
type RolledBack struct {
	FirstManifest, Manifest string
	Status                  string
	ChartVersion, WantChart string
}

// JudgeRollback judges Helm's side of HelmRollback.
func JudgeRollback(state RolledBack) Result {
	var r Result
	if state.Status != "deployed" {
		r.Fail("the release is %s, deployed is wanted", state.Status)
	}
	if state.ChartVersion != state.WantChart {
		r.Fail("the release has chart version %s, %s is wanted", state.ChartVersion, state.WantChart)
	}
	if state.Manifest != state.FirstManifest {
		r.Fail("the rendered manifest differs from the first install's (%d bytes, %d before)", len(state.Manifest), len(state.FirstManifest))
	}
	if state.FirstManifest != "" {
		r.See("the release is %s with chart %s and a manifest of %d bytes, byte for byte the first install's", state.Status, state.ChartVersion, len(state.FirstManifest))
	}
	return r
}

// CRDAndObjectsSurvive is the check that a chart rollback takes nothing away.
var CRDAndObjectsSurvive = Check{
	ID:    "crd-and-objects-survive",
	Claim: "The chart rollback neither downgraded nor deleted the CRD; runtimes, managed objects and pods are what they were, and the newest fields are still stored.",
}

// CompareSurvival judges CRDAndObjectsSurvive; chart is the newer chart's CRD.
func CompareSurvival(ctx context.Context, t Target, before, after *Snapshot, chart *unstructured.Unstructured) (Result, error) {
	var r Result
	if before.CRD == nil || after.CRD == nil {
		r.Fail("the CRD %s is gone", crdName(before, after))
		return r, nil
	}
	r.same(pair{name: "CustomResourceDefinition/" + crdName(before), before: before.CRD, after: after.CRD})
	r.Add(CompareSpecs(before, after))
	r.Add(CompareChildren(before, after))
	r.Add(CompareWorkload(before, after))
	crd, err := CompareCRD(ctx, t, chart)
	if err != nil {
		return r, fmt.Errorf("after the rollback: %w", err)
	}
	r.Add(crd)
	return r, nil
}
