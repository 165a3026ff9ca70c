package generated

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

// newRepository makes a repository with a commit in which all generated files are in sync, changed by the files. It
// returns the commit.
func newRepository(t *testing.T, changed map[string]string) (git.Repository, string) {
	t.Helper()
	dir := gittest.Init(t)
	files := map[string]string{
		"go.mod":        "module example.com/root\n\ngo 1.26.0\n",
		"doc.go":        "package root\n\n//go:generate cp source.txt copy.txt\n",
		"source.txt":    "text\n",
		"copy.txt":      "text\n",
		"elsewhere.txt": "not generated\n",
	}
	gittest.Write(t, dir, files)
	gittest.Write(t, dir, changed)
	return git.Repository{Dir: dir}, gittest.Commit(t, dir, "change")
}

func TestOutOfSync(t *testing.T) {
	for _, test := range []struct {
		name    string
		changed map[string]string
		want    []string
	}{
		{"in sync", nil, nil},
		{"a source", map[string]string{"source.txt": "other\n"}, []string{"copy.txt"}},
		{"a copy", map[string]string{"copy.txt": "other\n"}, []string{"copy.txt"}},
		{"a generator", map[string]string{"doc.go": "package root\n\n//go:generate cp source.txt another.txt\n//go:generate rm copy.txt\n"}, []string{"another.txt", "copy.txt"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			repository, commit := newRepository(t, test.changed)
			// What is not committed is not looked at, and stays as it is.
			gittest.Write(t, repository.Dir, map[string]string{"copy.txt": "work in progress\n"})
			got, err := OutOfSync(t.Context(), repository, commit)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if content, err := os.ReadFile(filepath.Join(repository.Dir, "copy.txt")); err != nil || string(content) != "work in progress\n" {
				t.Errorf("the checkout was touched: got %q, %v", content, err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	repository, commit := newRepository(t, map[string]string{"doc.go": "package root\n\n//go:generate cp missing.txt copy.txt\n"})
	if _, err := OutOfSync(t.Context(), repository, commit); err == nil || !strings.Contains(err.Error(), "doc.go:3") {
		t.Errorf("a generator that fails: got %v", err)
	}
	if _, err := OutOfSync(t.Context(), repository, strings.Repeat("1", 40)); err == nil {
		t.Error("a commit that is not there: got no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OutOfSync(ctx, repository, commit); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}
