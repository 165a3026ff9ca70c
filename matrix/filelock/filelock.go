//go:build unix

// Package filelock keeps processes out of each other's way by locks on files. A lock ends with
// the process that holds it at the latest.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// poll is how often a held lock is tried again.
const poll = 200 * time.Millisecond

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("it is locked by another process")

// Try takes an exclusive lock on file, which is created if needed; ErrHeld if that can't be done
// at once. The file stays when the lock is given back.
func Try(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return func() { f.Close() }, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	return nil, fmt.Errorf("lock %s: %w", file, err)
}

// Wait is Try until it succeeds or ctx ends. waiting is called once if there is something to wait for.
func Wait(ctx context.Context, file string, waiting func()) (unlock func(), err error) {
	for told := false; ; told = true {
		unlock, err := Try(file)
		if err == nil || !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s: %w", file, ctx.Err())
		case <-time.After(poll):
		}
	}
}
