package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

func newImages(stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Build the images of the checkout, as it is, into archives",
		Long: `Builds the images of the checkout for all platforms, uncommitted changes included, and writes each as
an OCI image layout into a tar archive, from which container tools load it. It checks nothing and
pushes nothing.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeImages(cmd.Context(), output, &console{out: stdout})
		},
	}
	cmd.Flags().StringVar(&output, "output", "bin", "folder, in the checkout, for the archives")
	return cmd
}

func writeImages(ctx context.Context, output string, screen *console) error {
	places, err := checkout.Find()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(output) {
		output = filepath.Join(places.Repository, output)
	}
	provenance, err := provenanceOf(ctx, places.Repository)
	if err != nil {
		return err
	}
	built, err := build(ctx, places, provenance, screen)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return fmt.Errorf("write the images: %w", err)
	}
	if err := built.writeArchives(output, provenance.Version); err != nil {
		return err
	}
	for _, image := range built {
		digest, err := image.artifact.Digest()
		if err != nil {
			return err
		}
		screen.print("%s@%s is in %s", image.artifact.Ref, digest, relative(filepath.Join(output, image.archiveName(provenance.Version))))
	}
	return nil
}

// provenanceOf is the provenance of the checkout. Its revision says so if there are uncommitted changes.
func provenanceOf(ctx context.Context, dir string) (artifact.Provenance, error) {
	repository := git.Repository{Dir: dir}
	version, err := artifact.CheckoutVersion(dir)
	if err != nil {
		return artifact.Provenance{}, err
	}
	revision, err := repository.Head(ctx)
	if err != nil {
		return artifact.Provenance{}, err
	}
	created, err := repository.CommitTime(ctx, revision)
	if err != nil {
		return artifact.Provenance{}, err
	}
	changes, err := repository.Changes(ctx, artifact.Generated...)
	if err != nil {
		return artifact.Provenance{}, err
	}
	if len(changes) > 0 {
		revision += "-dirty"
	}
	return artifact.Provenance{Version: version, Revision: revision, Created: created}, nil
}
