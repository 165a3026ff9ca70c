package status_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// step is one reconciliation in the life of a runtime.
type step struct {
	// want is the tag in the spec.
	want string
	// applied is the tag that the Deployment got; the wanted one if empty.
	applied string
	// live is the image in the template, where a webhook has changed it.
	live string
	// rollout is what the Deployment reports.
	rollout *appsv1.Deployment
	// old says that it reported its failures before it got the image.
	old bool
	// blocked lets a Secret be missing.
	blocked bool

	// reason and last are what the status must then say; last is a tag.
	reason string
	last   string
	// message must be part of the condition's message.
	message string
	// events are the upgrade events of this step.
	events []string
}

func image(tag string) string {
	if tag == "" {
		return ""
	}
	return "repository:" + tag
}

func ready() *appsv1.Deployment { return deployment(5, all(1)) }

func unobserved() *appsv1.Deployment { return deployment(4, all(1)) }

func unobservedFailure() *appsv1.Deployment { return deployment(4, all(1), deadlineExceeded()) }

func halfway() *appsv1.Deployment {
	return deployment(5, counts{desired: 1, total: 2, updated: 1, ready: 1, available: 1, unavailable: 1})
}

func surge() *appsv1.Deployment {
	return deployment(5, counts{desired: 1, total: 2, updated: 1, ready: 2, available: 2})
}

func expired() *appsv1.Deployment {
	return deployment(5, counts{desired: 1, total: 2, updated: 1, ready: 1, available: 1, unavailable: 1}, deadlineExceeded())
}

func refused() *appsv1.Deployment {
	return deployment(5, counts{desired: 1, total: 1, ready: 1, available: 1}, replicaFailure())
}

const (
	started   = "RuntimeUpgradeStarted"
	completed = "RuntimeUpgradeCompleted"
	broken    = "RuntimeUpgradeFailed"
)

