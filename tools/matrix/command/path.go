package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/claim"
	"github.com/trussiumhq/trussium-operator/matrix/report"
)

func newPath(s *settings, stdout io.Writer) *cobra.Command {
	var from, to, output string
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Tell the shortest chain of upgrades with evidence from one operator release to another",
		Long: `Tells the shortest chain of upgrades that the evidence in the checkout proves, with the cells that prove it. It stops
at no release that is known to be broken. If there is none, it says what is missing, and exits with 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			options, err := s.options()
			if err != nil {
				return err
			}
			result, err := findPath(cmd.Context(), options, from, to)
			if err != nil {
				return err
			}
			if err := printResult(stdout, output, result, result.table); err != nil {
				return err
			}
			if len(result.Hops) == 0 {
				return noPathError{from: result.From, to: result.To}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "operator release to start from")
	cmd.Flags().StringVar(&to, "to", "", "operator release to end at (default: the version of the checkout)")
	addOutputFlag(cmd, &output)
	return cmd
}

// noPathError says that no evidence leads from one release to another; why was printed before.
type noPathError struct{ from, to string }

func (e noPathError) Error() string {
	return fmt.Sprintf("no evidence leads from %s to %s", e.from, e.to)
}

func (e noPathError) Is(target error) bool { return target == errRed }

// pathResult is what path prints for programs.
type pathResult struct {
	From string      `json:"from"`
	To   string      `json:"to"`
	Hops []hopResult `json:"hops"`
	// Missing says what would make a path, if there is none.
	Missing []string `json:"missing,omitempty"`
}

type hopResult struct {
	From     string `json:"from"`
	To       string `json:"to"`
	Cell     string `json:"cell"`
	Evidence string `json:"evidence"`
	// Part tells that the hop is part of a longer chain, Committed that the evidence is of a commit.
	Part      bool `json:"partOfAChain"`
	Committed bool `json:"committed"`
	// Simulated tells that a runtime image was a stand-in.
	Simulated bool `json:"simulatedRuntime"`
}

func findPath(ctx context.Context, options matrix.Options, from, to string) (pathResult, error) {
	in, err := matrix.ReportInput(ctx, options)
	if err != nil {
		return pathResult{}, err
	}
	chart, err := artifact.Metadata(options.Repository, in.File.Operator.Chart.Path)
	if err != nil {
		return pathResult{}, usageError{err}
	}
	candidate := chart.Version
	result := pathResult{From: strings.TrimPrefix(from, "v"), To: cmp.Or(strings.TrimPrefix(to, "v"), candidate), Hops: []hopResult{}}
	hops := claim.Hops(in.Documents)
	known := knownReleases(in, hops, candidate)
	for _, release := range []struct{ flag, version string }{{"--from", result.From}, {"--to", result.To}} {
		if !slices.Contains(known, release.version) {
			return pathResult{}, usageError{fmt.Errorf("%s %q: there is no such operator release: use one of %s", release.flag, release.version, strings.Join(known, ", "))}
		}
	}
	if result.From == result.To {
		return pathResult{}, usageError{fmt.Errorf("--from and --to are both %s: there is nothing to upgrade", result.From)}
	}
	for _, hop := range claim.Path(hops, result.From, result.To) {
		result.Hops = append(result.Hops, hopResult{
			From: hop.From, To: hop.To, Cell: hop.Proof.ID, Evidence: fmt.Sprintf("%s/%s.json", matrix.EvidenceDir, hop.Proof.ID),
			Part: len(hop.Proof.Through) > 0, Committed: claim.Committed(hop.Proof), Simulated: claim.Simulated(hop.Proof),
		})
	}
	if len(result.Hops) == 0 {
		result.Missing = missing(in, hops, result.From, result.To, candidate)
	}
	return result, nil
}

// knownReleases are the versions that the file or the evidence name, oldest first.
func knownReleases(in report.Input, hops []claim.Hop, candidate string) []string {
	known := []string{candidate}
	for _, release := range in.File.OperatorReleases {
		known = append(known, release.Version)
	}
	for _, hop := range hops {
		known = append(known, hop.From, hop.To)
	}
	slices.SortFunc(known, claim.CompareVersions)
	return slices.Compact(known)
}

// missing says how far the evidence leads, and what would prove more.
func missing(in report.Input, hops []claim.Hop, from, to, candidate string) []string {
	var lines []string
	if reachable := claim.Reachable(hops, from); len(reachable) > 0 {
		lines = append(lines, fmt.Sprintf("from %s the evidence leads to %s only", from, strings.Join(reachable, ", ")))
	} else {
		lines = append(lines, "from "+from+" the evidence leads nowhere")
	}
	if to != candidate {
		return append(lines, fmt.Sprintf("only upgrades to %s, the version of the checkout, can be proven here: look at the evidence of release %s", candidate, to))
	}
	found := false
	for _, c := range claim.Cells(in.Planned, in.Documents) {
		if c.Planned == nil || c.Planned.From.Version != from || c.Planned.Skip.Code != "" {
			continue
		}
		found = true
		lines = append(lines, fmt.Sprintf("cell %s: %s; run `%s`", c.ID, cmp.Or(c.Reason, "it passes a release that is known to be broken"), c.Rerun()))
	}
	if !found {
		lines = append(lines, fmt.Sprintf("the compatibility file has no row from %s: add one to upgrades", from))
	}
	return lines
}

func (r pathResult) table(w io.Writer) {
	if len(r.Hops) == 0 {
		for _, line := range r.Missing {
			fmt.Fprintln(w, line)
		}
		return
	}
	fmt.Fprintln(w, "FROM\tTO\tEVIDENCE\tNOTE")
	for _, hop := range r.Hops {
		var notes []string
		if hop.Part {
			notes = append(notes, "part of a chain")
		}
		if hop.Simulated {
			notes = append(notes, "simulated runtime")
		}
		if !hop.Committed {
			notes = append(notes, "uncommitted changes")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", hop.From, hop.To, hop.Evidence, strings.Join(notes, ", "))
	}
}
