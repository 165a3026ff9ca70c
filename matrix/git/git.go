// Package git asks the git command line about a checkout: which commits it has, whether it is
// clean, and what the tree of a commit holds.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrNoGit says that there is no git command.
var ErrNoGit = errors.New("the git command is not on the PATH: install git")

// ErrNoRepository says that a folder is not inside a git repository.
var ErrNoRepository = errors.New("not a git repository: work in a clone, not in an unpacked archive")

// stopTimeout bounds how long a git command may go on after it was told to end.
const stopTimeout = 5 * time.Second

// Repository is a checkout.
type Repository struct {
	// Dir is its root.
	Dir string
}

// Head returns the full hash of the commit that is checked out.
func (r Repository) Head(ctx context.Context) (string, error) {
	out, err := r.output(ctx, "find the checked out commit", "rev-parse", "--verify", "HEAD^{commit}")
	return strings.TrimSpace(string(out)), err
}

// HasCommit tells whether the repository holds the commit.
func (r Repository) HasCommit(ctx context.Context, commit string) (bool, error) {
	_, err := r.output(ctx, "look up commit "+commit, "rev-parse", "--quiet", "--verify", commit+"^{commit}")
	if status, ok := exitStatus(err); ok && status == 1 {
		return false, nil
	}
	return err == nil, err
}

// IsAncestor tells whether commit is of, or can be reached from it.
func (r Repository) IsAncestor(ctx context.Context, commit, of string) (bool, error) {
	_, err := r.output(ctx, "compare commit "+commit+" with "+of, "merge-base", "--is-ancestor", commit, of)
	if status, ok := exitStatus(err); ok && status == 1 {
		return false, nil
	}
	return err == nil, err
}

// Shallow tells whether the repository was cloned without its whole history.
func (r Repository) Shallow(ctx context.Context) (bool, error) {
	out, err := r.output(ctx, "look for a shallow clone", "rev-parse", "--is-shallow-repository")
	return strings.TrimSpace(string(out)) == "true", err
}

// Changes lists the files of the working tree that differ from HEAD, new ones included, in
// the short format of git status. Paths to ignore are relative to the root.
func (r Repository) Changes(ctx context.Context, ignore ...string) ([]string, error) {
	args := []string{"status", "--porcelain", "--untracked-files=all", "--", "."}
	for _, path := range ignore {
		args = append(args, ":(exclude,top)"+path)
	}
	out, err := r.output(ctx, "look for changes in the checkout", args...)
	if err != nil {
		return nil, err
	}
	var changes []string
	for line := range strings.Lines(string(out)) {
		changes = append(changes, strings.TrimRight(line, "\n"))
	}
	return changes, nil
}

// output runs git and returns what it prints.
func (r Repository) output(ctx context.Context, doing string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := r.run(ctx, doing, &out, args...)
	return out.Bytes(), err
}

func (r Repository) run(ctx context.Context, doing string, stdout io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.Dir
	cmd.Env = environment()
	cmd.Stdout = stdout
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: %w", doing, ErrNoGit)
	case strings.Contains(stderr.String(), "not a git repository"):
		return fmt.Errorf("%s in %s: %w", doing, r.Dir, ErrNoRepository)
	default:
		return fmt.Errorf("%s in %s: %w: %s", doing, r.Dir, err, strings.TrimSpace(stderr.String()))
	}
}

// environment is that of this process without what a git hook sets: the repository is always
// the one in Dir.
func environment() []string {
	env := []string{}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY":
		default:
			env = append(env, entry)
		}
	}
	// Messages are matched, a reading command takes no lock, and nothing is fetched or asked for.
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
}

// exitStatus returns the exit status of a command that ran and failed.
func exitStatus(err error) (int, bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, false
	}
	return exit.ExitCode(), true
}