func TestUpgrades(t *testing.T) {
	first := step{want: "A", rollout: ready(), reason: "NoUpgrade", last: "A"}
	tests := map[string][]step{
		"the first rollout is no upgrade": {
			{want: "A", rollout: unobserved(), reason: "NoUpgrade", message: "The first rollout has not completed yet."},
			{want: "A", rollout: halfway(), reason: "NoUpgrade"},
			{want: "A", rollout: expired(), reason: "NoUpgrade"},
			{want: "B", rollout: halfway(), reason: "NoUpgrade"},
			{want: "B", rollout: ready(), reason: "NoUpgrade", last: "B", message: "No upgrade is active."},
			{want: "B", rollout: ready(), reason: "NoUpgrade", last: "B", message: "No upgrade is active."},
		},
		"an upgrade": {
			first,
			{want: "B", rollout: unobserved(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A"},
			{want: "B", rollout: surge(), reason: "UpgradeInProgress", last: "A"},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B", events: []string{completed}},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B"},
		},
		"a rollout of configuration keeps what was said": {
			first,
			{want: "A", rollout: halfway(), reason: "NoUpgrade", last: "A"},
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B", events: []string{completed}},
			{want: "B", rollout: unobserved(), reason: "UpgradeComplete", last: "B"},
			{want: "B", rollout: expired(), reason: "UpgradeComplete", last: "B"},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B"},
		},
		"reverted in flight": {
			first,
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "A", rollout: unobserved(), reason: "NoUpgrade", last: "A", message: "to repository:B was abandoned"},
			{want: "A", rollout: ready(), reason: "NoUpgrade", last: "A", message: "to repository:B was abandoned"},
		},
		"rolled back after a failure": {
			first,
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: expired(), reason: "UpgradeFailed", last: "A", message: "ProgressDeadlineExceeded: took too long", events: []string{broken}},
			{want: "A", rollout: unobservedFailure(), reason: "NoUpgrade", last: "A", message: "to repository:B was abandoned"},
			{want: "A", rollout: ready(), reason: "NoUpgrade", last: "A"},
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
		},
		"rolled back after a quota failure": {
			first,
			{want: "B", rollout: refused(), reason: "UpgradeFailed", last: "A", events: []string{started, broken}},
			{want: "A", rollout: ready(), reason: "NoUpgrade", last: "A"},
		},
		"a failure is not charged to the next image": {
			first,
			{want: "B", rollout: expired(), reason: "UpgradeFailed", last: "A", events: []string{started, broken}},
			{want: "C", rollout: unobservedFailure(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			// The Deployment controller has seen C, and still says of B's rollout that it failed.
			{want: "C", rollout: expired(), old: true, reason: "UpgradeInProgress", last: "A"},
			{want: "C", rollout: halfway(), reason: "UpgradeInProgress", last: "A"},
			{want: "C", rollout: ready(), reason: "UpgradeComplete", last: "C", events: []string{completed}},
		},
		"from one target to the next": {
			first,
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "C", rollout: unobserved(), reason: "UpgradeInProgress", last: "A", message: "from repository:A to repository:C", events: []string{started}},
			{want: "C", rollout: halfway(), reason: "UpgradeInProgress", last: "A"},
			{want: "C", rollout: ready(), reason: "UpgradeComplete", last: "C", events: []string{completed}},
		},
		"a failure that clears and comes back": {
			first,
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: refused(), reason: "UpgradeFailed", last: "A", events: []string{broken}},
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A"},
			{want: "B", rollout: refused(), reason: "UpgradeFailed", last: "A", events: []string{broken}},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B", events: []string{completed}},
		},
		"there and back again": {
			first,
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B", events: []string{completed}},
			{want: "A", rollout: halfway(), reason: "UpgradeInProgress", last: "B", events: []string{started}},
			{want: "A", rollout: ready(), reason: "UpgradeComplete", last: "A", events: []string{completed}},
		},
		"blocked by a missing Secret": {
			first,
			{want: "B", applied: "A", blocked: true, rollout: ready(), reason: "NoUpgrade", last: "A"},
			{want: "B", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: refused(), reason: "UpgradeFailed", last: "A", events: []string{broken}},
			{want: "C", applied: "B", blocked: true, rollout: refused(), reason: "UpgradeFailed", last: "A", message: "to repository:B"},
			{want: "C", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
		},
		"blocked from the start": {
			{want: "A", blocked: true, reason: "NoUpgrade"},
			{want: "A", rollout: ready(), reason: "NoUpgrade", last: "A"},
		},
		"a webhook pins the tag": {
			{want: "A", live: "repository@sha256:a", rollout: ready(), reason: "NoUpgrade", last: "A"},
			{want: "B", live: "repository@sha256:b", rollout: halfway(), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", live: "repository@sha256:b", rollout: ready(), reason: "UpgradeComplete", last: "B", events: []string{completed}},
		},
		"at zero replicas": {
			first,
			{want: "B", rollout: deployment(4, all(0)), reason: "UpgradeInProgress", last: "A", events: []string{started}},
			{want: "B", rollout: deployment(5, all(0)), reason: "UpgradeComplete", last: "B", message: "has not run", events: []string{completed}},
			{want: "B", rollout: deployment(5, all(0)), reason: "UpgradeComplete", last: "B", message: "has not run"},
			{want: "B", rollout: halfway(), reason: "UpgradeComplete", last: "B", message: "has not run"},
			{want: "B", rollout: ready(), reason: "UpgradeComplete", last: "B", message: "is complete."},
			{want: "B", rollout: deployment(5, all(0)), reason: "UpgradeComplete", last: "B", message: "is complete."},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			object := runtime()
			for i, step := range steps {
				object.Generation++
				next := step.next(object)
				condition := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionUpgrading)
				if condition == nil {
					t.Fatalf("step %d: no Upgrading condition", i)
				}
				if condition.Reason != step.reason || !strings.Contains(condition.Message, step.message) {
					t.Errorf("step %d: %s (%s), want %s (%s)", i, condition.Reason, condition.Message, step.reason, step.message)
				}
				if step.message == "is complete." && !strings.HasSuffix(condition.Message, step.message) {
					t.Errorf("step %d: more than %q is said: %s", i, step.message, condition.Message)
				}
				if (condition.Status == metav1.ConditionTrue) != (condition.Reason == "UpgradeInProgress") {
					t.Errorf("step %d: %s is %s", i, condition.Reason, condition.Status)
				}
				if next.LastSuccessfulImage != image(step.last) {
					t.Errorf("step %d: last successful image %q, want %q", i, next.LastSuccessfulImage, image(step.last))
				}
				if next.DesiredImage != image(step.want) {
					t.Errorf("step %d: desired image %q, want %q", i, next.DesiredImage, image(step.want))
				}
				if diff := cmp.Diff(step.events, upgradeEvents(object.Status, next)); diff != "" {
					t.Errorf("step %d: events (-want +got):\n%s", i, diff)
				}
				object.Status = next

				again := step.next(object)
				if diff := cmp.Diff(next, again); diff != "" {
					t.Errorf("step %d: the same observation gives another status:\n%s", i, diff)
				}
			}
		})
	}
}

// record gives live the labels that it gets when an image is applied to it: to a
// new Deployment, or to before, whose failures are then known to be old.
func record(live *appsv1.Deployment, wanted v1alpha1.ImageSpec, before *appsv1.Deployment) {
	object := runtime()
	object.Spec.Image = wanted
	applied, err := desired.Deployment(object, before)
	if err != nil {
		panic(err)
	}
	live.Labels = applied.Labels
}

