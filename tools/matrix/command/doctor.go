package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/doctor"
)

func newDoctor(s *settings, stdout io.Writer) *cobra.Command {
	var output, provider string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out what this machine can run, and what to do where something is missing",
		Long: `Looks at Go, git's history, memory, disk, the kernel's settings, container engines and caches, and changes nothing.
Exits with 1 if something is missing that the provider needs.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			if !slices.Contains(matrix.Providers, provider) {
				return usageError{fmt.Errorf("there is no provider %q: use one of %s", provider, strings.Join(matrix.Providers, ", "))}
			}
			options, err := s.options()
			if err != nil {
				return err
			}
			findings, err := matrix.Doctor(cmd.Context(), options)
			if err != nil {
				return err
			}
			result := doctorResult{Findings: findings, CanRun: map[string]bool{}}
			for _, name := range matrix.Providers {
				result.CanRun[name] = doctor.CanRun(findings, name)
			}
			if err := printResult(stdout, output, result, result.table); err != nil {
				return err
			}
			if !result.CanRun[provider] {
				return cannotRunError(provider)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&provider, "provider", embedded.ProviderName, "the provider that must be able to run: "+strings.Join(matrix.Providers, ", "))
	addOutputFlag(cmd, &output)
	return cmd
}

// cannotRunError names the provider that can't run here; what is missing was printed before.
type cannotRunError string

func (e cannotRunError) Error() string {
	return fmt.Sprintf("this machine can't run the provider %s: see what is missing above", string(e))
}

func (e cannotRunError) Is(target error) bool { return target == errRed }

// doctorResult is what doctor prints for programs.
type doctorResult struct {
	// CanRun tells for each provider whether it can run here.
	CanRun   map[string]bool  `json:"canRun"`
	Findings []doctor.Finding `json:"findings"`
}

// marks stand before the words of a finding.
var marks = map[doctor.State]string{doctor.OK: "✓", doctor.Note: "-", doctor.Missing: "✗"}

func (r doctorResult) table(w io.Writer) {
	for _, f := range r.Findings {
		what := f.What
		if f.NeededFor != "" {
			what += " (" + f.NeededFor + ")"
		}
		fmt.Fprintf(w, "%s %s\t%s\n", marks[f.State], what, f.Says)
		if f.Advice != "" {
			fmt.Fprintf(w, "\t  -> %s\n", f.Advice)
		}
	}
	for _, name := range matrix.Providers {
		answer := "can run here"
		if !r.CanRun[name] {
			answer = "can't run here"
		}
		fmt.Fprintf(w, "%s\t%s\n", name, answer)
	}
}
