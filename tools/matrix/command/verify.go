package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/claim"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/report"
)

func newVerify(s *settings, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that generated documents are up to date and that evidence backs every claim",
		Long: `Fails with exit code 1 if a generated document differs from what compatibility.yaml and the evidence say, if a
combination is said to be tested that no cell proves, if no cell of an upgrade row is tested, or if the evidence is of
a commit that is not in the history of this one. Runs nothing, and writes nothing.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := s.options()
			if err != nil {
				return err
			}
			return verify(cmd.Context(), options, stdout, cmd.ErrOrStderr())
		},
	}
}

// unverifiedError says how many things do not hold, which were printed before.
type unverifiedError int

func (e unverifiedError) Error() string {
	return fmt.Sprintf("%d things do not hold, see above", int(e))
}

func (e unverifiedError) Is(target error) bool { return target == errRed }

func verify(ctx context.Context, options matrix.Options, stdout, stderr io.Writer) error {
	in, err := matrix.ReportInput(ctx, options)
	if err != nil {
		return err
	}
	problems, err := staleDocuments(options.Repository, in)
	if err != nil {
		return err
	}
	cells, combinations := claim.Cells(in.Planned, in.Documents), claim.Combinations(in.File, in.Documents)
	problems = append(problems, claim.Problems(in.File, cells, combinations)...)
	foreign, err := foreignEvidence(ctx, git.Repository{Dir: options.Repository}, provenIn(cells, combinations))
	if err != nil {
		return err
	}
	problems = append(problems, foreign...)
	if len(problems) == 0 {
		fmt.Fprintln(stdout, "every generated document is up to date, and evidence backs every claim")
		return nil
	}
	for _, problem := range problems {
		fmt.Fprintln(stderr, problem)
	}
	annotateProblems(stderr, problems)
	return unverifiedError(len(problems))
}

func staleDocuments(root string, in report.Input) ([]compat.Problem, error) {
	documents, err := report.Documents(root, in)
	if err != nil {
		return nil, usageError{err}
	}
	stale, err := report.Stale(root, documents)
	if err != nil {
		return nil, err
	}
	var problems []compat.Problem
	for _, path := range stale {
		problems = append(problems, compat.Problem{
			File: relative(filepath.Join(root, filepath.FromSlash(path))), Line: 1, Column: 1,
			Message: "the document is not what the compatibility file and the evidence say", Advice: "run `go run ./tools/matrix report`",
		})
	}
	return problems, nil
}

// provenIn are the documents that claims rest on, each once.
func provenIn(cells []claim.Cell, combinations []claim.Combination) []*evidence.Cell {
	var proofs []*evidence.Cell
	seen := map[string]bool{}
	add := func(document *evidence.Cell) {
		if !seen[document.ID] {
			seen[document.ID] = true
			proofs = append(proofs, document)
		}
	}
	for _, c := range cells {
		if c.State == claim.Tested {
			add(c.Evidence)
		}
	}
	for _, c := range combinations {
		for _, document := range c.Proofs {
			add(document)
		}
	}
	return proofs
}

// foreignEvidence finds evidence of commits that nobody can get from this repository.
func foreignEvidence(ctx context.Context, repository git.Repository, documents []*evidence.Cell) ([]compat.Problem, error) {
	shallow, err := repository.Shallow(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var problems []compat.Problem
	for _, document := range documents {
		commit := document.Tool.Commit
		if _, asked := known[commit]; !asked {
			if known[commit], err = inHistory(ctx, repository, commit); err != nil {
				return nil, err
			}
		}
		if known[commit] {
			continue
		}
		advice := fmt.Sprintf("run `%s` and commit the evidence", document.Reproduce)
		if shallow {
			advice = "the clone is shallow: run `git fetch --unshallow`"
		}
		problems = append(problems, compat.Problem{
			File: relative(filepath.Join(repository.Dir, matrix.EvidenceDir, document.ID+".json")), Line: 1, Column: 1,
			Message: fmt.Sprintf("the evidence is of commit %q, which is not in the history of HEAD", commit), Advice: advice,
		})
	}
	return problems, nil
}

// commitHash is a full one: a document may say anything.
var commitHash = regexp.MustCompile(`^[0-9a-f]{40}$`)

func inHistory(ctx context.Context, repository git.Repository, commit string) (bool, error) {
	if !commitHash.MatchString(commit) {
		return false, nil
	}
	found, err := repository.HasCommit(ctx, commit)
	if err != nil || !found {
		return false, err
	}
	return repository.IsAncestor(ctx, commit, "HEAD")
}
