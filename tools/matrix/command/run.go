package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func newRun(s *settings, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the matrix, or some of its rows or cells",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runMatrix(cmd.Context(), s, stdout) },
	}
	s.addRunFlags(cmd)
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{err}
	}
	return nil
}

func runMatrix(ctx context.Context, s *settings, stdout io.Writer) error {
	options, err := s.options()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	options.Observer = screen
	cells, err := matrix.Run(ctx, options)
	screen.summary(cells)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nEvidence in %s/, report in %s\n", matrix.EvidenceDir, matrix.ReportFile)
	return verdict(cells)
}

// verdict is the error that the cells stand for: red before infrastructure.
func verdict(cells []*evidence.Cell) error {
	var err error
	for _, cell := range cells {
		switch {
		case cell.Verdict.Green():
		case cell.Verdict == evidence.Infrastructure:
			if err == nil {
				err = errInfrastructure
			}
		default:
			err = errRed
		}
	}
	return err
}
