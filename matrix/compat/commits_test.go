package compat_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// emptyCommit adds a commit to the current branch and returns its hash.
func emptyCommit(t *testing.T, dir string) string {
	t.Helper()
	gittest.Run(t, dir, "commit", "-q", "--allow-empty", "-m", "change")
	return gittest.Run(t, dir, "rev-parse", "HEAD")
}

// fileNaming loads the minimal file with another commit.
func fileNaming(t *testing.T, commit string) *compat.File {
	t.Helper()
	data, err := os.ReadFile("testdata/valid/minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Replace(string(data), strings.Repeat("a", 40), `"`+commit+`"`, 1)
	file, err := compat.Parse("compatibility.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheckCommits(t *testing.T) {
	full := gittest.Init(t)
	old := emptyCommit(t, full)
	gittest.Run(t, full, "checkout", "-q", "-b", "side")
	side := emptyCommit(t, full)
	gittest.Run(t, full, "checkout", "-q", "main")
	gittest.Run(t, full, "commit", "-q", "--allow-empty", "-m", "head")
	head := gittest.Run(t, full, "rev-parse", "HEAD")
	shallow := t.TempDir()
	gittest.Run(t, shallow, "clone", "-q", "--depth=1", "file://"+full, ".")
	absent := strings.Repeat("1", 40)

	for _, test := range []struct {
		name, dir, commit string
		want              string
	}{
		{"an older commit", full, old, ""},
		{"the head", full, head, ""},
		{"a commit of another branch", full, side,
			"compatibility.yaml:4:13: commit " + side + " of release 0.3.1 is not an ancestor of HEAD; name the commit that the release was cut from"},
		{"no commit", full, absent,
			"compatibility.yaml:4:13: commit " + absent + " of release 0.3.1 is not in this repository; name the commit that the release was cut from"},
		{"a commit that a shallow clone lacks", shallow, old,
			"compatibility.yaml:4:13: commit " + old + " of release 0.3.1 is not in this repository; the clone is shallow: run `git fetch --unshallow`"},
		{"the head of a shallow clone", shallow, head, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := fileNaming(t, test.commit).CheckCommits(t.Context(), git.Repository{Dir: test.dir})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckCommitsWithoutGit checks that a fault of git is not taken for a fault of the file.
func TestCheckCommitsWithoutGit(t *testing.T) {
	file := fileNaming(t, strings.Repeat("1", 40))
	err := file.CheckCommits(t.Context(), git.Repository{Dir: t.TempDir()})
	var invalid *compat.Error
	if !errors.Is(err, git.ErrNoRepository) || errors.As(err, &invalid) {
		t.Errorf("outside a repository: got %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := file.CheckCommits(t.Context(), git.Repository{Dir: t.TempDir()}); !errors.Is(err, git.ErrNoGit) {
		t.Errorf("without git: got %v", err)
	}
}
