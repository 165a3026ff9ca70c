package check

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// object parses YAML into an object of a snapshot.
func object(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	o := unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := o.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return o
}

// healthy is a snapshot of one runtime with all that belongs to it.
func healthy(t *testing.T) *Snapshot {
	t.Helper()
	s := &Snapshot{}
	s.Runtimes = append(s.Runtimes, object(t, `
apiVersion: runtime.trussium.io/v1alpha1
kind: TrussiumRuntime
metadata: {name: rt, uid: r1, generation: 2}
spec:
  replicas: 1
  image: {repository: example.com/trussium, tag: 1.27.0}
  networkPolicy: {enabled: true}
  autoscaling: {enabled: true}
status:
  observedGeneration: 2
  currentImage: example.com/trussium:1.27.0
  lastSuccessfulImage: example.com/trussium:1.27.0
  conditions:
  - {type: Ready, status: "True", reason: RuntimeReady, lastTransitionTime: "2026-11-29T10:00:00Z"}
`))
	for _, kind := range compat.DefaultOperator().Resource.Managed {
		s.Wanted++
		child := unstructured.Unstructured{}
		child.SetAPIVersion(kind.APIVersion)
		child.SetKind(kind.Kind)
		child.SetName("rt")
		child.SetUID("uid-" + "rt")
		child.SetGeneration(1)
		controls := true
		child.SetOwnerReferences(ownerOf(&s.Runtimes[0], &controls))
		switch kind.Kind {
		case "Service":
			set(t, &child, "10.96.0.7", "spec", "clusterIP")
		case "Deployment":
			set(t, &child, "1", "spec", "template", "metadata", "annotations", "checksum")
		}
		s.Children = append(s.Children, child)
	}
	s.ReplicaSets = append(s.ReplicaSets, object(t, `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rt-1, uid: rs1}
spec: {replicas: 1}
`))
	s.Pods = append(s.Pods, object(t, `
apiVersion: v1
kind: Pod
metadata: {name: rt-1-a, uid: p1}
status: {containerStatuses: [{restartCount: 0}]}
`))
	s.Events = append(s.Events, object(t, `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: rt.1, uid: e1}
reason: RuntimeReady
regarding: {kind: TrussiumRuntime, name: rt}
`))
	return s
}

