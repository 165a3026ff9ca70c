package desired_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// withImage is the Deployment after the image with the tag was applied to live.
func withImage(t *testing.T, tag string, live *appsv1.Deployment) *appsv1.Deployment {
	t.Helper()
	runtime := runtime(t, "minimal.yaml")
	runtime.Spec.Image = v1alpha1.ImageSpec{Repository: "repository", Tag: tag}
	configuration, err := desired.Deployment(runtime, live)
	if err != nil {
		t.Fatal(err)
	}
	result := &appsv1.Deployment{}
	if live != nil {
		result = live.DeepCopy()
	}
	result.Labels = configuration.Labels
	return result
}

func failureAt(seconds int64, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	condition := appsv1.DeploymentCondition{Type: kind, Status: corev1.ConditionTrue, LastUpdateTime: metav1.NewTime(time.Unix(seconds, 0))}
	if kind == appsv1.DeploymentProgressing {
		condition.Status, condition.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
	}
	return condition
}

func TestFailuresAreChargedToTheImageThatTheyBeganWith(t *testing.T) {
	live := withImage(t, "A", nil)
	if _, recorded := live.Labels[desired.LabelFailuresBefore]; recorded {
		t.Error("a new Deployment has failures")
	}
	ofImage := func(want ...appsv1.DeploymentCondition) {
		t.Helper()
		if diff := cmp.Diff(want, desired.FailuresOfImage(live)); diff != "" {
			t.Errorf("failures of the image (-want +got):\n%s", diff)
		}
	}
	quota, deadline := failureAt(10, appsv1.DeploymentReplicaFailure), failureAt(20, appsv1.DeploymentProgressing)
	live.Status.Conditions = []appsv1.DeploymentCondition{quota, deadline}
	ofImage(quota, deadline)

	live = withImage(t, "A", live)
	ofImage(quota, deadline) // the same image again

	live = withImage(t, "B", live)
	ofImage()
	// The form is fixed: releases read what others before them have noted.
	if before := live.Labels[desired.LabelFailuresBefore]; before != "ReplicaFailure.10_Progressing.20" {
		t.Errorf("failures noted as %q", before)
	}
	live = withImage(t, "B", live)
	ofImage() // still the old ones

	again := failureAt(30, appsv1.DeploymentProgressing)
	live.Status.Conditions = []appsv1.DeploymentCondition{quota, again}
	ofImage(again)

	live.Status.Conditions = nil
	live = withImage(t, "C", live)
	if before := live.Labels[desired.LabelFailuresBefore]; before != "" {
		t.Errorf("failures %q are remembered beyond their image", before)
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		name      string
		condition appsv1.DeploymentCondition
		want      bool
	}{
		{"deadline", appsv1.DeploymentCondition{Type: "Progressing", Status: "False", Reason: "ProgressDeadlineExceeded"}, true},
		{"replica failure", appsv1.DeploymentCondition{Type: "ReplicaFailure", Status: "True"}, true},
		{"progress", appsv1.DeploymentCondition{Type: "Progressing", Status: "True", Reason: "ProgressDeadlineExceeded"}, false},
		{"no progress for another reason", appsv1.DeploymentCondition{Type: "Progressing", Status: "False", Reason: "Paused"}, false},
		{"replica failure is over", appsv1.DeploymentCondition{Type: "ReplicaFailure", Status: "False"}, false},
		{"another condition", appsv1.DeploymentCondition{Type: "Available", Status: "False", Reason: "ProgressDeadlineExceeded"}, false},
		{"another condition is true", appsv1.DeploymentCondition{Type: "Available", Status: "True"}, false},
	}
	for _, test := range tests {
		live := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{test.condition}}}
		if got := len(desired.Failures(live)) == 1; got != test.want {
			t.Errorf("%s: failure %t, want %t", test.name, got, test.want)
		}
	}
}

func TestCarries(t *testing.T) {
	live := withImage(t, "A", nil)
	live.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "sidecar", Image: "repository:sidecar"},
		{Name: desired.ContainerName, Image: "repository:B"},
	}
	for image, want := range map[string]bool{"repository:A": true, "repository:B": false} {
		if got := desired.Carries(live, image); got != want {
			t.Errorf("with a record, %s: %t, want %t", image, got, want)
		}
	}
	live.Labels = nil
	for image, want := range map[string]bool{"repository:A": false, "repository:B": true, "repository:sidecar": false} {
		if got := desired.Carries(live, image); got != want {
			t.Errorf("without a record, %s: %t, want %t", image, got, want)
		}
	}
	live.Spec.Template.Spec.Containers = live.Spec.Template.Spec.Containers[:1]
	if image := desired.ContainerImage(live); image != "" {
		t.Errorf("without a runtime container the image is %s", image)
	}
}
