// Package embeddedtest gives the tests of a package a real API server.
//
// A package's TestMain calls Main, which starts one embedded cluster for all tests of the
// package and ends it with them. The first run on a machine builds the cluster's binary,
// which takes minutes; every later one is ready in about three seconds.
package embeddedtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
)

// margin is what is left of go test's time limit when a start is given up, so that the
// reason is told before go test kills the tests.
const margin = 30 * time.Second

// stopTimeout bounds the end of the cluster.
const stopTimeout = 30 * time.Second

var errTooSlow = errors.New("go test's time limit is near and the cluster is not ready: " +
	"the progress of the build is kept in Go's build cache; run `go run ./tools/matrix cluster build`, or the tests again")

// Main starts a cluster, hands it to use, runs the tests, stops the cluster, and exits
// with the tests' code.
//
// A test that was killed leaves no cluster behind: the cluster ends with the process that
// started it.
func Main(m *testing.M, opts embedded.Options, use func(*embedded.Cluster)) {
	os.Exit(run(m, opts, use))
}

func run(m *testing.M, opts embedded.Options, use func(*embedded.Cluster)) int {
	flag.Parse() // for go test's time limit, which testing itself reads only in m.Run
	ctx, cancel := startContext()
	defer cancel()
	if opts.Progress == nil {
		opts.Progress = func(line string) { fmt.Fprintln(os.Stderr, line) }
	}
	cluster, err := embedded.Start(ctx, opts)
	if err != nil {
		fmt.Fprintf(os.Stderr, "embeddedtest: %v\n", withCause(ctx, err))
		return 1
	}
	use(cluster)
	code := m.Run()
	if err := stop(cluster); err != nil {
		fmt.Fprintf(os.Stderr, "embeddedtest: %v\n", err)
		return 1
	}
	return code
}

// startContext ends shortly before go test's time limit. go test kills the tests a minute
// after the limit, counted from the start of the process.
func startContext() (context.Context, context.CancelFunc) {
	limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration)
	if limit <= 2*margin {
		return context.WithCancel(context.Background()) // no limit, or one that no start can meet
	}
	return context.WithTimeoutCause(context.Background(), limit-margin, errTooSlow)
}

// withCause adds why ctx ended, if it did: the error of a cancelled build doesn't say.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func stop(cluster *embedded.Cluster) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return cluster.Stop(ctx)
}
