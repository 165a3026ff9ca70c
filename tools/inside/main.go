// Command inside is what the matrix runs in pods of its own: a client that asks a Service by its
// name, as the clients of a runtime do, and a look at how a container is really confined.
//
//	inside load URL   asks all the time between GET /start and GET /stop on port 8080, which tells what it saw
//	inside look       prints how process 1 is confined, as JSON, for a container that shares its processes
//	inside eat MIB    takes so much memory
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/confinement"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "load":
		return serveLoad(ctx, ":8080", args[1])
	case len(args) == 1 && args[0] == "look":
		facts, err := confinement.Read("/proc", 1)
		if err != nil {
			return err
		}
		return json.NewEncoder(stdout).Encode(facts)
	case len(args) == 2 && args[0] == "eat":
		return eat(ctx, args[1])
	default:
		return fmt.Errorf("usage: inside load URL, inside look, or inside eat MIB")
	}
}

// eaten is what the program has taken.
var eaten [][]byte

// eat takes memory, a MiB at a time, and keeps it for a while.
func eat(ctx context.Context, mebibytes string) error {
	count, err := strconv.Atoi(mebibytes)
	if err != nil {
		return fmt.Errorf("eat: %w", err)
	}
	for range count {
		piece := make([]byte, 1<<20)
		for i := 0; i < len(piece); i += os.Getpagesize() {
			piece[i] = 1 // the kernel gives a page when it is written to
		}
		eaten = append(eaten, piece)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Minute):
	}
	return nil
}
