package e2e

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// conditions are the status and reason of every condition but Upgrading.
type conditions struct {
	valid, progressing, available, ready, degraded string
}

var (
	complete = conditions{
		"True ReferencesResolved", "False ReconciliationComplete", "True RuntimeAvailable", "True RuntimeReady", "False AsExpected",
	}
	// serving is a rollout under way while enough pods are ready.
	serving = conditions{
		"True ReferencesResolved", "True DeploymentProgressing", "True RuntimeAvailable", "True RuntimeReady", "False AsExpected",
	}
	// refused is a rollout whose pods can't be created, while old ones serve.
	refused = conditions{
		"True ReferencesResolved", "False DeploymentFailed", "True RuntimeAvailable", "False DeploymentFailed", "True ReplicaFailure",
	}
	scaledToZero = conditions{
		"True ReferencesResolved", "False ScaledToZero", "False ScaledToZero", "True ScaledToZero", "False AsExpected",
	}
	secretMissing = conditions{
		"False SecretNotFound", "False ConfigurationInvalid", "False RuntimeUnavailable", "False ConfigurationInvalid", "True ConfigurationInvalid",
	}
)

// stage is what is told about a runtime at a point where nothing changes by itself.
type stage struct {
	conditions conditions
	// upgrading is the status and reason of Upgrading, and message a part of its message.
	upgrading string
	message   string
	// desired and last are tags. The current image is the desired one, unless blocked says that
	// there is no Deployment.
	desired, last string
	blocked       bool
	// events are the reasons of those since the stage before; "?" ends one that may be missing.
	events []string
}

// reaches waits for the stage's status, lets the operator finish, and compares all of it.
func (s *subject) reaches(what string, want stage) {
	s.t.Helper()
	operatortest.Eventually(s.t, what, func() error {
		if difference := want.differsFrom(s.get()); difference != "" {
			return errors.New(difference)
		}
		return nil
	})
	s.settle()
	if difference := want.differsFrom(s.get()); difference != "" {
		s.t.Errorf("%s, but not for long (-want +got):\n%s", what, difference)
	}
	s.events = append(s.events, want.events...)
	if got := operatortest.Reasons(s.t, api, s.ObjectKey); !inOrder(got, s.events) {
		s.t.Errorf("%s with the events\n%q, want\n%q", what, got, s.events)
	}
}

// differsFrom compares the stage with a status of the latest generation.
func (want stage) differsFrom(runtime *v1alpha1.TrussiumRuntime) string {
	type summary struct {
		Conditions             conditions
		Upgrading, Message     string
		Desired, Current, Last string
		Generation             int64
	}
	status := runtime.Status
	has := func(kind string) string {
		condition := meta.FindStatusCondition(status.Conditions, kind)
		if condition == nil || condition.ObservedGeneration != runtime.Generation {
			return "not for this generation"
		}
		return string(condition.Status) + " " + condition.Reason
	}
	expected := summary{
		Conditions: want.conditions, Upgrading: want.upgrading, Message: want.message,
		Desired: image(want.desired), Current: image(want.desired), Generation: runtime.Generation,
	}
	if want.last != "" {
		expected.Last = image(want.last)
	}
	if want.blocked {
		expected.Current = ""
	}
	got := summary{
		Conditions: conditions{
			has(v1alpha1.ConditionConfigurationValid), has(v1alpha1.ConditionProgressing), has(v1alpha1.ConditionAvailable),
			has(v1alpha1.ConditionReady), has(v1alpha1.ConditionDegraded),
		},
		Upgrading: has(v1alpha1.ConditionUpgrading),
		Desired:   status.DesiredImage, Current: status.CurrentImage, Last: status.LastSuccessfulImage,
		Generation: status.ObservedGeneration,
	}
	if condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpgrading); condition != nil {
		got.Message = condition.Message
		if strings.Contains(condition.Message, want.message) {
			got.Message = want.message
		}
	}
	return cmp.Diff(expected, got, cmp.AllowUnexported(conditions{}))
}

// inOrder compares a list with one whose items may be missing if they end in "?".
func inOrder(got, want []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	item, optional := strings.CutSuffix(want[0], "?")
	if optional && inOrder(got, want[1:]) {
		return true
	}
	return len(got) > 0 && got[0] == item && inOrder(got[1:], want[1:])
}

// history is every state that a runtime's status went through, however short.
type history struct {
	mu     sync.Mutex
	states []string
}

// follow keeps the history of the runtime that will be made in the namespace.
func follow(t *testing.T, namespace string) *history {
	t.Helper()
	h := &history{}
	operatortest.Follow(t, restConfig, &v1alpha1.TrussiumRuntimeList{}, namespace, func(runtime *v1alpha1.TrussiumRuntime) {
		h.add(runtime.Status.Conditions)
	})
	return h
}

// add appends the reasons of Ready and Upgrading, and that of Degraded if it is true.
func (h *history) add(conditions []metav1.Condition) {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	upgrading := meta.FindStatusCondition(conditions, v1alpha1.ConditionUpgrading)
	if ready == nil || upgrading == nil {
		return
	}
	state := ready.Reason + " " + upgrading.Reason
	if degraded := meta.FindStatusCondition(conditions, v1alpha1.ConditionDegraded); degraded.Status == metav1.ConditionTrue {
		state += " " + degraded.Reason
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 || h.states[len(h.states)-1] != state {
		h.states = append(h.states, state)
	}
}

func (h *history) seen() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.states...)
}

// wentThrough demands that the status was in these states one after another, and in no others.
// The watch is a moment behind.
func (s *subject) wentThrough(want ...string) {
	s.t.Helper()
	operatortest.Eventually(s.t, "the history is complete", func() error {
		if got := s.history.seen(); !inOrder(got, want) {
			return errors.New("the states (Ready, Upgrading, Degraded) were\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(want, "\n"))
		}
		return nil
	})
}
