package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// options are what the image, not the operator, decides: the version and the fault to show.
type options struct {
	version      version
	neverReady   bool
	exitCode     int
	startupDelay time.Duration
	drain        time.Duration
}

// parseOptions reads the command line. The error, if any, has already been written to stderr.
func parseOptions(args []string, stderr io.Writer) (options, error) {
	var parsed options
	flags := flag.NewFlagSet("runtimesim", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("version", "the runtime `version` to be, as an image tag: 1.28.0, 1.28, 1 or latest (required)", func(value string) error {
		var err error
		parsed.version, err = parseVersion(value)
		return err
	})
	flags.BoolVar(&parsed.neverReady, "never-ready", false, "answer /health/ready with 503 for ever")
	flags.IntVar(&parsed.exitCode, "exit-code", exitOK, "end with this `code`: 2 as if the settings were invalid, others after the start event")
	flags.DurationVar(&parsed.startupDelay, "startup-delay", 0, "wait this long before the socket opens")
	seconds := flags.Uint("drain", 0, "have work in flight for this many `seconds` after SIGTERM")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	parsed.drain = time.Duration(*seconds) * time.Second
	if err := parsed.check(flags.Args()); err != nil {
		fmt.Fprintln(stderr, err)
		flags.Usage()
		return options{}, err
	}
	return parsed, nil
}

func (o options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q: runtimesim takes flags only", rest[0])
	case o.version == version{}:
		return errors.New("--version is required: the image tag that this runtime simulates")
	case o.exitCode < 0 || o.exitCode > 255:
		return fmt.Errorf("--exit-code %d: must be between 0 and 255", o.exitCode)
	}
	return nil
}
