package cell

import (
	"context"
	"errors"
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// trafficLoad is a client of the runtime that asks until it is stopped.
type trafficLoad interface {
	Stop() check.TrafficReport
}

// startLoad starts a client: in a pod that asks the Service by its name, where the cluster's Services
// are as they are everywhere, and else in this process, which asks through the API server.
func (r *run) startLoad(ctx context.Context) (trafficLoad, error) {
	if r.cluster.Info().RealContainers {
		load, err := check.StartInsideLoad(ctx, r.target, r.env.Inside, runtimeName)
		if err != nil {
			return nil, err // not a nil *check.InsideLoad in an interface
		}
		return load, nil
	}
	return check.StartLoad(context.WithoutCancel(ctx), r.target.ServiceClient(runtimeName)), nil
}

// lost is the error of a report that could not be had.
func lost(report check.TrafficReport) error {
	if report.Lost == "" {
		return nil
	}
	return errors.New(report.Lost)
}

// contained makes a step of a check that only a cluster with real containers can answer.
func contained(look func(ctx context.Context, t check.Target, inside string) (check.Result, error)) func(context.Context, *run) (check.Result, error) {
	return func(ctx context.Context, r *run) (check.Result, error) {
		if info := r.cluster.Info(); !info.RealContainers {
			return check.Result{}, fmt.Errorf("%w: the containers of a cluster of the provider %s are not a container runtime's", check.ErrNotApplicable, info.Provider)
		}
		return look(ctx, r.candidate(), r.env.Inside)
	}
}

func drains(ctx context.Context, t check.Target, _ string) (check.Result, error) {
	return check.AwaitDrain(ctx, t)
}

func missingImage(ctx context.Context, t check.Target, _ string) (check.Result, error) {
	return check.AwaitMissingImage(ctx, t)
}
