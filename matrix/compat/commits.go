package compat

import (
	"context"
	"fmt"
)

// Git answers what CheckCommits asks about the repository that holds the compatibility file.
type Git interface {
	// HasCommit tells whether the repository holds the commit.
	HasCommit(ctx context.Context, commit string) (bool, error)
	// History is the commits that can be reached from commit, and commit itself, by their hashes.
	History(ctx context.Context, commit string) (map[string]bool, error)
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
	// One question for all releases: a matrix may have hundreds.
	history, err := git.History(ctx, "HEAD")
	if err != nil {
		return err
	}
	var problems []Problem
	for _, release := range f.OperatorReleases {
		if history[release.Commit] {
			continue
		}
		message, advice, err := lostCommit(ctx, git, release, shallow)
		if err != nil {
			return err
		}
		problems = append(problems, Problem{
			File:    f.Path,
			Line:    release.CommitPosition.Line,
			Column:  release.CommitPosition.Column,
			Message: message,
			Advice:  advice,
		})
	}
	return asError(problems)
}

// lostCommit says why the commit of the release is not in the history.
func lostCommit(ctx context.Context, git Git, release OperatorRelease, shallow bool) (message, advice string, err error) {
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
	return fmt.Sprintf("commit %s of release %s is not an ancestor of HEAD", release.Commit, release.Version), advice, nil
}
