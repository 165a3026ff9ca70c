package git

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Commit is a commit of the history.
type Commit struct {
	// Hash is its full hash.
	Hash string
	// Subject is the first line of its message.
	Subject string
}

// CommitTime returns when the commit was made, to the second.
func (r Repository) CommitTime(ctx context.Context, commit string) (time.Time, error) {
	doing := "look up the time of commit " + commit
	out, err := r.output(ctx, doing, "show", "--no-patch", "--format=%cI", commit+"^{commit}")
	if err != nil {
		return time.Time{}, err
	}
	made, err := time.Parse(time.RFC3339, strings.TrimSpace(string(out)))
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", doing, err)
	}
	return made, nil
}

// Log lists the commits that can be reached from to but not from since, the newest first. Merges are left out.
func (r Repository) Log(ctx context.Context, since, to string) ([]Commit, error) {
	out, err := r.output(ctx, "list the commits from "+since+" to "+to, "log", "--no-merges", "--format=%H %s", since+".."+to)
	if err != nil {
		return nil, err
	}
	var commits []Commit
	for line := range strings.Lines(string(out)) {
		hash, subject, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		commits = append(commits, Commit{Hash: hash, Subject: subject})
	}
	return commits, nil
}

// History is the commits that can be reached from commit, and commit itself, by their full hashes.
func (r Repository) History(ctx context.Context, commit string) (map[string]bool, error) {
	out, err := r.output(ctx, "list the history of commit "+commit, "rev-list", commit)
	if err != nil {
		return nil, err
	}
	history := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		history[strings.TrimSpace(line)] = true
	}
	return history, nil
}

// Changed lists the files that differ between two commits, of those at or below the paths, which are relative to
// the root.
func (r Repository) Changed(ctx context.Context, from, to string, paths ...string) ([]string, error) {
	args := []string{"diff", "--name-only", "--no-renames", "-z", from, to, "--"}
	for _, path := range paths {
		args = append(args, ":(top,literal)"+path)
	}
	out, err := r.output(ctx, "compare commit "+from+" with "+to, args...)
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(c rune) bool { return c == 0 }), nil
}
