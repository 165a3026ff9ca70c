package status_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

var (
	earlier = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now     = metav1.NewTime(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
)

// counts are the numbers in a Deployment's status.
type counts struct {
	desired, total, updated, ready, available, unavailable int32
}

func all(n int32) counts {
	return counts{desired: n, total: n, updated: n, ready: n, available: n}
}

// deployment is at generation 5; observed is the generation that its status speaks of.
func deployment(observed int64, n counts, conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 5},
		Spec: appsv1.DeploymentSpec{
			Replicas: &n.desired,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: "sidecar", Image: "other"},
				{Name: "trussium", Image: "repository:tag"},
			}}},
		},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration:  observed,
			Replicas:            n.total,
			UpdatedReplicas:     n.updated,
			ReadyReplicas:       n.ready,
			AvailableReplicas:   n.available,
			UnavailableReplicas: n.unavailable,
			Conditions:          conditions,
		},
	}
}

func deadlineExceeded() appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
		Reason: "ProgressDeadlineExceeded", Message: "took too long",
	}
}

func replicaFailure() appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Reason: "FailedCreate", Message: "exceeded quota",
	}
}

func runtime() *v1alpha1.TrussiumRuntime {
	return &v1alpha1.TrussiumRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: "inference", Name: "rt", Generation: 3},
		Spec:       v1alpha1.TrussiumRuntimeSpec{Image: v1alpha1.ImageSpec{Repository: "repository", Tag: "tag"}},
	}
}