func set(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func child(s *Snapshot, kind string) *unstructured.Unstructured {
	for i := range s.Children {
		if s.Children[i].GetKind() == kind {
			return &s.Children[i]
		}
	}
	return nil
}

// Every check over two snapshots passes on equal ones, and each mutation of the second turns
// red the checks that it must turn red, and no other.
func TestComparisons(t *testing.T) {
	judges := map[string]func(before, after *Snapshot) Result{
		WorkloadUntouched.ID: CompareWorkload,
		ChildrenKept.ID:      CompareChildren,
		SpecUntouched.ID:     CompareSpecs,
		StatusKept.ID:        CompareStatus,
		NoNewEvents.ID:       CompareEvents,
	}
	tests := []struct {
		name   string
		mutate func(t *testing.T, s *Snapshot)
		red    string // ids, joined by a blank
		says   string
	}{
		{"nothing", func(*testing.T, *Snapshot) {}, "", ""},
		{"pod template annotation", func(t *testing.T, s *Snapshot) {
			set(t, child(s, "Deployment"), "2", "spec", "template", "metadata", "annotations", "checksum")
		}, "workload-untouched", `spec.template.metadata.annotations.checksum was "1", is "2"`},
		{"deployment generation", func(t *testing.T, s *Snapshot) { child(s, "Deployment").SetGeneration(2) }, "workload-untouched", "generation 1 before, 2 after"},
		{"new ReplicaSet", func(t *testing.T, s *Snapshot) {
			s.ReplicaSets = append(s.ReplicaSets, object(t, "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: rt-2, uid: rs2}}"))
		}, "workload-untouched", "ReplicaSet/rt-2 was not there before"},
		{"pod replaced", func(t *testing.T, s *Snapshot) { s.Pods[0].SetUID("p2") }, "workload-untouched", "was replaced"},
		{"pod gone", func(t *testing.T, s *Snapshot) { s.Pods = nil }, "workload-untouched", "Pod/rt-1-a is gone"},
		{"pod restarted", func(t *testing.T, s *Snapshot) {
			set(t, &s.Pods[0], []any{map[string]any{"restartCount": int64(1)}}, "status", "containerStatuses")
		}, "workload-untouched", "0 restarts before, 1 after"},
		{"service replaced", func(t *testing.T, s *Snapshot) { child(s, "Service").SetUID("other") }, "children-kept", "Service/rt was replaced"},
		{"cluster IP", func(t *testing.T, s *Snapshot) { set(t, child(s, "Service"), "10.96.0.8", "spec", "clusterIP") }, "children-kept", "clusterIP"},
		{"orphaned", func(t *testing.T, s *Snapshot) { child(s, "ConfigMap").SetOwnerReferences(nil) }, "children-kept", "controller owner was TrussiumRuntime/rt (UID r1), is none"},
		{"deployment gone", func(t *testing.T, s *Snapshot) { *child(s, "Deployment") = unstructured.Unstructured{} }, "children-kept workload-untouched", "Deployment/rt is gone"},
		{"spec edited", func(t *testing.T, s *Snapshot) { set(t, &s.Runtimes[0], int64(3), "spec", "replicas") }, "spec-untouched", "spec.replicas was 1, is 3"},
		{"generation moved", func(t *testing.T, s *Snapshot) {
			s.Runtimes[0].SetGeneration(3)
			set(t, &s.Runtimes[0], int64(3), "status", "observedGeneration")
		}, "spec-untouched", "generation 2 before, 3 after"},
		{"last successful image lost", func(t *testing.T, s *Snapshot) { set(t, &s.Runtimes[0], "", "status", "lastSuccessfulImage") }, "status-kept", "lastSuccessfulImage"},
		{"observedGeneration behind", func(t *testing.T, s *Snapshot) { set(t, &s.Runtimes[0], int64(1), "status", "observedGeneration") }, "status-kept", "observedGeneration is 1"},
		{"condition flapped", func(t *testing.T, s *Snapshot) {
			conditionEntry(&s.Runtimes[0], "Ready")
			set(t, &s.Runtimes[0], []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T11:00:00Z"}}, "status", "conditions")
		}, "status-kept", "lastTransitionTime"},
		{"condition gone", func(t *testing.T, s *Snapshot) { set(t, &s.Runtimes[0], []any{}, "status", "conditions") }, "status-kept", "condition Ready is gone"},
		{"new event", func(t *testing.T, s *Snapshot) {
			s.Events = append(s.Events, object(t, "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: rt.2, uid: e2}, reason: RuntimeDegraded}"))
		}, "no-new-events", "RuntimeDegraded"},
		{"event repeated", func(t *testing.T, s *Snapshot) { set(t, &s.Events[0], int64(2), "series", "count") }, "no-new-events", "repeated 2 times"},
		{"runtime gone", func(t *testing.T, s *Snapshot) { s.Runtimes = nil }, "spec-untouched status-kept", "TrussiumRuntime/rt is gone"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, after := healthy(t), healthy(t)
			test.mutate(t, after)
			for id, judge := range judges {
				r := judge(before, after)
				wantRed := strings.Contains(" "+test.red+" ", " "+id+" ")
				isRed := r.Outcome() == evidence.Failed
				if isRed && !wantRed {
					t.Errorf("%s is red, too: %v", id, r.Failures)
				}
				if wantRed {
					mutation.Record(t, id, test.name, isRed, r.Failures, test.says)
				}
			}
		})
	}
}

// A check that finds nothing to compare has proven nothing.
func TestEmptySnapshotsProveNothing(t *testing.T) {
	for name, judge := range map[string]func(before, after *Snapshot) Result{
		"workload": CompareWorkload, "children": CompareChildren, "specs": CompareSpecs, "status": CompareStatus,
	} {
		r := judge(&Snapshot{}, &Snapshot{})
		if r.Outcome() != evidence.Failed {
			t.Errorf("%s passes on empty snapshots", name)
		}
		if r.Reason() == "" {
			t.Errorf("%s gives no reason", name)
		}
	}
}

func ownerOf(owner *unstructured.Unstructured, controls *bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: controls}}
}
