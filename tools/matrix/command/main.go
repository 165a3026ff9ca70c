// The matrix's own program: it proves what upgrades of the Trussium operator do to running
// workloads. Package tools/matrix builds and starts it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopGrace is how long the end of an interrupted run may take: clusters stop by themselves
// when this process is gone.
const stopGrace = 9 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() {
		stop() // a second signal ends the process at once
		time.AfterFunc(stopGrace, func() { os.Exit(exitInterrupted) })
	})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
