package status_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// anyDeployment is a Deployment in any state, likely or not.
func anyDeployment(t *rapid.T, wanted string) *appsv1.Deployment {
	replicas := rapid.Int32Range(0, 3)
	var conditions []appsv1.DeploymentCondition
	if rapid.Bool().Draw(t, "deadline exceeded") {
		conditions = append(conditions, deadlineExceeded())
	}
	if rapid.Bool().Draw(t, "replica failure") {
		conditions = append(conditions, replicaFailure())
	}
	n := all(replicas.Draw(t, "desired"))
	if rapid.Bool().Draw(t, "incomplete") {
		n.total = replicas.Draw(t, "total")
		n.updated = replicas.Draw(t, "updated")
		n.ready = replicas.Draw(t, "ready")
		n.available = replicas.Draw(t, "available")
		n.unavailable = replicas.Draw(t, "unavailable")
	}
	result := deployment(rapid.Int64Range(4, 6).Draw(t, "observed generation"), n, conditions...)
	tag := rapid.SampledFrom([]string{wanted, wanted, wanted, "A", "B"}).Draw(t, "applied")
	var before *appsv1.Deployment
	if rapid.IntRange(0, 4).Draw(t, "failures are old") == 0 {
		before = result.DeepCopy()
	}
	record(result, v1alpha1.ImageSpec{Repository: "repository", Tag: tag}, before)
	return result
}

func anyObservation(t *rapid.T, object *v1alpha1.TrussiumRuntime) status.Observation {
	observation := status.Observation{Runtime: object}
	switch rapid.IntRange(0, 9).Draw(t, "trouble") {
	case 0:
		observation.MissingSecrets = []string{"missing"}
	case 1:
		observation.ReferenceError = errors.New("forbidden")
	case 2:
		observation.ReconcileError = errors.New("boom")
	case 3:
		observation.DeploymentUnknown = true
		observation.ReconcileError = errors.New("unreadable")
		return observation
	}
	if rapid.IntRange(0, 9).Draw(t, "no Deployment") > 0 {
		observation.Deployment = anyDeployment(t, object.Spec.Image.Tag)
	}
	return observation
}

// Whatever happens to a runtime, in whatever order, these hold.
func TestStatusInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		object := runtime()
		var target string // of the upgrade that was started last and neither completed nor was given up
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "spec changes") {
				object.Generation++
			}
			object.Spec.Image = v1alpha1.ImageSpec{
				Repository: "repository",
				Tag:        rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "tag"),
			}
			observation := anyObservation(t, object)
			before := object.Status
			after := status.Next(observation, now)
			events := upgradeEvents(before, after)

			checkStep(t, observation, before, after)
			target = checkEvents(t, target, before, after, events)

			object.Status = after
			again := status.Next(observation, now)
			if diff := cmp.Diff(after, again); diff != "" {
				t.Fatalf("the same observation gives another status:\n%s", diff)
			}
			if repeated := status.Events(after, again); len(repeated) > 0 {
				t.Fatalf("the same observation tells events again: %v", repeated)
			}
		}
	})
}

func checkStep(t *rapid.T, observation status.Observation, before, after v1alpha1.TrussiumRuntimeStatus) {
	wanted := desired.Image(observation.Runtime)
	if after.DesiredImage != wanted {
		t.Fatalf("desired image %q, want %q", after.DesiredImage, wanted)
	}
	conditions := map[string]metav1.Condition{}
	for _, condition := range after.Conditions {
		conditions[condition.Type] = condition
		if len(condition.Message) > 1024 || condition.Message == "" || condition.Reason == "" {
			t.Fatalf("incomplete condition %+v", condition)
		}
	}
	if len(conditions) != 6 {
		t.Fatalf("%d conditions, want 6: %v", len(conditions), conditions)
	}

	ready := conditions[v1alpha1.ConditionReady].Status == metav1.ConditionTrue
	degraded := conditions[v1alpha1.ConditionDegraded].Status == metav1.ConditionTrue
	if ready && degraded {
		t.Fatalf("ready and degraded at once: %v", conditions)
	}
	live := observation.Deployment
	if live != nil && live.Status.ObservedGeneration < live.Generation && ready {
		t.Fatal("ready although the Deployment controller has not seen the latest template")
	}

	upgrading := conditions[v1alpha1.ConditionUpgrading]
	switch upgrading.Reason {
	case "NoUpgrade", "UpgradeComplete", "UpgradeFailed":
		if upgrading.Status != metav1.ConditionFalse {
			t.Fatalf("%s is %s", upgrading.Reason, upgrading.Status)
		}
	case "UpgradeInProgress":
		if upgrading.Status != metav1.ConditionTrue {
			t.Fatalf("%s is %s", upgrading.Reason, upgrading.Status)
		}
	default:
		t.Fatalf("unknown reason %s", upgrading.Reason)
	}
	if wanted == after.LastSuccessfulImage && upgrading.Reason != "NoUpgrade" && upgrading.Reason != "UpgradeComplete" {
		t.Fatalf("%s although the last successful image is wanted", upgrading.Reason)
	}
	if after.LastSuccessfulImage != before.LastSuccessfulImage {
		progress := conditions[v1alpha1.ConditionProgressing]
		switch {
		case after.LastSuccessfulImage != wanted:
			t.Fatalf("the last successful image became %q while %q is wanted", after.LastSuccessfulImage, wanted)
		case live == nil || !desired.Carries(live, wanted):
			t.Fatal("an image that was not applied is called successful")
		case progress.Reason == "DeploymentGenerationPending" || progress.Reason == "DeploymentProgressing" || progress.Reason == "DeploymentFailed":
			t.Fatalf("an image is called successful while %s", progress.Reason)
		}
	}
}

// checkEvents follows the upgrade events, and returns the target that is under way.
func checkEvents(t *rapid.T, target string, before, after v1alpha1.TrussiumRuntimeStatus, events []string) string {
	if before.LastSuccessfulImage == "" && len(events) > 0 {
		t.Fatalf("events %v before any image was successful", events)
	}
	id := before.LastSuccessfulImage + ">" + after.DesiredImage
	for _, event := range events {
		switch event {
		case started:
			if target == id {
				t.Fatalf("%s started twice", id)
			}
			target = id
		case completed, broken:
			if target != id {
				t.Fatalf("%s of %s, but %q was started", event, id, target)
			}
		default:
			t.Fatal(fmt.Sprintf("unknown event %s", event))
		}
	}
	reason := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionUpgrading).Reason
	if reason == "NoUpgrade" || reason == "UpgradeComplete" {
		return ""
	}
	return target
}