// The rows of the status contract, in its order. Conditions are written as
// ConfigurationValid, Progressing, Available, Ready, Degraded.
func TestConditions(t *testing.T) {
	rolling := counts{desired: 2, total: 3, updated: 1, ready: 1, available: 1, unavailable: 2}
	tests := []struct {
		name        string
		observation status.Observation
		want        string
	}{
		{
			name:        "a Secret is missing, nothing runs",
			observation: status.Observation{MissingSecrets: []string{"a"}},
			want:        "F SecretNotFound, F ConfigurationInvalid, F RuntimeUnavailable, F ConfigurationInvalid, T ConfigurationInvalid",
		},
		{
			name:        "a Secret is missing, Pods still run",
			observation: status.Observation{MissingSecrets: []string{"a"}, Deployment: deployment(5, all(2))},
			want:        "F SecretNotFound, F ConfigurationInvalid, T RuntimeAvailable, F ConfigurationInvalid, T ConfigurationInvalid",
		},
		{
			name:        "Secrets could not be checked",
			observation: status.Observation{ReferenceError: errors.New("forbidden"), Deployment: deployment(5, all(1))},
			want:        "F ReferenceCheckFailed, F ConfigurationInvalid, T RuntimeAvailable, F ConfigurationInvalid, T ConfigurationInvalid",
		},
		{
			name: "a missing Secret is told before a failure",
			observation: status.Observation{
				MissingSecrets: []string{"a"}, ReconcileError: errors.New("boom"), Deployment: deployment(5, all(1)),
			},
			want: "F SecretNotFound, F ConfigurationInvalid, T RuntimeAvailable, F ConfigurationInvalid, T ConfigurationInvalid",
		},
		{
			name:        "reconciliation failed, Pods still run",
			observation: status.Observation{ReconcileError: errors.New("boom"), Deployment: deployment(5, all(1))},
			want:        "T ReferencesResolved, F ReconciliationFailed, T RuntimeAvailable, F ReconciliationFailed, T ReconciliationFailed",
		},
		{
			name:        "scaled to zero",
			observation: status.Observation{Deployment: deployment(5, all(0))},
			want:        "T ReferencesResolved, F ScaledToZero, F ScaledToZero, T ScaledToZero, F AsExpected",
		},
		{
			name:        "scaled to zero wins over an old failure",
			observation: status.Observation{Deployment: deployment(5, all(0), deadlineExceeded())},
			want:        "T ReferencesResolved, F ScaledToZero, F ScaledToZero, T ScaledToZero, F AsExpected",
		},
		{
			name:        "scaling to zero, not observed",
			observation: status.Observation{Deployment: deployment(4, all(0))},
			want:        "T ReferencesResolved, T DeploymentGenerationPending, F RuntimeUnavailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name:        "the deadline is exceeded, old Pods serve",
			observation: status.Observation{Deployment: deployment(5, rolling, deadlineExceeded())},
			want:        "T ReferencesResolved, F DeploymentFailed, T RuntimeAvailable, F DeploymentFailed, T ProgressDeadlineExceeded",
		},
		{
			name:        "replicas can't be created",
			observation: status.Observation{Deployment: deployment(5, counts{desired: 1, unavailable: 1}, replicaFailure())},
			want:        "T ReferencesResolved, F DeploymentFailed, F RuntimeUnavailable, F DeploymentFailed, T ReplicaFailure",
		},
		{
			name:        "both failures: the deadline is told",
			observation: status.Observation{Deployment: deployment(5, rolling, replicaFailure(), deadlineExceeded())},
			want:        "T ReferencesResolved, F DeploymentFailed, T RuntimeAvailable, F DeploymentFailed, T ProgressDeadlineExceeded",
		},
		{
			name:        "a failure of an earlier generation does not count",
			observation: status.Observation{Deployment: deployment(4, rolling, deadlineExceeded())},
			want:        "T ReferencesResolved, T DeploymentGenerationPending, T RuntimeAvailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name:        "complete",
			observation: status.Observation{Deployment: deployment(5, all(2))},
			want:        "T ReferencesResolved, F ReconciliationComplete, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name:        "complete in an earlier generation",
			observation: status.Observation{Deployment: deployment(4, all(2))},
			want:        "T ReferencesResolved, T DeploymentGenerationPending, T RuntimeAvailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name: "enough Pods serve, old ones are still around",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 3, updated: 1, ready: 3, available: 3})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name: "unavailable Pods keep it from being complete",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 2, updated: 2, ready: 2, available: 2, unavailable: 1})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name: "ready but not yet available",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 2, updated: 2, ready: 2, available: 1, unavailable: 1})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name: "available but no longer ready",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 2, updated: 2, ready: 1, available: 2})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name: "one Pod too many keeps it from being complete",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 3, updated: 2, ready: 2, available: 2})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name: "an old Pod keeps it from being complete",
			observation: status.Observation{Deployment: deployment(5,
				counts{desired: 2, total: 2, updated: 1, ready: 2, available: 2})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name:        "all Pods serve, and the failure is still reported",
			observation: status.Observation{Deployment: deployment(5, all(2), deadlineExceeded())},
			want:        "T ReferencesResolved, F DeploymentFailed, T RuntimeAvailable, F DeploymentFailed, T ProgressDeadlineExceeded",
		},
		{
			name: "scaling to zero, a Pod still runs",
			observation: status.Observation{Deployment: deployment(5,
				counts{total: 1, updated: 1, ready: 1, available: 1})},
			want: "T ReferencesResolved, T DeploymentProgressing, T RuntimeAvailable, T RuntimeReady, F AsExpected",
		},
		{
			name:        "scaling to zero, a Pod is left that serves nobody",
			observation: status.Observation{Deployment: deployment(5, counts{total: 1})},
			want:        "T ReferencesResolved, T DeploymentProgressing, F RuntimeUnavailable, T RuntimeReady, F AsExpected",
		},
		{
			name:        "rolling, nothing serves",
			observation: status.Observation{Deployment: deployment(5, counts{desired: 1, total: 1, updated: 1, unavailable: 1})},
			want:        "T ReferencesResolved, T DeploymentProgressing, F RuntimeUnavailable, F RuntimeNotReady, F AsExpected",
		},
		{
			name:        "there is no Deployment yet",
			observation: status.Observation{},
			want:        "T ReferencesResolved, T DeploymentGenerationPending, F RuntimeUnavailable, F RuntimeNotReady, F AsExpected",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.observation.Runtime = runtime()
			next := status.Next(test.observation, now)
			if got := summary(t, next.Conditions); got != test.want {
				t.Errorf("conditions\n got %s\nwant %s", got, test.want)
			}
			for _, condition := range next.Conditions {
				if condition.ObservedGeneration != 3 || condition.Message == "" {
					t.Errorf("condition without its generation or a message: %+v", condition)
				}
			}
		})
	}
}

