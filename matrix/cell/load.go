package cell

import (
	"context"
	"errors"
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
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
	ctx = context.WithoutCancel(ctx)
	return controlledLoad{check.StartLoad(ctx, r.target.ServiceClient(runtimeName)), check.StartControl(ctx, r.target)}, nil
}

// controlledLoad is a client that goes through the API server, and a control beside it.
type controlledLoad struct{ client, control trafficLoad }

// Stop returns what the client saw. If all failures are that it waited, and the control waited too, they say nothing of
// the operator.
func (l controlledLoad) Stop() check.TrafficReport {
	report, control := l.client.Stop(), l.control.Stop()
	if report.TimedOut > 0 && report.TimedOut == report.Failures && control.Failures > 0 {
		report.Busy = fmt.Sprintf(
			"the machine is too busy to tell: clients had no answer in time to %d of %d requests, nor had %d of %d to the API server itself: run fewer cells at once (--jobs)",
			report.TimedOut, report.Requests, control.Failures, control.Requests)
	}
	return report
}

// unlessBusy is the judgement of a report, unless it is a bad one that the machine may be to blame for.
func unlessBusy(result check.Result, report check.TrafficReport) (check.Result, error) {
	if result.Outcome() != evidence.Passed && report.Busy != "" {
		return check.Result{}, errors.New(report.Busy)
	}
	return result, nil
}

// lost is the error of a report that could not be had.
func lost(report check.TrafficReport) error {
	if report.Lost == "" {
		return nil
	}
	return errors.New(report.Lost)
}
