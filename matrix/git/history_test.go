package git_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

func TestCommitTime(t *testing.T) {
	t.Setenv("GIT_COMMITTER_DATE", "2026-03-04T05:06:07+01:00")
	t.Setenv("GIT_AUTHOR_DATE", "2020-01-01T00:00:00Z")
	repository, hashes := newRepository(t, map[string]string{"a": "1"})
	made, err := repository.CommitTime(t.Context(), hashes[0])
	if want := time.Date(2026, 3, 4, 4, 6, 7, 0, time.UTC); err != nil || !made.Equal(want) {
		t.Errorf("got %s, %v, want %s", made, err, want)
	}
	if _, err := repository.CommitTime(t.Context(), strings.Repeat("1", 40)); err == nil || !strings.Contains(err.Error(), strings.Repeat("1", 40)) {
		t.Errorf("a commit that is not there: got %v", err)
	}
}

func TestLog(t *testing.T) {
	repository, hashes := newRepository(t, map[string]string{"a": "1"}, map[string]string{"a": "2"})
	gittest.Run(t, repository.Dir, "checkout", "-q", "-b", "side", hashes[0])
	gittest.Run(t, repository.Dir, "commit", "-q", "--allow-empty", "-m", "Work  on the side\n\nA body.")
	side := gittest.Run(t, repository.Dir, "rev-parse", "HEAD")
	gittest.Run(t, repository.Dir, "checkout", "-q", "main")
	gittest.Run(t, repository.Dir, "merge", "-q", "--no-ff", "-m", "merge", "side")
	commits, err := repository.Log(t.Context(), hashes[0], "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(commits, func(a, b git.Commit) int { return strings.Compare(b.Subject, a.Subject) })
	if want := []git.Commit{{hashes[1], "change"}, {side, "Work  on the side"}}; !slices.Equal(commits, want) {
		t.Errorf("got %v, want %v", commits, want)
	}
	if commits, err := repository.Log(t.Context(), "HEAD", "HEAD"); err != nil || len(commits) != 0 {
		t.Errorf("between a commit and itself: got %v, %v", commits, err)
	}
	if _, err := repository.Log(t.Context(), strings.Repeat("1", 40), "HEAD"); err == nil {
		t.Error("a commit that is not there: got no error")
	}
}

func TestChanged(t *testing.T) {
	repository, hashes := newRepository(t,
		map[string]string{"a/one": "1", "b/two": "1", "a/gone and é": "1", "a*": "1"},
		map[string]string{"a/one": "2", "b/two": "2", "ab": "1"})
	gittest.Run(t, repository.Dir, "rm", "-q", "a/gone and é")
	gittest.Run(t, repository.Dir, "commit", "-q", "-m", "remove")
	for _, test := range []struct {
		paths, want []string
	}{
		{nil, []string{"a/gone and é", "a/one", "ab", "b/two"}},
		{[]string{"a"}, []string{"a/gone and é", "a/one"}},
		{[]string{"a*"}, nil},
		{[]string{"b/two", "missing"}, []string{"b/two"}},
	} {
		changed, err := repository.Changed(t.Context(), hashes[0], "HEAD", test.paths...)
		if err != nil || !slices.Equal(changed, test.want) {
			t.Errorf("below %q: got %q, %v, want %q", test.paths, changed, err, test.want)
		}
	}
	if _, err := repository.Changed(t.Context(), strings.Repeat("1", 40), "HEAD"); err == nil {
		t.Error("a commit that is not there: got no error")
	}
}
