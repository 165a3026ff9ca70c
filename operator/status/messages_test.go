package status_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

func TestMessages(t *testing.T) {
	autoscaled := runtime()
	autoscaled.Spec.Autoscaling = &v1alpha1.AutoscalingSpec{Enabled: true}
	noDetail := replicaFailure()
	noDetail.Message = ""
	refused := counts{desired: 1, unavailable: 1}
	tests := []struct {
		name        string
		observation status.Observation
		kind        string
		want        string
	}{
		{
			name: "no Deployment", kind: v1alpha1.ConditionReady,
			want: "The Deployment does not exist yet.",
		},
		{
			name: "not observed", kind: v1alpha1.ConditionReady,
			observation: status.Observation{Deployment: deployment(4, all(1))},
			want:        "The Deployment controller has not observed the latest Deployment yet.",
		},
		{
			name: "a failure with its detail", kind: v1alpha1.ConditionDegraded,
			observation: status.Observation{Deployment: deployment(5, refused, replicaFailure())},
			want:        "The Deployment reports ReplicaFailure: exceeded quota",
		},
		{
			name: "a failure without detail", kind: v1alpha1.ConditionDegraded,
			observation: status.Observation{Deployment: deployment(5, refused, noDetail)},
			want:        "The Deployment reports ReplicaFailure",
		},
		{
			name: "nothing to scale by", kind: v1alpha1.ConditionConfigurationValid,
			observation: status.Observation{Runtime: autoscaled},
			want: "All referenced Secrets are available. Autoscaling is enabled without a CPU request in spec.resources, " +
				"so that there is no utilization to scale by. Set spec.resources.requests.cpu.",
		},
		{
			name: "not autoscaled", kind: v1alpha1.ConditionConfigurationValid,
			want: "All referenced Secrets are available.",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.observation.Runtime == nil {
				test.observation.Runtime = runtime()
			}
			next := status.Next(test.observation, now)
			condition := meta.FindStatusCondition(next.Conditions, test.kind)
			if condition == nil || condition.Message != test.want {
				t.Errorf("%+v, want the message %q", condition, test.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	tests := []struct {
		name          string
		message, want string
	}{
		{"as long as may be", strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		{"one too long", strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "..."},
		{"characters stay whole", strings.Repeat("ä", 2000), strings.Repeat("ä", 510) + "..."},
		{"no characters at all", strings.Repeat("\x80", 2000), "..."},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			next := status.Next(status.Observation{Runtime: runtime(), ReconcileError: errors.New(test.message)}, now)
			condition := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionDegraded)
			if condition == nil || condition.Message != test.want {
				t.Errorf("%+v, want the message %q", condition, test.want)
			}
		})
	}
}

// The Deployment controller's own words are as long as they are.
func TestUpgradeMessagesAreBounded(t *testing.T) {
	object := runtime()
	object.Status = step{want: "A", rollout: ready()}.next(object)
	failed := refused()
	failed.Status.Conditions[0].Message = strings.Repeat("a", 2000)
	next := step{want: "B", rollout: failed}.next(object)
	condition := meta.FindStatusCondition(next.Conditions, v1alpha1.ConditionUpgrading)
	if condition == nil || condition.Reason != "UpgradeFailed" || len(condition.Message) != 1024 {
		t.Errorf("%+v, want an UpgradeFailed with 1024 bytes", condition)
	}
}
