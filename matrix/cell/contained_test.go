package cell

import (
	"context"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
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
