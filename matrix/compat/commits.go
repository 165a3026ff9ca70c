package compat

import (
	"context"
	"fmt"
)

// Git answers what CheckCommits asks about the repository that holds the compatibility file.
type Git interface {
	// HasCommit tells whether the repository holds the commit.
	HasCommit(ctx context.Context, commit string) (bool, error)
	// IsAncestor tells whether commit is of, or can be reached from it. Both are in the repository.
	IsAncestor(ctx context.Context, commit, of string) (bool, error)
	// Shallow tells whether the repository was cloned without its whole history.
	Shallow(ctx context.Context) (bool, error)
}

// CheckCommits checks that the commit of each operator release exists in the repository and is
// an ancestor of HEAD: a release can only be rebuilt from a commit that every clone has.
// If one does not, the error is an *Error; other errors are those of git itself.
func (f *File) CheckCommits(ctx context.Context, git Git) error {
	shallow, err := git.Shallow(ctx)
	if err != nil {
		return err
	}
	var problems []Problem
	for _, release := range f.OperatorReleases {
		message, advice, err := checkCommit(ctx, git, release, shallow)
		if err != nil {
			return err
		}
		if message != "" {
			problems = append(problems, Problem{
				File:    f.Path,
				Line:    release.CommitPosition.Line,
				Column:  release.CommitPosition.Column,
				Message: message,
				Advice:  advice,
			})
		}
	}
	return asError(problems)
}

// checkCommit returns an empty message if the commit of the release is as it should be.
func checkCommit(ctx context.Context, git Git, release OperatorRelease, shallow bool) (message, advice string, err error) {
	exists, err := git.HasCommit(ctx, release.Commit)
	if err != nil {
		return "", "", err
	}
	advice = "name the commit that the release was cut from"
	if shallow {
		advice = "the clone is shallow: run `git fetch --unshallow`"
	}
	if !exists {
		return fmt.Sprintf("commit %s of release %s is not in this repository", release.Commit, release.Version), advice, nil
	}
	ancestor, err := git.IsAncestor(ctx, release.Commit, "HEAD")
	if err != nil {
		return "", "", err
	}
	if !ancestor {
		return fmt.Sprintf("commit %s of release %s is not an ancestor of HEAD", release.Commit, release.Version), advice, nil
	}
	return "", "", nil
}
