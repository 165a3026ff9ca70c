package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
)

func newBundle(s *settings, stdout io.Writer) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "bundle -o FILE",
		Short: "Write all that a run needs into one archive, for machines without a network",
		Long: `Writes charts, images and programs of the planned cells into one archive: an OCI image layout in a tar file. With
--bundle FILE, run and scenarios take everything from it: nothing is built or pulled. It is good for the checkout that it
was made from, the embedded provider, and machines of the same architecture. See docs/air-gapped.md.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeBundle(cmd.Context(), s, out, stdout)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the archive to write")
	cmd.Flags().StringSliceVar(&s.narrow.kubernetes, "kubernetes", nil, "exact Kubernetes versions instead of those of the file")
	cmd.Flags().StringSliceVar(&s.narrow.rows, "row", nil, "only for the rows with these ids")
	cmd.Flags().StringSliceVar(&s.narrow.cells, "cell", nil, "only for the cells with these ids")
	s.addSourceFlags(cmd)
	return cmd
}

func writeBundle(ctx context.Context, s *settings, out string, stdout io.Writer) error {
	if out == "" {
		return usageError{fmt.Errorf("name the archive to write: matrix bundle -o FILE")}
	}
	if info, err := os.Stat(filepath.Dir(out)); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("-o %s: its folder does not exist", out)}
	}
	options, err := s.options()
	if err != nil {
		return err
	}
	options.Observer = newConsole(stdout)
	bundled, err := matrix.WriteBundle(ctx, options, out)
	if err != nil {
		return err
	}
	info, err := os.Stat(out)
	if err != nil {
		return fmt.Errorf("look at the bundle: %w", err)
	}
	var refs []string
	for _, artifact := range bundled.Artifacts {
		refs = append(refs, fmt.Sprintf("  %s@%s", artifact.Ref, artifact.Digest))
	}
	slices.Sort(refs)
	for _, ref := range slices.Compact(refs) {
		fmt.Fprintln(stdout, ref)
	}
	for _, program := range bundled.Programs {
		fmt.Fprintln(stdout, "  program", program)
	}
	fmt.Fprintf(stdout, "wrote %s: %d MiB, %s\n", out, info.Size()>>20, bundled.Digest)
	return nil
}
