package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// plan loads the compatibility file, whose path it returns, and plans its cells.
func (s *settings) plan(ctx context.Context) (file string, cells []plan.Cell, err error) {
	options, err := s.options()
	if err != nil {
		return "", nil, err
	}
	cells, err = matrix.Load(ctx, options)
	return options.File, cells, err
}

func newPlan(s *settings, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the cells of the matrix, and why some are not run",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, cells, err := s.plan(cmd.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "CELL\tFROM\tTO\tRUNTIME\tROLLBACK\tRUN")
			for _, c := range cells {
				state := "yes"
				if c.Skip.Code != "" {
					state = fmt.Sprintf("no (%s): %s", c.Skip.Code, c.Skip.Text)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s -> %s\t%s\t%s\n", c.ID, c.From.Version, c.Candidate, c.Baseline.ImageTag, c.Target.ImageTag, c.Row.Rollback, state)
			}
			return table.Flush()
		},
	}
	s.addPlanFlags(cmd)
	return cmd
}

func newValidate(s *settings, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the compatibility file, and that the commits it names are there",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, cells, err := s.plan(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s is valid: %d cells\n", file, len(cells))
			return nil
		},
	}
	s.addPlanFlags(cmd)
	return cmd
}

func newReport(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "report",
		Short: "Write UPGRADE-MATRIX.md again from the evidence in the checkout",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			found, err := places()
			if err != nil {
				return err
			}
			path, err := matrix.WriteReport(found.Repository)
			if err != nil {
				return err
			}
			fmt.Fprintln(stdout, "wrote", relative(path))
			return nil
		},
	}
}
