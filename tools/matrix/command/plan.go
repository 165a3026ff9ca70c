package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// plan loads the compatibility file and plans its cells.
func (s *settings) plan(ctx context.Context) (matrix.Options, []plan.Cell, error) {
	options, err := s.options()
	if err != nil {
		return options, nil, err
	}
	cells, err := matrix.Load(ctx, options)
	return options, cells, err
}

func newPlan(s *settings, stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "List the cells of the matrix, why some are not run, and how long the others will take",
		Long: `Lists the cells of the matrix. The predicted minutes are those of the cell's last run, or the median of other cells on
the same provider, from the evidence in the cache and in the checkout; the column BASIS says which. What the first run
builds is not counted.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			options, cells, err := s.plan(cmd.Context())
			if err != nil {
				return err
			}
			result := newPlanResult(cells, options.History(), options.Jobs)
			if err := printResult(stdout, output, result, result.table); err != nil {
				return err
			}
			if output == outputTable {
				fmt.Fprintln(stdout, "\n"+result.total())
			}
			return nil
		},
	}
	s.addPlanFlags(cmd)
	s.addJobsFlag(cmd)
	addOutputFlag(cmd, &output)
	return cmd
}

// planResult is what plan prints for programs.
type planResult struct {
	Cells []plannedCell `json:"cells"`
	// Minutes are the predicted ones for all cells together, Unknown how many cells they leave out.
	Minutes float64 `json:"predictedMinutes"`
	Unknown int     `json:"cellsOfUnknownDuration"`
	Jobs    int     `json:"jobs"`
}

type plannedCell struct {
	ID         string   `json:"id"`
	Row        string   `json:"row"`
	From       string   `json:"from"`
	Through    []string `json:"through,omitempty"`
	To         string   `json:"to"`
	Baseline   string   `json:"baseline"`
	Target     string   `json:"target"`
	Rollback   string   `json:"rollback"`
	CRDs       string   `json:"crds"`
	Values     string   `json:"values"`
	Provider   string   `json:"provider"`
	Kubernetes string   `json:"kubernetes,omitempty"`
	Run        bool     `json:"run"`
	Skip       string   `json:"skip,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	// Minutes is null if nothing is known.
	Minutes *float64 `json:"predictedMinutes"`
	Basis   string   `json:"basis,omitempty"`
}

func newPlanResult(cells []plan.Cell, past []plan.Past, jobs int) planResult {
	predictions := plan.Predict(cells, past)
	total, unknown := plan.Total(cells, predictions, jobs)
	result := planResult{Cells: []plannedCell{}, Minutes: minutes(total), Unknown: unknown, Jobs: jobs}
	for i, c := range cells {
		planned := plannedCell{
			ID: c.ID, Row: c.Row.ID, From: c.From.Version, Through: c.Row.Through, To: c.Candidate, Baseline: c.Baseline.ImageTag, Target: c.Target.ImageTag,
			Rollback: string(c.Row.Rollback), CRDs: string(c.Row.CRDs), Values: string(c.Row.Values), Provider: c.Provider, Kubernetes: c.Kubernetes,
			Run: c.Skip.Code == "", Skip: string(c.Skip.Code), Reason: c.Skip.Text, Basis: predictions[i].Basis,
		}
		if predictions[i].Known() {
			planned.Minutes = new(minutes(predictions[i].Took))
		}
		result.Cells = append(result.Cells, planned)
	}
	return result
}

// minutes are rounded to tenths: no prediction is closer.
func minutes(d time.Duration) float64 {
	return float64(d.Round(6*time.Second)/(6*time.Second)) / 10
}

func (r planResult) table(w io.Writer) {
	fmt.Fprintln(w, "CELL\tFROM\tTO\tRUNTIME\tROLLBACK\tRUN\tMINUTES\tBASIS")
	for _, c := range r.Cells {
		state, predicted := "yes", "?"
		if !c.Run {
			state, predicted = fmt.Sprintf("no (%s): %s", c.Skip, c.Reason), "-"
		}
		if c.Minutes != nil {
			predicted = fmt.Sprintf("%.1f", *c.Minutes)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s -> %s\t%s\t%s\t%s\t%s\n", c.ID, c.From, c.To, c.Baseline, c.Target, c.Rollback, state, predicted, c.Basis)
	}
}

// total is the prediction for all cells in a sentence.
func (r planResult) total() string {
	known := 0
	for _, c := range r.Cells {
		if c.Minutes != nil {
			known++
		}
	}
	if known == 0 {
		return "How long it will take is unknown: no cell has run yet."
	}
	text := fmt.Sprintf("About %.1f minutes for %d cells, %d at once, if none of their results can be reused.", r.Minutes, known, r.Jobs)
	if r.Unknown > 0 {
		text += fmt.Sprintf(" How long %d more take is unknown.", r.Unknown)
	}
	return text
}

func newValidate(s *settings, stdout io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate",
		Short: "Check the compatibility file, and that the commits it names are there",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, cells, err := s.plan(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s is valid: %d cells\n", options.File, len(cells))
			return nil
		},
	}
	s.addPlanFlags(cmd)
	return cmd
}
