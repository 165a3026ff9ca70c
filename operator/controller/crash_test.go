package controller_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// disturbedScenarios are those with more than one step for the operator, and the one in
// which it has nothing to do.
var disturbedScenarios = []string{"create", "config change", "image change", "disable autoscaling", "delete"}

// untilCollected is how long it may take until Kubernetes has removed the objects of a
// deleted runtime; a shorter time makes the test say less, not fail.
const untilCollected = 3 * time.Second

// disturbance is one way in which one scenario is disturbed.
type disturbance struct {
	scenario scenario
	outcome  outcome
	// fault strikes the write of number at, counted from 1.
	fault *fault
	at    int
	// late is the resource of which the operator learns late.
	late string
}

func (d disturbance) String() string {
	if d.fault == nil {
		return fmt.Sprintf("%s/late %s", d.scenario.name, d.late)
	}
	return fmt.Sprintf("%s/%s at write %d, %s", d.scenario.name, d.fault.name, d.at, d.outcome.writes[d.at-1])
}

// However an operator is disturbed, what it leaves behind is what an undisturbed one
// leaves, and nothing is made twice.
func TestDisturbedOperatorsReachTheSameEnd(t *testing.T) {
	var chosen []scenario
	for _, scenario := range scenarios() {
		if slices.Contains(disturbedScenarios, scenario.name) {
			chosen = append(chosen, scenario)
		}
	}
	outcomes := make([]outcome, len(chosen))
	var names []string
	for _, scenario := range chosen {
		names = append(names, scenario.name+"/undisturbed")
	}
	together(t, names, func(t *testing.T, i int) {
		_, outcomes[i] = chosen[i].play(t)
	})
	if t.Failed() {
		t.FailNow()
	}

	var disturbances []disturbance
	for i, scenario := range chosen {
		for at := range outcomes[i].writes {
			for _, fault := range []*fault{&crash, &conflict, &overload, &internal, &lost} {
				disturbances = append(disturbances, disturbance{scenario: scenario, outcome: outcomes[i], fault: fault, at: at + 1})
			}
		}
		for _, resource := range outcomes[i].resources(t) {
			disturbances = append(disturbances, disturbance{scenario: scenario, outcome: outcomes[i], late: resource})
		}
	}
	names = nil
	for _, disturbance := range disturbances {
		names = append(names, disturbance.String())
	}
	together(t, names, func(t *testing.T, i int) { disturbances[i].play(t) })
}

// resources are those of the objects that are there before or after some step.
func (o outcome) resources(t *testing.T) []string {
	t.Helper()
	var resources []string
	for _, object := range controller.CachedObjects() {
		gvk, err := apiutil.GVKForObject(object, api.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range append(slices.Clone(o.states), o.before) {
			if _, isThere := state.objects[gvk.Kind]; isThere {
				resource, _ := meta.UnsafeGuessKindToResource(gvk)
				resources = append(resources, resource.Resource)
				break
			}
		}
	}
	return resources
}

func (d disturbance) play(t *testing.T) {
	r := d.scenario.begin(t)
	if d.fault != nil {
		target := d.outcome.writes[d.at-1].String()
		occurrence := 0
		for _, write := range d.outcome.writes[:d.at] {
			if write.String() == target {
				occurrence++
			}
		}
		r.wire.arm(d.fault, target, occurrence)
	}
	delay := holdBack
	if d.scenario.act == nil {
		delay = untilCollected
	}
	r.wire.hold(d.late, delay)
	for i, step := range r.steps() {
		step(t)
		operatortest.Eventually(t, "all is as without the disturbance", func() error {
			r.rest(t)
			return d.outcome.states[i].differs(r.state(t), d.events(i))
		})
	}
	if err := d.scenario.reached(t, r.namespace); err != nil {
		t.Error(err)
	}
	if _, _, struck := r.wire.look(); d.fault != nil && !struck {
		t.Errorf("the fault has not struck: %v", r.wire.written())
	}
	if diff := cmp.Diff(made(d.outcome.writes), made(r.wire.written())); diff != "" {
		t.Errorf("what was made differs (-undisturbed +disturbed):\n%s", diff)
	}
}

// made are the objects that came into being, but for events, in any order.
func made(writes []write) []string {
	var resources []string
	for _, write := range writes {
		if write.created && !write.isEvent() {
			resources = append(resources, write.resource)
		}
	}
	slices.Sort(resources)
	return resources
}

// events are the reasons of the events that are to be there after a step. An operator
// tells what it has written to the status, once: it loses what it can't create, and what
// it has not told when it dies or does not learn that the status is written.
func (d disturbance) events(step int) []string {
	expected := slices.Clone(d.outcome.states[step].events)
	if d.fault == nil || d.at > d.outcome.upTo[step] {
		return expected
	}
	struck := d.outcome.writes[d.at-1]
	if d.fault == &internal && !struck.isEvent() && !struck.isStatus() {
		// The API server's answer is told, and that it is a thing of the past.
		return append(expected, "ReconciliationFailed", "RuntimeRecovered")
	}

	first, count := d.at, 0 // of the lost ones among the writes
	switch d.fault {
	case &conflict, &internal:
		if struck.isEvent() {
			first, count = d.at-1, 1
		}
	case &crash, &lost:
		if !struck.isStatus() && !(struck.isEvent() && d.fault == &crash) {
			break
		}
		for first+count < len(d.outcome.writes) && d.outcome.writes[first+count].isEvent() {
			count++
		}
	}
	for _, write := range d.outcome.writes[:first] {
		if !write.isEvent() {
			first--
		}
	}
	first = min(first+len(d.outcome.before.events), len(expected))
	return slices.Delete(expected, first, min(first+count, len(expected)))
}