// next is the status after the step.
func (s step) next(object *v1alpha1.TrussiumRuntime) v1alpha1.TrussiumRuntimeStatus {
	object.Spec.Image = v1alpha1.ImageSpec{Repository: "repository", Tag: s.want}
	observation := status.Observation{Runtime: object}
	if s.rollout != nil {
		applied := s.applied
		if applied == "" {
			applied = s.want
		}
		live := s.rollout.DeepCopy()
		var before *appsv1.Deployment
		if s.old {
			before = s.rollout
		}
		record(live, v1alpha1.ImageSpec{Repository: "repository", Tag: applied}, before)
		live.Spec.Template.Spec.Containers[1].Image = image(applied)
		if s.live != "" {
			live.Spec.Template.Spec.Containers[1].Image = s.live
		}
		observation.Deployment = live
	}
	if s.blocked {
		observation.MissingSecrets = []string{"missing"}
	}
	return status.Next(observation, now)
}

func upgradeEvents(before, after v1alpha1.TrussiumRuntimeStatus) []string {
	var reasons []string
	for _, event := range status.Events(before, after) {
		if event.Action == "UpgradeRuntime" {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}

func TestUpgradeEventsNameBothImages(t *testing.T) {
	object := runtime()
	object.Status = step{want: "A", rollout: ready()}.next(object)
	for _, step := range []step{{want: "B", rollout: halfway()}, {want: "B", rollout: refused()}, {want: "B", rollout: ready()}} {
		next := step.next(object)
		for _, event := range status.Events(object.Status, next) {
			if event.Action == "UpgradeRuntime" && !strings.Contains(event.Note, "from repository:A to repository:B") {
				t.Errorf("%s does not name both images: %s", event.Reason, event.Note)
			}
		}
		object.Status = next
	}
}

// A status written by a published release has other messages, and none may be taken for ours.
func TestAnUpgradeBegunUnderAPublishedReleaseDoesNotStartAgain(t *testing.T) {
	for _, message := range []string{
		"Runtime image upgrade is in progress.",
		"",
		"Upgrade",
		"Image from X to Y changes",
		"Upgrade of X to Y runs",
		"Upgrade from X into Y runs",
	} {
		object := runtime()
		object.Status = v1alpha1.TrussiumRuntimeStatus{
			DesiredImage:        image("B"),
			CurrentImage:        image("B"),
			LastSuccessfulImage: image("A"),
			Conditions: []metav1.Condition{{
				Type: v1alpha1.ConditionUpgrading, Status: metav1.ConditionTrue, Reason: "UpgradeInProgress",
				Message: message, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
			}},
		}
		next := step{want: "B", rollout: halfway()}.next(object)
		if events := upgradeEvents(object.Status, next); len(events) > 0 {
			t.Errorf("%q: events %v, want none", message, events)
		}
		object.Status = next
		if events := upgradeEvents(next, step{want: "B", rollout: ready()}.next(object)); !cmp.Equal(events, []string{completed}) {
			t.Errorf("%q: events %v, want one completion", message, events)
		}
	}
}

// What the operator itself would not leave behind it must be able to continue from.
func TestUnusualStatusesBefore(t *testing.T) {
	upgrading := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionUpgrading, Status: status, Reason: reason, Message: message}}
	}
	tests := []struct {
		name   string
		before []metav1.Condition
		step   step
	}{
		{name: "no condition", step: step{want: "A", rollout: ready()}},
		{name: "no condition, and the next image is not applied yet", step: step{want: "B", applied: "A", blocked: true, rollout: ready()}},
		{
			name:   "an upgrade to the image that was successful last",
			before: upgrading(metav1.ConditionTrue, "UpgradeInProgress", "Upgrade from repository:B to repository:A is in progress."),
			step:   step{want: "A", rollout: halfway()},
		},
		{
			name:   "a condition without a message",
			before: upgrading(metav1.ConditionFalse, "UpgradeComplete", ""),
			step:   step{want: "A", rollout: ready()},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := runtime()
			object.Status = v1alpha1.TrussiumRuntimeStatus{LastSuccessfulImage: image("A"), Conditions: test.before}
			next := test.step.next(object)
			condition := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionUpgrading)
			if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != "NoUpgrade" ||
				condition.Message != "No upgrade is active." {
				t.Errorf("%+v, want that no upgrade is active", condition)
			}
			if next.LastSuccessfulImage != image("A") {
				t.Errorf("last successful image %q, want %q", next.LastSuccessfulImage, image("A"))
			}
		})
	}
}
