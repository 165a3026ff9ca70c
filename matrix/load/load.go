// Package load is a client that asks a Service all the time, and counts what it is answered. It is
// made of the standard library alone, so that a small program can be it inside of a cluster.
package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Rate is the time between two requests: 20 a second.
const Rate = 50 * time.Millisecond

// Client asks for something and returns an error if there was no good answer.
type Client func(ctx context.Context) error

// Report is what a client saw.
type Report struct {
	Requests int
	Failures int
	// TimedOut are those failures that had no answer in time.
	TimedOut int `json:",omitempty"`
	// LongestGap is the longest time between two good answers.
	LongestGap time.Duration
	// FirstError is the error of the first failure.
	FirstError string
	// Lost is why nothing is known of what the client saw; empty if the report is one.
	Lost string `json:",omitempty"`
	// Busy is why failures may say nothing of who was asked; empty if they do.
	Busy string `json:",omitempty"`
}

func (r Report) String() string {
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
	report Report
	last   time.Time
}

// Start begins to send a request in every interval until Stop; each is given up after the timeout. It
// is sent on time, even while an earlier one waits for its answer.
func Start(ctx context.Context, interval, timeout time.Duration, ask Client) *Load {
	ctx, cancel := context.WithCancel(ctx)
	load := &Load{cancel: cancel, done: make(chan struct{}), last: time.Now()}
	go load.run(ctx, interval, timeout, ask)
	return load
}

func (l *Load) run(ctx context.Context, interval, timeout time.Duration, ask Client) {
	defer close(l.done)
	var pending sync.WaitGroup
	defer pending.Wait()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			// A request under way when the load stops is still answered and counted.
			pending.Go(func() {
				requestCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
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
		if errors.Is(err, context.DeadlineExceeded) {
			l.report.TimedOut++
		}
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
func (l *Load) Stop() Report {
	l.cancel()
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	l.report.LongestGap = max(l.report.LongestGap, time.Since(l.last))
	return l.report
}
