package status_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// Each step is an observation; its events are those of the step from the one before.
func TestEventsAreToldOnTransitionsOnly(t *testing.T) {
	pending := status.Observation{Deployment: deployment(4, all(1))}
	rolling := status.Observation{Deployment: deployment(5, counts{desired: 1, total: 1, updated: 1, unavailable: 1})}
	complete := status.Observation{Deployment: deployment(5, all(1))}
	stuck := status.Observation{Deployment: deployment(5, counts{desired: 1, total: 2, updated: 1, ready: 1, available: 1}, deadlineExceeded())}
	quota := status.Observation{Deployment: deployment(5, counts{desired: 1, total: 1, ready: 1, available: 1}, replicaFailure())}
	zero := status.Observation{Deployment: deployment(5, all(0))}
	noSecret := status.Observation{MissingSecrets: []string{"a"}}
	noSecrets := status.Observation{MissingSecrets: []string{"a", "b"}}
	unchecked := status.Observation{ReferenceError: errors.New("forbidden")}
	failed := status.Observation{ReconcileError: errors.New("boom"), Deployment: deployment(5, all(1))}

	type step struct {
		observation status.Observation
		events      []string
	}
	tests := map[string][]step{
		"the first rollout": {
			{pending, []string{"Normal RuntimeProgressing ReconcileRuntime"}},
			{rolling, nil},
			{complete, []string{"Normal RuntimeReady ObserveRuntime"}},
			{complete, nil},
		},
		"a missing Secret": {
			{noSecret, []string{"Warning ConfigurationInvalid ValidateConfiguration"}},
			{noSecrets, nil},
			{unchecked, []string{"Warning ConfigurationInvalid ValidateConfiguration"}},
			{pending, []string{"Normal RuntimeRecovered ObserveRuntime", "Normal RuntimeProgressing ReconcileRuntime"}},
		},
		"a failed rollout": {
			{complete, []string{"Normal RuntimeReady ObserveRuntime"}},
			{quota, []string{"Warning RuntimeDegraded ObserveRuntime"}},
			{quota, nil},
			{stuck, []string{"Warning RuntimeDegraded ObserveRuntime"}},
			{complete, []string{"Normal RuntimeRecovered ObserveRuntime", "Normal RuntimeReady ObserveRuntime"}},
		},
		"a failed reconciliation": {
			{complete, []string{"Normal RuntimeReady ObserveRuntime"}},
			{failed, []string{"Warning ReconciliationFailed ReconcileRuntime"}},
			{failed, nil},
			{complete, []string{"Normal RuntimeRecovered ObserveRuntime", "Normal RuntimeReady ObserveRuntime"}},
		},
		"to zero and back": {
			{complete, []string{"Normal RuntimeReady ObserveRuntime"}},
			{zero, []string{"Normal RuntimeScaledToZero ObserveRuntime"}},
			{zero, nil},
			{rolling, []string{"Normal RuntimeProgressing ReconcileRuntime"}},
			{complete, []string{"Normal RuntimeReady ObserveRuntime"}},
		},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			object := runtime()
			for i, step := range steps {
				step.observation.Runtime = object
				next := status.Next(step.observation, now)
				var got []string
				for _, event := range status.Events(object.Status, next) {
					got = append(got, event.Type+" "+event.Reason+" "+event.Action)
					if event.Note == "" || len(event.Note) > 1024 {
						t.Errorf("step %d: the note of %s has %d bytes", i, event.Reason, len(event.Note))
					}
				}
				if diff := cmp.Diff(step.events, got); diff != "" {
					t.Errorf("step %d (-want +got):\n%s", i, diff)
				}
				object.Status = next
			}
		})
	}
}

func TestRolloutsAreCountedWhenTheyEnd(t *testing.T) {
	rolling := status.Observation{Deployment: deployment(5, counts{desired: 1, total: 1, updated: 1, unavailable: 1})}
	tests := []struct {
		name   string
		before status.Observation
		after  status.Observation
		want   string
	}{
		{"complete", rolling, status.Observation{Deployment: deployment(5, all(1))}, status.RolloutComplete},
		{"scaled to zero", rolling, status.Observation{Deployment: deployment(5, all(0))}, status.RolloutComplete},
		{"failed", rolling, status.Observation{Deployment: deployment(5, counts{desired: 1}, deadlineExceeded())}, status.RolloutFailed},
		{"goes on", rolling, rolling, ""},
		{"blocked", rolling, status.Observation{MissingSecrets: []string{"a"}}, ""},
		{"nothing was rolling", status.Observation{Deployment: deployment(5, all(1))}, status.Observation{Deployment: deployment(5, all(1))}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			object := runtime()
			test.before.Runtime, test.after.Runtime = object, object
			object.Status = status.Next(test.before, earlier)
			ended, ok := status.RolloutEnded(object.Status, status.Next(test.after, now))
			if ok != (test.want != "") || ended.Result != test.want {
				t.Fatalf("ended %t with %q, want %q", ok, ended.Result, test.want)
			}
			if ok && !ended.Started.Equal(earlier.Time) {
				t.Errorf("started %s, want %s", ended.Started, earlier)
			}
		})
	}
	complete := status.Next(status.Observation{Runtime: runtime(), Deployment: deployment(5, all(1))}, now)
	for _, after := range []v1alpha1.TrussiumRuntimeStatus{{}, complete} {
		if _, ok := status.RolloutEnded(v1alpha1.TrussiumRuntimeStatus{}, after); ok {
			t.Error("a runtime without a status ended a rollout")
		}
	}
}

// That an upgrade progresses goes without saying; that configuration rolls out does not.
func TestTheStartOfAnUpgradeIsToldAlone(t *testing.T) {
	for tag, want := range map[string][]string{"B": {started}, "A": {"RuntimeProgressing"}} {
		object := runtime()
		object.Status = step{want: "A", rollout: ready()}.next(object)
		var got []string
		for _, event := range status.Events(object.Status, step{want: tag, rollout: halfway()}.next(object)) {
			got = append(got, event.Reason)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from A to %s (-want +got):\n%s", tag, diff)
		}
	}
}
