package cell

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// unreachable is a cluster with real containers whose API server does not answer.
type unreachable struct{ cluster.Cluster }

func (unreachable) Info() cluster.Info         { return cluster.Info{RealContainers: true} }
func (unreachable) Stop(context.Context) error { return nil }

// The end of a cell whose load could not be started has none to stop.
func TestLoadThatDoesNotStart(t *testing.T) {
	target, err := check.Target{}.Connect(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{cluster: unreachable{}, target: target}
	if r.load, err = r.startLoad(t.Context()); err == nil {
		t.Fatal("a load runs that has no cluster")
	}
	r.end()
}

// ended is a load that has seen something.
type ended check.TrafficReport

func (e ended) Stop() check.TrafficReport { return check.TrafficReport(e) }

func TestControlledLoad(t *testing.T) {
	waited := check.TrafficReport{Requests: 90, Failures: 2, TimedOut: 2}
	for _, test := range []struct {
		name            string
		client, control check.TrafficReport
		outcome         evidence.Outcome
		unknown         bool
	}{
		{"all answered, the control not", check.TrafficReport{Requests: 90}, check.TrafficReport{Requests: 30, Failures: 1}, evidence.Passed, false},
		{"only clients wait", waited, check.TrafficReport{Requests: 30}, evidence.Failed, false},
		{"everybody waits", waited, check.TrafficReport{Requests: 30, Failures: 1}, "", true},
		{"one is refused", check.TrafficReport{Requests: 90, Failures: 2, TimedOut: 1}, check.TrafficReport{Requests: 30, Failures: 1}, evidence.Failed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			report := controlledLoad{ended(test.client), ended(test.control)}.Stop()
			result, err := unlessBusy(check.JudgeTraffic(report), report)
			if (err != nil) != test.unknown || err == nil && result.Outcome() != test.outcome {
				t.Errorf("got %s, %v", result.Outcome(), err)
			}
		})
	}
}