func summary(t *testing.T, conditions []metav1.Condition) string {
	t.Helper()
	var parts []string
	for _, kind := range []string{
		v1alpha1.ConditionConfigurationValid, v1alpha1.ConditionProgressing, v1alpha1.ConditionAvailable,
		v1alpha1.ConditionReady, v1alpha1.ConditionDegraded,
	} {
		for _, condition := range conditions {
			if condition.Type == kind {
				parts = append(parts, string(condition.Status)[:1]+" "+condition.Reason)
			}
		}
	}
	return strings.Join(parts, ", ")
}

// Kubernetes runs one replica when a Deployment names no number.
func TestReplicasDefaultToOne(t *testing.T) {
	unspecified := deployment(5, all(1))
	unspecified.Spec.Replicas = nil
	next := status.Next(status.Observation{Runtime: runtime(), Deployment: unspecified}, now)
	want := "T ReferencesResolved, F ReconciliationComplete, T RuntimeAvailable, T RuntimeReady, F AsExpected"
	if got := summary(t, next.Conditions); got != want {
		t.Errorf("conditions\n got %s\nwant %s", got, want)
	}
}

func TestObservedFields(t *testing.T) {
	observed := status.Observation{Runtime: runtime(), Deployment: deployment(5, all(2)), ServicePort: 8080}
	next := status.Next(observed, now)
	next.Conditions = nil
	want := v1alpha1.TrussiumRuntimeStatus{
		ObservedGeneration:  3,
		ReadyReplicas:       2,
		AvailableReplicas:   2,
		DesiredImage:        "repository:tag",
		CurrentImage:        "repository:tag",
		LastSuccessfulImage: "repository:tag",
		Endpoint:            "http://rt.inference.svc.cluster.local:8080",
	}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	// What can't be read is not forgotten; what is gone is.
	known := runtime()
	known.Status = status.Next(observed, earlier)
	unread := status.Observation{
		Runtime: known, ReconcileError: errors.New("boom"), DeploymentUnknown: true, ServiceUnknown: true,
	}
	got := status.Next(unread, now)
	if available := got.Conditions[2]; available.Type != v1alpha1.ConditionAvailable || available.Status != metav1.ConditionTrue {
		t.Errorf("availability is forgotten: %+v", available)
	}
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status after a failed read (-want +got):\n%s", diff)
	}

	got = status.Next(status.Observation{Runtime: known}, now)
	if got.ReadyReplicas != 0 || got.AvailableReplicas != 0 || got.CurrentImage != "" || got.Endpoint != "" {
		t.Errorf("objects that are gone are still reported: %+v", got)
	}
}

func TestTransitionTimesMoveOnlyWithTheStatus(t *testing.T) {
	object := runtime()
	object.Status = status.Next(status.Observation{Runtime: object, Deployment: deployment(5, all(1))}, earlier)
	object.Generation = 4
	next := status.Next(status.Observation{Runtime: object, Deployment: deployment(4, all(1))}, now)
	for _, condition := range next.Conditions {
		want := earlier
		if condition.Type == v1alpha1.ConditionProgressing || condition.Type == v1alpha1.ConditionReady {
			want = now
		}
		if !condition.LastTransitionTime.Equal(&want) {
			t.Errorf("%s moved at %s, want %s", condition.Type, condition.LastTransitionTime, want)
		}
		if condition.ObservedGeneration != 4 {
			t.Errorf("%s speaks of generation %d, want 4", condition.Type, condition.ObservedGeneration)
		}
	}
}
