//go:build unix

// Package filelock keeps processes out of each other's way by locks on files and folders. A lock
// ends with the process that holds it at the latest.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// poll is how often a held lock is tried again.
const poll = 200 * time.Millisecond

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("it is locked by another process")

// Try takes an exclusive lock on file, which is created if needed; ErrHeld if that can't be done
// at once, with the process that holds it and since when. The file stays when the lock is given
// back.
func Try(file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	if err := TryOpen(f); err != nil {
		holder := holderOf(f)
		f.Close()
		if holder != "" && errors.Is(err, ErrHeld) {
			err = fmt.Errorf("%w: %s", err, holder)
		}
		return nil, fmt.Errorf("lock %s: %w", file, err)
	}
	// What the file says is for people. A full disk does not make the lock worse.
	if err := f.Truncate(0); err == nil {
		fmt.Fprintf(f, "process %d, since %s\n", os.Getpid(), time.Now().UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	return func() { f.Close() }, nil
}

// TryOpen takes an exclusive lock on an open file or folder; ErrHeld if that can't be done at once.
// It ends when the last copy of f is closed: a child that is given f shares the lock.
func TryOpen(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

// maxHolder bounds what is read of a lock file, in bytes.
const maxHolder = 200

// holderOf is what the holder of the lock wrote into its file, in one line; empty if it did not.
func holderOf(f *os.File) string {
	content, err := io.ReadAll(io.LimitReader(f, maxHolder))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(content)), " ")
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
