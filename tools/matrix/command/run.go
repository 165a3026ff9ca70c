package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/report"
)

func newRun(s *settings, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the matrix, or some of its rows or cells",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runMatrix(cmd.Context(), s, stdout, cmd.ErrOrStderr())
		},
	}
	s.addRunFlags(cmd)
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return usageError{fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())}
	}
	return nil
}

func runMatrix(ctx context.Context, s *settings, stdout, stderr io.Writer) error {
	if err := checkOutput(s.output); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Dir(s.junit)); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--junit %s: its folder does not exist", s.junit)}
	}
	options, err := s.options()
	if err != nil {
		return err
	}
	// What is for programs must be alone on the standard output.
	progress := stdout
	if s.output != outputTable {
		progress = stderr
	}
	screen := newConsole(progress)
	options.Observer = screen
	release := holdCommands(progress)
	cells, runErr := matrix.Run(ctx, options)
	screen.summary(cells)
	release()
	results := finished(cells)
	told := s.tell(ctx, options, results, progress)
	if runErr != nil {
		return errors.Join(runErr, told)
	}
	if err := printResult(stdout, s.output, newRunResult(results), func(w io.Writer) { runTable(w, results) }); err != nil {
		return err
	}
	fmt.Fprintf(progress, "\nEvidence in %s/, report in %s\n", matrix.EvidenceDir, matrix.ReportFile)
	return errors.Join(verdict(results), told)
}

// finished are the results of a run, without the cells that it did not get to.
func finished(cells []*evidence.Cell) []*evidence.Cell {
	var results []*evidence.Cell
	for _, cell := range cells {
		if cell != nil {
			results = append(results, cell)
		}
	}
	return results
}

// tell writes the results where CI looks for them, also those of a run that was cut short.
func (s *settings) tell(ctx context.Context, options matrix.Options, results []*evidence.Cell, progress io.Writer) error {
	var failures []error
	if s.junit != "" && len(results) > 0 {
		content, err := report.JUnit(results)
		if err == nil {
			err = os.WriteFile(s.junit, content, 0o644)
		}
		failures = append(failures, err)
	}
	if len(results) > 0 {
		failures = append(failures, appendSummary(report.JobSummary(results)))
	}
	if onGitHub() {
		planned, err := matrix.Load(ctx, options)
		failures = append(failures, err)
		for _, line := range report.Annotations(workspacePath(options.File), planned, results) {
			fmt.Fprintln(progress, line)
		}
	}
	return errors.Join(failures...)
}

// runResult is what a run prints for programs.
type runResult struct {
	// Verdict is green, red or infrastructure.
	Verdict string       `json:"verdict"`
	Cells   []cellResult `json:"cells"`
}

type cellResult struct {
	ID          string                `json:"id"`
	Row         string                `json:"row"`
	Provider    string                `json:"provider"`
	Kubernetes  string                `json:"kubernetes"`
	Verdict     evidence.Verdict      `json:"verdict"`
	Reason      string                `json:"reason,omitempty"`
	Seconds     float64               `json:"seconds"`
	Failed      []string              `json:"failedSteps,omitempty"`
	Disruptions []evidence.Disruption `json:"disruptions,omitempty"`
	Evidence    string                `json:"evidence"`
	Reproduce   string                `json:"reproduce"`
}

func newRunResult(cells []*evidence.Cell) runResult {
	result := runResult{Verdict: "green", Cells: []cellResult{}}
	switch err := verdict(cells); {
	case errors.Is(err, errRed):
		result.Verdict = "red"
	case errors.Is(err, errInfrastructure):
		result.Verdict = "infrastructure"
	}
	for _, cell := range cells {
		c := cellResult{
			ID: cell.ID, Row: cell.Upgrade.Row, Provider: cell.Cluster.Provider, Kubernetes: cell.Cluster.Kubernetes,
			Verdict: cell.Verdict, Reason: cell.Reason, Seconds: cell.Took().Seconds(), Disruptions: cell.Disruptions,
			Evidence: fmt.Sprintf("%s/%s.json", matrix.EvidenceDir, cell.ID), Reproduce: cell.Reproduce,
		}
		for _, step := range cell.Steps {
			if step.Outcome == evidence.Failed {
				c.Failed = append(c.Failed, step.ID)
			}
		}
		result.Cells = append(result.Cells, c)
	}
	return result
}

func runTable(w io.Writer, cells []*evidence.Cell) {
	fmt.Fprintln(w, "\nCELL\tVERDICT\tSECONDS")
	for _, cell := range cells {
		fmt.Fprintf(w, "%s\t%s\t%.0f\n", cell.ID, cell.Verdict, cell.Took().Seconds())
	}
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
