// Command runtimesim stands in for the Trussium runtime image where that image can't be
// pulled. It honours the part of the runtime's contract that the operator and the upgrade
// matrix rely on: settings from the environment, health and capability endpoints, JSON
// lines on stdout, exit codes, and a graceful shutdown.
//
// It never hides what it is: every log line carries "simulated": true and every response
// the header X-Trussium-Simulated.
//
// Variants for failure scenarios are flags, so that an image variant is a tag with another
// command:
//
//	--version 1.28.0       the version to be (required)
//	--never-ready          /health/ready answers 503 for ever
//	--exit-code 2          end with this code: 2 as if the settings were invalid, others after the start event
//	--startup-delay 5s     open the socket late
//	--drain 20             have work in flight for 20 seconds after SIGTERM
package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Exit codes of the runtime.
const (
	exitOK      = 0
	exitFailure = 1
	exitInvalid = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	// Once the shutdown has begun, a second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

// Run is the whole program: it serves until ctx is done, drains, and returns the exit code.
// Log lines go to stdout; only help and wrong flags are written to stderr.
func Run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	options, err := parseOptions(args, stderr)
	if err != nil {
		return exitInvalid
	}
	log := newLogger(stdout)
	settings, invalid := loadSettings(options.version, lookup)
	if options.exitCode == exitInvalid {
		invalid = append(invalid, "--exit-code")
	}
	if len(invalid) > 0 {
		logInvalid(log, invalid)
		return exitInvalid
	}
	log.Info("Runtime configuration loaded",
		"event", "runtime.configuration.loaded",
		"runtime_version", options.version.String(),
		"environment", settings.environment,
		"port", settings.port,
		"graceful_shutdown_seconds", int(settings.gracefulShutdown/time.Second),
		"provider", settings.provider.name,
	)
	if options.exitCode != exitOK {
		return options.exitCode
	}
	if !wait(ctx, options.startupDelay) {
		return exitOK
	}
	return serve(ctx, options, settings, log)
}

// serve listens, answers until ctx is done, then closes the socket and drains.
func serve(ctx context.Context, options options, settings settings, log *slog.Logger) int {
	listener, err := net.Listen("tcp", net.JoinHostPort(settings.host, strconv.Itoa(settings.port)))
	if err != nil {
		log.Error("Runtime can't listen", "event", "runtime.startup.failed", "error", err.Error())
		return exitFailure
	}
	server := newServer(options, settings)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	log.Info("Runtime started", "event", "runtime.started", "address", listener.Addr().String())
	select {
	case err := <-failed:
		log.Error("Runtime stopped serving", "event", "runtime.stopped", "outcome", "failed", "error", err.Error())
		return exitFailure
	case <-ctx.Done():
	}

	log.Info("Runtime shutdown started", "event", "runtime.shutdown.started")
	outcome := "completed"
	if !drain(server, options.drain, settings.gracefulShutdown) {
		log.Error("Work exceeded the graceful shutdown period", "event", "runtime.shutdown.drain_timeout")
		outcome = "forced"
	}
	server.Close()
	log.Info("Runtime shutdown completed", "event", "runtime.shutdown.completed", "outcome", outcome)
	return exitOK
}

// drain closes the socket, waits for the requests in flight and for the simulated work,
// and tells whether all of it ended within the period.
func drain(server *http.Server, work, period time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), period)
	defer cancel()
	start := time.Now()
	if err := server.Shutdown(ctx); err != nil {
		return false
	}
	return wait(ctx, work-time.Since(start))
}

// wait lets the duration pass and returns true, or returns false as soon as ctx is done.
func wait(ctx context.Context, duration time.Duration) bool {
	if duration <= 0 {
		return true
	}
	select {
	case <-time.After(duration):
		return true
	case <-ctx.Done():
		return false
	}
}
