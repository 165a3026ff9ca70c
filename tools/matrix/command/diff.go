package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git"
)

func newDiff(stdout io.Writer) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff BEFORE AFTER",
		Short: "Tell how two sets of evidence differ",
		Long: `Tells how two sets of evidence differ: verdicts, steps, artifacts, and what clients and pods noticed. Each set is a
folder with evidence documents, or a git revision, whose evidence/ is taken. Exits with 1 if the second proves less.`,
		Example: `  matrix diff HEAD~1 evidence
  matrix diff v1.0.4 v1.0.5 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(2)(cmd, args); err != nil {
				return usageError{fmt.Errorf("give two folders or git revisions: %w", err)}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output); err != nil {
				return err
			}
			var sets [2][]*evidence.Cell
			for i, name := range args {
				var err error
				if sets[i], err = evidenceSet(cmd.Context(), name); err != nil {
					return err
				}
			}
			differences := evidence.Compare(sets[0], sets[1])
			if differences == nil {
				differences = []evidence.Difference{} // a list for programs
			}
			if err := printResult(stdout, output, differences, func(w io.Writer) { diffTable(w, differences) }); err != nil {
				return err
			}
			for _, d := range differences {
				if d.Worse {
					return lessProvenError{before: args[0], after: args[1]}
				}
			}
			return nil
		},
	}
	addOutputFlag(cmd, &output)
	return cmd
}

// lessProvenError says that a set of evidence proves less than another; what was printed before.
type lessProvenError struct{ before, after string }

func (e lessProvenError) Error() string {
	return fmt.Sprintf("%s proves less than %s", e.after, e.before)
}

func (e lessProvenError) Is(target error) bool { return target == errRed }

// evidenceSet reads the evidence of a folder, or that of a git revision.
func evidenceSet(ctx context.Context, name string) ([]*evidence.Cell, error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return storedEvidence(name, name)
	case err == nil:
		return nil, usageError{fmt.Errorf("%s is a file: give a folder with evidence, or a git revision", name)}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("read the evidence %s: %w", name, err)
	}
	found, err := places()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "matrix-diff-*")
	if err != nil {
		return nil, fmt.Errorf("read the evidence of %s: %w", name, err)
	}
	defer os.RemoveAll(dir)
	if err := (git.Repository{Dir: found.Repository}).Extract(ctx, name+":"+matrix.EvidenceDir, dir); err != nil {
		return nil, usageError{fmt.Errorf("%s is no folder, and no git revision with %s/: %w", name, matrix.EvidenceDir, err)}
	}
	return storedEvidence(dir, name)
}

func storedEvidence(dir, name string) ([]*evidence.Cell, error) {
	cells, err := (evidence.Store{Dir: dir}).All()
	if err != nil {
		return nil, usageError{err}
	}
	if len(cells) == 0 {
		return nil, usageError{fmt.Errorf("%s holds no evidence", name)}
	}
	return cells, nil
}

func diffTable(w io.Writer, differences []evidence.Difference) {
	if len(differences) == 0 {
		fmt.Fprintln(w, "the two sets say the same")
		return
	}
	fmt.Fprintln(w, "CELL\tWHAT\tBEFORE\tAFTER\t")
	for _, d := range differences {
		for _, change := range d.Changes {
			mark := ""
			if change.Worse {
				mark = "worse"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", d.ID, change.What, orDash(change.Before), orDash(change.After), mark)
		}
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
