package check

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Traffic is the check that clients of a runtime do not notice an operator change.
var Traffic = Check{
	ID:    "traffic",
	Claim: "A client that asked the runtime's Service 20 times a second through the whole operator upgrade got an answer every time.",
}

const (
	// trafficInterval gives the 20 requests a second of checks.md.
	trafficInterval = 50 * time.Millisecond
	// requestTimeout is when a client gives up on one request.
	requestTimeout = 5 * time.Second
	// fewestRequests is how many requests a verdict needs at least: one second's worth.
	fewestRequests = 20
)

// Client asks a runtime for something and returns an error if there was no good answer.
type Client func(ctx context.Context) error

// ServiceClient asks the runtime's Service for /health/live, through the API server's proxy for
// Services: from outside the cluster there is no other way that every provider offers.
func (t Target) ServiceClient(runtime string) Client {
	return func(ctx context.Context) error {
		status, body, err := t.get(ctx, t.Namespace, "services", "http:"+runtime+":http", "/health/live")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", status, body)
		}
		return err
	}
}

// TrafficReport is what a client saw.
type TrafficReport struct {
	Requests int
	Failures int
	// LongestGap is the longest time between two good answers.
	LongestGap time.Duration
	// FirstError is the error of the first failure.
	FirstError string
}

func (r TrafficReport) String() string {
	text := fmt.Sprintf("%d requests, %d failures, longest gap between answers %s", r.Requests, r.Failures, r.LongestGap.Round(time.Millisecond))
	if r.FirstError != "" {
		text += ", first failure: " + r.FirstError
	}
	return text
}

// Load is a running client.
type Load struct {
	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	report TrafficReport
	last   time.Time
}

// StartLoad begins to send requests until Stop. Each is sent on time, even while an earlier one
// waits for its answer.
func StartLoad(ctx context.Context, ask Client) *Load {
	ctx, cancel := context.WithCancel(ctx)
	load := &Load{cancel: cancel, done: make(chan struct{}), last: time.Now()}
	go load.run(ctx, ask)
	return load
}

func (l *Load) run(ctx context.Context, ask Client) {
	defer close(l.done)
	var pending sync.WaitGroup
	defer pending.Wait()
	ticker := time.NewTicker(trafficInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// A request under way when the load stops is still answered and counted.
			pending.Go(func() {
				requestCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
				defer cancel()
				l.record(ask(requestCtx))
			})
		}
	}
}

func (l *Load) record(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.Requests++
	if err != nil {
		l.report.Failures++
		if l.report.FirstError == "" {
			l.report.FirstError = err.Error()
		}
		return
	}
	now := time.Now()
	l.report.LongestGap = max(l.report.LongestGap, now.Sub(l.last))
	l.last = now
}

// Stop ends the load and returns what it saw, the time since the last answer included.
func (l *Load) Stop() TrafficReport {
	l.cancel()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.LongestGap = max(l.report.LongestGap, time.Since(l.last))
	return l.report
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
