package check

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/load"
)

// Traffic is the check that clients of a runtime do not notice an operator change.
var Traffic = Check{
	ID:    "traffic",
	Claim: "A client that asked the runtime's Service 20 times a second through the whole operator upgrade got an answer every time.",
}

const (
	// requestTimeout is when a client gives up on one request.
	requestTimeout = 5 * time.Second
	// fewestRequests is how many requests a verdict needs at least: one second's worth.
	fewestRequests = 20
)

// ServiceClient asks the runtime's Service for the first of the declared paths, through the API server's
// proxy for Services: from outside the cluster there is no other way that every provider offers. It is
// for a subject that serves.
func (t Target) ServiceClient(runtime string) load.Client {
	return func(ctx context.Context) error {
		status, body, err := t.askRuntime(ctx, runtime, t.Subject.Runtime.Paths[0])
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	}
}

// askRuntime asks the Service of a runtime for a path.
func (t Target) askRuntime(ctx context.Context, runtime, path string) (status int, body string, err error) {
	service, _ := t.Subject.kind(kindService)
	return t.get(ctx, t.Namespace, "services", "http:"+service.NameFor(runtime)+":"+t.Subject.Runtime.Port, path)
}

// TrafficReport is what a client saw, Load a running client.
type (
	TrafficReport = load.Report
	Load          = load.Load
)

// StartLoad begins to ask the runtime 20 times a second, until Stop.
func StartLoad(ctx context.Context, ask load.Client) *Load {
	return load.Start(ctx, load.Rate, requestTimeout, ask)
}

const (
	// controlInterval is the time between two requests of a control.
	controlInterval = 250 * time.Millisecond
	// controlTimeout is a fifth of what a client waits: on a machine with time to spare an API server answers within
	// hundredths of a second.
	controlTimeout = time.Second
)

// StartControl begins to ask the API server for its version, which no operator has to do with, until Stop. Requests
// that fail say that the machine is too busy to tell who made other clients wait.
func StartControl(ctx context.Context, t Target) *Load {
	return load.Start(ctx, controlInterval, controlTimeout, func(ctx context.Context) error {
		return t.Clientset.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	})
}

// JudgeTraffic judges Traffic: no request may fail.
func JudgeTraffic(report TrafficReport) Result {
	r := enoughRequests(report)
	if report.Failures > 0 {
		r.Fail("%d of %d requests failed (first: %s)", report.Failures, report.Requests, report.FirstError)
	}
	if report.LongestGap > requestTimeout {
		r.Fail("clients had no answer for %s, %s is what one waits", report.LongestGap.Round(time.Millisecond), requestTimeout)
	}
	return r
}

// JudgeGap judges the traffic during a runtime image change: single requests may fail, but
// clients must not go without an answer for longer than budget.
func JudgeGap(report TrafficReport, budget time.Duration) Result {
	r := enoughRequests(report)
	if report.LongestGap > budget {
		r.Fail("clients had no answer for %s, %s is the budget", report.LongestGap.Round(time.Millisecond), budget)
	}
	return r
}

func enoughRequests(report TrafficReport) Result {
	var r Result
	if report.Requests < fewestRequests {
		r.Fail("only %d requests were sent, a verdict needs %d", report.Requests, fewestRequests)
	}
	r.See("%s", report)
	return r
}
