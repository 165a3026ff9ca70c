package check

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func upgradeEvent(t *testing.T, name, reason string, at time.Time) unstructured.Unstructured {
	t.Helper()
	return object(t, `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: `+name+`, uid: `+name+`}
reason: `+reason+`
eventTime: "`+at.Format(time.RFC3339Nano)+`"
`)
}

func TestUpgradeInFlight(t *testing.T) {
	began, led, complete := noon, noon.Add(3*time.Second), noon.Add(20*time.Second)
	lease := func(taken time.Time) *unstructured.Unstructured {
		lease := object(t, `
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: d4fd4c09.trussium.io, uid: l1}
spec: {acquireTime: "`+taken.Format(time.RFC3339Nano)+`"}
`)
		return &lease
	}
	earlier := upgradeEvent(t, "earlier", "RuntimeUpgradeStarted", noon.Add(-time.Minute))
	tests := []struct {
		name   string
		taken  time.Time
		events []unstructured.Unstructured
		says   string // empty: the check passes
	}{
		{"one upgrade", led, []unstructured.Unstructured{
			upgradeEvent(t, "a", "RuntimeUpgradeStarted", began), upgradeEvent(t, "b", "RuntimeUpgradeCompleted", complete),
			upgradeEvent(t, "c", "RuntimeReady", complete),
		}, ""},
		{"started twice", led, []unstructured.Unstructured{
			upgradeEvent(t, "a", "RuntimeUpgradeStarted", began), upgradeEvent(t, "b", "RuntimeUpgradeStarted", led),
			upgradeEvent(t, "c", "RuntimeUpgradeCompleted", complete),
		}, "want one Started and one Completed"},
		{"never told to be complete", led, []unstructured.Unstructured{upgradeEvent(t, "a", "RuntimeUpgradeStarted", began)}, "want one Started"},
		{"the new operator was late", noon.Add(time.Minute), []unstructured.Unstructured{
			upgradeEvent(t, "a", "RuntimeUpgradeStarted", began), upgradeEvent(t, "b", "RuntimeUpgradeCompleted", complete),
		}, "40s before the new operator led"},
		{"the new operator was early", noon.Add(-time.Second), []unstructured.Unstructured{
			upgradeEvent(t, "a", "RuntimeUpgradeStarted", began), upgradeEvent(t, "b", "RuntimeUpgradeCompleted", complete),
		}, "1s before the roll had begun"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := &Snapshot{Events: []unstructured.Unstructured{earlier}}
			after := &Snapshot{Events: append([]unstructured.Unstructured{earlier}, test.events...), Lease: lease(test.taken)}
			result := judgeInFlight(*compat.DefaultOperator().Resource.Upgrade, before, after, began)
			if test.says == "" {
				passes(t, result)
				return
			}
			fails(t, UpgradeInFlight, test.name, result, test.says)
		})
	}
}

func TestNoFlapping(t *testing.T) {
	first, last := healthy(t), healthy(t)
	passes(t, compareSteady(first, last, time.Minute))
	for i := range last.Children {
		if last.Children[i].GetKind() == "Deployment" {
			last.Children[i].SetGeneration(4)
		}
	}
	fails(t, NoFlapping, "the Deployment is written again and again", compareSteady(first, last, time.Minute), "generation 1, 1m0s later 4")
}

// A removed release must take nothing with it.
func TestUninstallKeeps(t *testing.T) {
	crd := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trussiumruntimes.runtime.trussium.io, uid: crd1}
`)
	before, after := healthy(t), healthy(t)
	before.CRD, after.CRD = &crd, &crd
	passes(t, compareKept(before, after))
	after.Pods[0].SetUID("another")
	fails(t, UninstallReinstall, "a pod is rolled", compareKept(before, after), "was replaced")
	after = healthy(t)
	fails(t, UninstallReinstall, "the CRD goes with the release", compareKept(before, after), "the CRD trussiumruntimes.runtime.trussium.io is gone")
}

func TestFreshEqualsUpgraded(t *testing.T) {
	deployment := func(image, uid string) unstructured.Unstructured {
		return object(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, uid: `+uid+`, resourceVersion: "`+uid+`", generation: 3, annotations: {deployment.kubernetes.io/revision: "`+uid+`"}}
spec: {template: {spec: {containers: [{name: manager, image: "`+image+`"}]}}}
status: {replicas: 1}
`)
	}
	service := object(t, `
apiVersion: v1
kind: Service
metadata: {name: metrics, uid: s1}
spec: {clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1]}
`)
	upgraded := []unstructured.Unstructured{deployment("operator:1", "1"), service}
	passes(t, CompareReleases(upgraded, []unstructured.Unstructured{deployment("operator:1", "2"), service}))
	fails(t, FreshEqualsUpgraded, "an image stays behind", CompareReleases(upgraded, []unstructured.Unstructured{deployment("operator:2", "2"), service}), `operator:2`)
	fails(t, FreshEqualsUpgraded, "an object of the old chart stays", CompareReleases(upgraded, []unstructured.Unstructured{deployment("operator:1", "2")}), "Service/metrics is there after the upgrade, not after a fresh install")
	fails(t, FreshEqualsUpgraded, "an object is only made by an install", CompareReleases(upgraded[:1], upgraded), "Service/metrics is there after a fresh install, not after the upgrade")
}

// passes demands that the check is green.
func passes(t *testing.T, r Result) {
	t.Helper()
	if r.Outcome() != evidence.Passed {
		t.Errorf("red: %v", r.Failures)
	}
}

// fails demands that the check is red because of what, and says so.
func fails(t *testing.T, c Check, what string, r Result, says string) {
	t.Helper()
	mutation.Record(t, c.ID, what, r.Outcome() == evidence.Failed, r.Failures, says)
}
