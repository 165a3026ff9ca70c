//go:build unix

package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Try(file); !errors.Is(err, ErrHeld) {
		t.Errorf("a second lock says %v, want ErrHeld", err)
	}
	if _, err := Try(file); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d, since 2", os.Getpid())) {
		t.Errorf("a second lock says %v, want who has the first", err)
	}
	waited := 0
	time.AfterFunc(100*time.Millisecond, unlock)
	second, err := Wait(t.Context(), file, func() { waited++ })
	if err != nil {
		t.Fatal(err)
	}
	defer second()
	if waited != 1 {
		t.Errorf("told %d times that it waits, want once", waited)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Wait(ctx, file, func() {}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait says %v", err)
	}
}

func TestUnusableFile(t *testing.T) {
	if _, err := Try(filepath.Join(t.TempDir(), "missing", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("a lock in a folder that is not there says %v", err)
	}
}
