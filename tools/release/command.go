package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/gate"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/oci"
)

// Exit codes: those of the matrix.
const (
	exitDone           = 0
	exitRefused        = 1 // something stands against the release
	exitInput          = 2
	exitInfrastructure = 3
	exitInterrupted    = 130
)

// errRefused says that something stands against the release; what it is was printed.
var errRefused = errors.New("not released")

// usageError is a mistake on the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run is the whole program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot(stdout)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	var mistakes *compat.Error
	switch {
	case err == nil:
	case code == exitInterrupted:
		fmt.Fprintln(stderr, "release: interrupted; the same command goes on from what the cache and the registries have")
	case errors.As(err, &mistakes):
		fmt.Fprintln(stderr, mistakes) // each line begins with its position, for editors
	default:
		fmt.Fprintln(stderr, "release:", err)
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var mistakes *compat.Error
	switch {
	case err == nil:
		return exitDone
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.As(err, &usage), errors.As(err, &mistakes), errors.Is(err, matrix.ErrInput), errors.Is(err, artifact.ErrInput),
		errors.Is(err, checkout.ErrNone), errors.Is(err, git.ErrNoRepository):
		return exitInput
	default:
		return exitInfrastructure
	}
}

// settings are what the command line says.
type settings struct {
	output string
	push   []string
	dryRun bool
}

func newRoot(stdout io.Writer) *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:   "release VERSION",
		Short: "Make a release of the commit that is checked out",
		Long: `Checks that nothing stands against releasing the commit that is checked out as VERSION: changes that
are not committed, versions that disagree, generated files that are out of date, upgrades that are not
proven. Then it writes the files of the release (chart, install.yaml, images, bills of materials,
UPGRADE-MATRIX.md, notes, checksums) and pushes images and chart to the registries that are given.

The same commit gives the same files, byte for byte, on every machine with the same version of Go.`,
		Example: `  release 1.0.5 --dry-run
  release 1.0.5
  release 1.0.5 --push ghcr.io
  release 1.0.5 --push 127.0.0.1:5000/mirror`,
		Args:          version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return release(cmd.Context(), args[0], s, &console{out: stdout})
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	root.Flags().StringVar(&s.output, "output", "dist", "folder, in the checkout, for the files; a former release's is replaced")
	root.Flags().StringSliceVar(&s.push, "push", nil, "registries to push to, as HOST[:PORT][/PREFIX]: what stands in for ghcr.io in the published names")
	root.Flags().BoolVar(&s.dryRun, "dry-run", false, "check and build all, but keep no files and push nothing")
	root.AddCommand(newImages(stdout))
	return root
}

func version(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{errors.New("name the version to release, as in: release 1.0.5 (see release --help)")}
	}
	if _, err := gate.ParseVersion(args[0]); err != nil {
		return usageError{err}
	}
	return nil
}

// release makes the release of a version that gate.ParseVersion accepts.
func release(ctx context.Context, text string, s *settings, screen *console) error {
	version, err := gate.ParseVersion(text)
	if err != nil {
		return err
	}
	var registries []oci.Registry
	for _, location := range s.push {
		registry, err := oci.ParseRegistry(location)
		if err != nil {
			return usageError{fmt.Errorf("--push: %w", err)}
		}
		registries = append(registries, registry)
	}
	places, err := checkout.Find()
	if err != nil {
		return err
	}
	output := s.output
	if !filepath.IsAbs(output) {
		output = filepath.Join(places.Repository, output)
	}
	if err := replaceable(output); err != nil {
		return usageError{err}
	}
	candidate, err := gather(ctx, places, version, screen)
	if err != nil {
		return err
	}
	if refusals := gate.Refusals(candidate.facts); len(refusals) > 0 {
		return refuse(screen, version, refusals...)
	}
	built, err := build(ctx, places, candidate.provenance, screen)
	if err != nil {
		return err
	}
	artifacts := append(built.artifacts(), candidate.chart)
	for i, registry := range registries {
		err := screen.step("registry "+s.push[i], func(func(string)) error { return registry.Free(ctx, artifacts...) })
		var taken *oci.TakenError
		if errors.As(err, &taken) {
			return refuse(screen, version, gate.Refusal{What: taken.Error(), Do: "a released version never changes: choose another one, or another registry"})
		}
		if err != nil {
			return err
		}
	}
	if err := write(ctx, output, s.dryRun, candidate, built, screen); err != nil {
		return err
	}
	if s.dryRun {
		screen.print("\n%s can be released. This was a dry run: no files were kept, and nothing was pushed.", version)
		return nil
	}
	for i, registry := range registries {
		if err := screen.step("push to "+s.push[i], func(func(string)) error { return registry.Push(ctx, artifacts...) }); err != nil {
			return err
		}
	}
	screen.print("\n%s is made: its files are in %s.", version, relative(output))
	return nil
}

// refuse prints what stands against a release and what to do about it.
func refuse(screen *console, version string, refusals ...gate.Refusal) error {
	screen.print("\n%s can't be released:", version)
	for _, refusal := range refusals {
		screen.print("✗ %s\n    %s", refusal.What, refusal.Do)
	}
	return errRefused
}
