package check

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NoFlapping is the check that an older operator and the objects of a newer one live side by side.
var NoFlapping = Check{
	ID:    "no-flapping",
	Claim: "For 60 s after the rollback the Deployment of a runtime with every feature of the newer release, which the newer operator made, is not fought over.",
}

// SteadyPeriod is how long nothing may be fought over.
const SteadyPeriod = 60 * time.Second

// AwaitSteady watches the Deployments of the target's runtimes until the period after since is
// over, and judges NoFlapping. The older operator may write each once, to what it makes of the spec.
func AwaitSteady(ctx context.Context, t Target, since time.Time, period time.Duration) (Result, error) {
	var r Result
	first, err := Observe(ctx, t)
	if err != nil {
		return r, err
	}
	if err := pause(ctx, time.Until(since.Add(period))); err != nil {
		return r, err
	}
	last, err := Observe(ctx, t)
	if err != nil {
		return r, err
	}
	r.Add(compareSteady(first, last, time.Since(first.Taken)))
	return r, nil
}

func compareSteady(first, last *Snapshot, between time.Duration) Result {
	var r Result
	steady := 0
	for _, p := range pairs(ofKind(first.Children, kindDeployment), ofKind(last.Children, kindDeployment)) {
		if !r.same(p) {
			continue
		}
		if before, after := p.before.GetGeneration(), p.after.GetGeneration(); before != after {
			r.Fail("%s: generation %d, %s later %d (replicas %s, then %s)", p.name, before, between.Round(time.Second), after, replicas(p.before), replicas(p.after))
			continue
		}
		steady++
	}
	if steady > 0 {
		r.See("%d Deployments kept their generation for %s", steady, between.Round(time.Second))
	}
	return r
}

func replicas(deployment *unstructured.Unstructured) string {
	count, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	return fmt.Sprint(count)
}
