// Command matrix builds the matrix's own program, with progress, and becomes it.
//
// The program is large. Built here rather than by `go run`, its compilation is visible, and what
// was compiled for it serves the operator's image too, because both are built with the same flags.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// Exit codes, as those of the program itself.
const (
	exitInput          = 2
	exitInfrastructure = 3
	exitInterrupted    = 130
)

func main() {
	os.Exit(run())
}

// run returns only if the program could not be built or started.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	places, err := checkout.Find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		return exitInput
	}
	program := gobuild.Program{
		Name: "matrix", Dir: places.Repository, Package: "./tools/matrix/command",
		Inputs: []string{"go.mod", "go.sum", "api", "charts", "matrix", "operator", filepath.Join("tools", "matrix")},
	}
	path, err := program.Cached(ctx, places.CacheDir, func(text string) { fmt.Fprintln(os.Stderr, "   ", text) })
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "matrix: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "matrix:", err)
		return exitInfrastructure
	}
	stop()
	err = syscall.Exec(path, append([]string{"matrix"}, os.Args[1:]...), os.Environ())
	fmt.Fprintf(os.Stderr, "matrix: start %s: %v\n", path, err)
	return exitInfrastructure
}
