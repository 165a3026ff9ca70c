//go:build linux

package network

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// OnNewThread runs f on an operating system thread that is used for nothing else and ends
// afterwards, so that f may move it to other namespaces without ever moving it back.
func OnNewThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread stands for the process in /proc/self and can't end. While this
			// goroutine keeps it, another one gets another thread.
			result <- OnNewThread(f)
			runtime.UnlockOSThread()
			return
		}
		// Not unlocked: the runtime ends the thread with the goroutine.
		result <- f()
	}()
	return <-result
}
