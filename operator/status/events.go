package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// Reasons of events that are not reasons of conditions.
const (
	EventRuntimeProgressing  = "RuntimeProgressing"
	EventRuntimeReady        = "RuntimeReady"
	EventRuntimeScaledToZero = "RuntimeScaledToZero"
	EventRuntimeRecovered    = "RuntimeRecovered"
	EventRuntimeDegraded     = "RuntimeDegraded"

	EventRuntimeUpgradeStarted   = "RuntimeUpgradeStarted"
	EventRuntimeUpgradeCompleted = "RuntimeUpgradeCompleted"
	EventRuntimeUpgradeFailed    = "RuntimeUpgradeFailed"
)

// Actions of events.
const (
	ActionReconcile = "ReconcileRuntime"
	ActionObserve   = "ObserveRuntime"
	ActionValidate  = "ValidateConfiguration"
	ActionUpgrade   = "UpgradeRuntime"
)

// Event is one events.k8s.io/v1 event about a runtime.
type Event struct {
	Type   string
	Reason string
	Action string
	Note   string
}

// Events are what the step from one status to the next is worth telling. Each
// belongs to exactly one condition that changed, so an unchanged status, a
// resync or a restarted operator tells nothing. The start of an upgrade is told
// as that alone: that something progresses goes without saying.
func Events(before, after v1alpha1.TrussiumRuntimeStatus) []Event {
	var events []Event
	add := func(kind, reason, action, note string) {
		events = append(events, Event{Type: kind, Reason: reason, Action: action, Note: note})
	}
	change := func(conditionType string) transition {
		return transition{
			before: meta.FindStatusCondition(before.Conditions, conditionType),
			after:  meta.FindStatusCondition(after.Conditions, conditionType),
		}
	}

	if valid := change(v1alpha1.ConditionConfigurationValid); valid.to(metav1.ConditionFalse) {
		add(corev1.EventTypeWarning, ReasonConfigurationInvalid, ActionValidate, valid.after.Message)
	}

	degraded := change(v1alpha1.ConditionDegraded)
	switch {
	case degraded.to(metav1.ConditionTrue):
		switch degraded.after.Reason {
		case ReasonConfigurationInvalid:
			// ConfigurationValid has told it.
		case ReasonReconciliationFailed:
			add(corev1.EventTypeWarning, ReasonReconciliationFailed, ActionReconcile, degraded.after.Message)
		default:
			add(corev1.EventTypeWarning, EventRuntimeDegraded, ActionObserve, degraded.after.Message)
		}
	case degraded.from(metav1.ConditionTrue):
		add(corev1.EventTypeNormal, EventRuntimeRecovered, ActionObserve, "The runtime is no longer degraded.")
	}

	upgrade := upgradeEvents(before, after)
	isUpgradeStart := slices.ContainsFunc(upgrade, func(event Event) bool { return event.Reason == EventRuntimeUpgradeStarted })
	if progressing := change(v1alpha1.ConditionProgressing); progressing.statusTo(metav1.ConditionTrue) && !isUpgradeStart {
		add(corev1.EventTypeNormal, EventRuntimeProgressing, ActionReconcile, progressing.after.Message)
	}

	if ready := change(v1alpha1.ConditionReady); ready.to(metav1.ConditionTrue) {
		reason := EventRuntimeReady
		if ready.after.Reason == ReasonScaledToZero {
			reason = EventRuntimeScaledToZero
		}
		add(corev1.EventTypeNormal, reason, ActionObserve, ready.after.Message)
	}
	return append(events, upgrade...)
}

// transition is one condition before and after; either may be absent.
type transition struct {
	before, after *metav1.Condition
}

// to says that the condition has come to want, or has it for another reason now.
func (t transition) to(want metav1.ConditionStatus) bool {
	if t.after == nil || t.after.Status != want {
		return false
	}
	return t.before == nil || t.before.Status != want || t.before.Reason != t.after.Reason
}

// statusTo says that the condition has come to want, whatever its reason.
func (t transition) statusTo(want metav1.ConditionStatus) bool {
	if t.after == nil || t.after.Status != want {
		return false
	}
	return t.before == nil || t.before.Status != want
}

// from says that the condition had the status and has another one now.
func (t transition) from(had metav1.ConditionStatus) bool {
	return t.before != nil && t.before.Status == had && t.after != nil && t.after.Status != had
}
