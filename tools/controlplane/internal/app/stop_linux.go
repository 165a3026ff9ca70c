package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// stopContext ends on SIGTERM, SIGINT, or when the other end of the lifeline is closed,
// which the kernel does when the process that holds it ends, however it ends.
func stopContext(lifeline int) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		received := <-signals
		cancel(fmt.Errorf("stopped by signal: %s", received))
	}()
	if lifeline >= 0 {
		syscall.CloseOnExec(lifeline)
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(uintptr(lifeline), "lifeline"))
			cancel(fmt.Errorf("the process that started the cluster has ended"))
		}()
	}
	return ctx, func() { cancel(nil) }
}
