package check

import (
	"context"
	"time"
)

// Limits of the waits. They are hang guards for a loaded machine, not expectations.
const (
	readyTimeout  = 2 * time.Minute        // a runtime to become Ready, pods included
	repairTimeout = 30 * time.Second       // the operator to answer to a change of one object
	goneTimeout   = 90 * time.Second       // pods and collected objects to be gone
	pollInterval  = 200 * time.Millisecond // between two looks
)

// eventually looks until done, and returns whether that came in time with what was seen last.
// An error of a look is what was seen, too: API servers fail now and then, and one that fails
// for as long as the timeout is reported by its message. The error is non-nil only when ctx ended.
func (t Target) eventually(ctx context.Context, timeout time.Duration, look func(context.Context) (done bool, seen string, err error)) (bool, string, error) {
	if t.Patience > 0 {
		timeout = min(timeout, t.Patience)
	}
	deadline := time.Now().Add(timeout)
	for {
		done, seen, err := look(ctx)
		if ctx.Err() != nil {
			return false, seen, ctx.Err()
		}
		if err != nil {
			seen = err.Error()
		}
		if err == nil && done {
			return true, seen, nil
		}
		if time.Now().After(deadline) {
			return false, seen, nil
		}
		if err := pause(ctx, pollInterval); err != nil {
			return false, seen, err
		}
	}
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
