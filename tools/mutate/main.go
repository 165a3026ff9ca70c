// Command mutate shows what the tests of a package would not notice: it makes one small
// change to the package at a time, runs the package's tests, and lists the changes that
// they pass with. The source files are left alone (go build's overlay). Changes that can
// be switched at run time are all compiled into one test binary; the others, of constants
// and some switches, take a build each.
//
//	go run ./tools/mutate [-match regexp] package-folder [flags of the test binary]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
)

func main() {
	match := flag.String("match", "", "make only the changes whose line in the list matches this `regexp`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *match, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, match string, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New("name the folder of a package")
	}
	wanted, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	files, mutations, err := mutationsOf(arguments[0])
	if err != nil {
		return err
	}
	tests, err := newTestRun(ctx, arguments[0], files, mutations, arguments[1:])
	if err != nil {
		return err
	}
	defer tests.close()
	if output, err := tests.with(ctx, mutation{id: none}); err != nil {
		return fmt.Errorf("the tests must pass without a change first: %w\n%s", err, output)
	}

	var noticed, unnoticed, invalid int
	for _, mutation := range mutations {
		if !wanted.MatchString(mutation.String()) {
			continue
		}
		_, err := tests.with(ctx, mutation)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errBuild):
			invalid++
		case err != nil:
			noticed++
		default:
			unnoticed++
			fmt.Fprintln(out, mutation)
		}
	}
	fmt.Fprintf(out, "%d changes: %d noticed, %d not noticed, %d do not compile\n",
		noticed+unnoticed+invalid, noticed, unnoticed, invalid)
	return nil
}
