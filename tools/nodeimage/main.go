// Command nodeimage builds the image of a Kind node from Go modules and Debian packages, into the
// user's cache, and prints the path of the archive. See docs/kind.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/nodeimage"
)

// Exit codes.
const (
	exitFailed = 1
	exitInput  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("nodeimage", flag.ContinueOnError)
	flags.SetOutput(stderr)
	versions := nodeimage.Versions()
	kubernetes := flags.String("kubernetes", versions[len(versions)-1], "exact Kubernetes version: one of "+strings.Join(versions, ", "))
	mirror := flags.String("debian-mirror", nodeimage.DebianMirror, "where Debian's packages come from")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		return exitInput
	}
	found, err := checkout.Find()
	if err != nil {
		fmt.Fprintln(stderr, "nodeimage:", err)
		return exitInput
	}
	start := time.Now()
	image, err := nodeimage.Build(ctx, nodeimage.Options{
		Repository: found.Repository, CacheDir: found.CacheDir, Kubernetes: *kubernetes, Mirror: *mirror,
		Progress: func(text string) { fmt.Fprintf(stderr, "%5.0fs  %s\n", time.Since(start).Seconds(), text) },
	})
	if err != nil {
		fmt.Fprintln(stderr, "nodeimage:", err)
		return exitFailed
	}
	fmt.Fprintf(stderr, "%5.0fs  %s\n", time.Since(start).Seconds(), image.Ref)
	fmt.Fprintln(stdout, image.Archive)
	return 0
}
