package check

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// loadUntil runs a client until it was asked n times.
func loadUntil(t *testing.T, n int64, ask func(i int64) error) TrafficReport {
	t.Helper()
	var asked atomic.Int64
	load := StartLoad(context.Background(), func(context.Context) error { return ask(asked.Add(1)) })
	ok, _, err := Target{}.eventually(context.Background(), time.Minute, func(context.Context) (bool, string, error) { return asked.Load() >= n, "", nil })
	if err != nil || !ok {
		t.Fatalf("the load sent %d requests, %d are wanted", asked.Load(), n)
	}
	return load.Stop()
}

func TestTraffic(t *testing.T) {
	clean := loadUntil(t, fewestRequests+5, func(int64) error { return nil })
	if r := JudgeTraffic(clean); r.Outcome() != evidence.Passed {
		t.Errorf("traffic without a failure: %v", r.Failures)
	}
	one := loadUntil(t, fewestRequests+5, func(i int64) error {
		if i == 7 {
			return errors.New("connection refused")
		}
		return nil
	})
	fails(t, Traffic, "one lost request", JudgeTraffic(one), "connection refused")
	silent := TrafficReport{Requests: fewestRequests, LongestGap: 10 * time.Second}
	fails(t, Traffic, "nobody asks any more", JudgeTraffic(silent), "no answer for 10s")
	if r := JudgeGap(one, time.Minute); r.Outcome() != evidence.Passed {
		t.Errorf("one lost request within the budget of a roll: %v", r.Failures)
	}
	dead := loadUntil(t, fewestRequests+5, func(int64) error { return errors.New("no endpoints") })
	if r := JudgeGap(dead, 100*time.Millisecond); r.Outcome() != evidence.Failed {
		t.Errorf("no answer at all is within the budget: %v", r.Seen)
	}
}

func TestTooFewRequestsProveNothing(t *testing.T) {
	if r := JudgeTraffic(loadUntil(t, 1, func(int64) error { return nil })); r.Outcome() != evidence.Failed {
		t.Error("one request is enough for a verdict")
	}
}
