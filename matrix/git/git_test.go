package git_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// newRepository makes a repository with one commit per entry, each writing its files.
func newRepository(t *testing.T, commits ...map[string]string) (git.Repository, []string) {
	t.Helper()
	dir := gittest.Init(t)
	var hashes []string
	for _, files := range commits {
		gittest.Write(t, dir, files)
		hashes = append(hashes, gittest.Commit(t, dir, "change"))
	}
	return git.Repository{Dir: dir}, hashes
}

func TestCommits(t *testing.T) {
	ctx := t.Context()
	repository, hashes := newRepository(t, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	gittest.Run(t, repository.Dir, "checkout", "-q", "-b", "side", hashes[0])
	gittest.Run(t, repository.Dir, "commit", "-q", "--allow-empty", "-m", "side")
	side := gittest.Run(t, repository.Dir, "rev-parse", "HEAD")
	gittest.Run(t, repository.Dir, "checkout", "-q", "main")

	head, err := repository.Head(ctx)
	if err != nil || head != hashes[1] {
		t.Errorf("Head: got %q, %v, want %q", head, err, hashes[1])
	}
	for _, test := range []struct {
		name               string
		commit             string
		exists, isAncestor bool
	}{
		{"an older commit", hashes[0], true, true},
		{"the head", hashes[1], true, true},
		{"a commit of another branch", side, true, false},
		{"no commit", strings.Repeat("1", 40), false, false},
		{"a tree", gittest.Run(t, repository.Dir, "rev-parse", "HEAD^{tree}"), false, false},
	} {
		exists, err := repository.HasCommit(ctx, test.commit)
		if err != nil || exists != test.exists {
			t.Errorf("%s: HasCommit: got %v, %v, want %v", test.name, exists, err, test.exists)
		}
		if !exists {
			continue
		}
		isAncestor, err := repository.IsAncestor(ctx, test.commit, "HEAD")
		if err != nil || isAncestor != test.isAncestor {
			t.Errorf("%s: IsAncestor: got %v, %v, want %v", test.name, isAncestor, err, test.isAncestor)
		}
		history, err := repository.History(ctx, "HEAD")
		if err != nil || history[test.commit] != test.isAncestor {
			t.Errorf("%s: History: got %v, %v, want it to hold the commit: %v", test.name, history, err, test.isAncestor)
		}
	}
}

func TestShallow(t *testing.T) {
	full, hashes := newRepository(t, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	clone := git.Repository{Dir: t.TempDir()}
	gittest.Run(t, clone.Dir, "clone", "-q", "--depth=1", "file://"+full.Dir, ".")
	for _, test := range []struct {
		name       string
		repository git.Repository
		shallow    bool
	}{{"full", full, false}, {"clone", clone, true}} {
		shallow, err := test.repository.Shallow(t.Context())
		if err != nil || shallow != test.shallow {
			t.Errorf("%s: got %v, %v, want %v", test.name, shallow, err, test.shallow)
		}
	}
	if exists, err := clone.HasCommit(t.Context(), hashes[0]); err != nil || exists {
		t.Errorf("the cut off commit: got %v, %v, want false", exists, err)
	}
}

func TestChanges(t *testing.T) {
	repository, _ := newRepository(t, map[string]string{"source/a": "1", "REPORT.md": "1", "evidence/1.json": "1", ".gitignore": "*.log\n"})
	steps := []struct {
		path, content string
		want          []string
	}{
		{"REPORT.md", "2", nil},
		{"evidence/2.json", "2", nil},
		{"run.log", "ignored", nil},
		{"source/new file", "2", []string{`?? "source/new file"`}},
		{"source/a", "2", []string{" M source/a", `?? "source/new file"`}},
	}
	for _, step := range steps {
		gittest.Write(t, repository.Dir, map[string]string{step.path: step.content})
		changes, err := repository.Changes(t.Context(), "REPORT.md", "evidence")
		if err != nil || !slices.Equal(changes, step.want) {
			t.Errorf("after writing %s: got %q, %v, want %q", step.path, changes, err, step.want)
		}
	}
}

func TestExtract(t *testing.T) {
	repository, hashes := newRepository(t, map[string]string{"a/b/c.txt": "old"}, map[string]string{"a/b/c.txt": "new"})
	if err := os.Symlink("c.txt", filepath.Join(repository.Dir, "a/b/link")); err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, repository.Dir, map[string]string{"script": "#!/bin/sh\n"})
	if err := os.Chmod(filepath.Join(repository.Dir, "script"), 0o755); err != nil {
		t.Fatal(err)
	}
	gittest.Run(t, repository.Dir, "add", "-A")
	gittest.Run(t, repository.Dir, "commit", "-q", "-m", "link")
	hashes = append(hashes, gittest.Run(t, repository.Dir, "rev-parse", "HEAD"))

	for i, want := range []string{"old", "new", "new"} {
		dir := t.TempDir()
		if err := repository.Extract(t.Context(), hashes[i], dir); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(dir, "a/b/c.txt"))
		if err != nil || string(content) != want {
			t.Errorf("commit %d: got %q, %v, want %q", i, content, err, want)
		}
	}
	dir := t.TempDir()
	if err := repository.Extract(t.Context(), hashes[2], dir); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(filepath.Join(dir, "a/b/link")); err != nil || target != "c.txt" {
		t.Errorf("link: got %q, %v", target, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "script")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("script: got %v, %v, want it executable", info, err)
	}
	if err := repository.Extract(t.Context(), strings.Repeat("1", 40), t.TempDir()); err == nil || !strings.Contains(err.Error(), strings.Repeat("1", 40)) {
		t.Errorf("a missing commit: got %v, want an error that names it", err)
	}
}

func TestErrors(t *testing.T) {
	repository, _ := newRepository(t, map[string]string{"a": "1"})
	if _, err := (git.Repository{Dir: t.TempDir()}).Head(t.Context()); !errors.Is(err, git.ErrNoRepository) {
		t.Errorf("outside a repository: got %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := repository.Head(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	// What a git hook sets must not lead to another repository.
	t.Setenv("GIT_DIR", t.TempDir())
	if _, err := repository.Head(t.Context()); err != nil {
		t.Errorf("with GIT_DIR set: got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := repository.Head(t.Context()); !errors.Is(err, git.ErrNoGit) {
		t.Errorf("without git: got %v", err)
	}
}
