package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix/cell"
	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/selftest"
)

func newSelftest(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "selftest",
		Short: "Damage what the checks guard, and see each of them turn red",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runSelftest(cmd.Context(), stdout) },
	}
}

func runSelftest(ctx context.Context, stdout io.Writer) error {
	found, err := places()
	if err != nil {
		return err
	}
	screen := newConsole(stdout)
	mutations, err := selftest.Run(ctx, found.Repository, func(test string) { screen.running("selftest", test) })
	screen.ended("")
	if errors.Is(err, selftest.ErrRed) {
		fmt.Fprintln(stdout, err)
		return errRed
	}
	if err != nil {
		return err
	}
	var checks []string
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CHECK\tTURNED RED BY")
	for _, c := range cell.Checks() {
		checks = append(checks, c.ID)
		fmt.Fprintf(table, "%s\t%s\n", c.ID, strings.Join(mutations[c.ID], "; "))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	if err := mutation.Missing(checks, mutations); err != nil {
		fmt.Fprintln(stdout, err)
		return errRed
	}
	return nil
}
