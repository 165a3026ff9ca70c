// Package otheroperator lays the operator in matrix/testdata/otheroperator, which is not ours, into a git repository: tests
// let the matrix judge it.
package otheroperator

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

const (
	folder = "matrix/testdata/otheroperator"
	// earlier holds the files that were different in the earlier release.
	earlier = "_earlier"
	// noCommit stands in the compatibility file for the commit of the earlier release.
	noCommit = "0000000000000000000000000000000000000000"
)

// Repository makes a repository with the operator's two releases, 0.1.0 and, checked out, 0.2.0. It ends with the test.
func Repository(t testing.TB) (dir string) {
	t.Helper()
	places, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(places.Repository, filepath.FromSlash(folder))
	dir = gittest.Init(t)
	files := read(t, source)
	for name := range files {
		if strings.HasPrefix(name, earlier+"/") {
			delete(files, name)
		}
	}
	gittest.Write(t, dir, files)
	gittest.Write(t, dir, read(t, filepath.Join(source, earlier)))
	release := gittest.Commit(t, dir, "Release 0.1.0")
	files["compatibility.yaml"] = strings.Replace(files["compatibility.yaml"], noCommit, release, 1)
	gittest.Write(t, dir, files)
	gittest.Commit(t, dir, "Show notices")
	return dir
}

// Replace replaces a text, which must be there, in a file of the repository.
func Replace(t testing.TB, dir, file, old, with string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		t.Fatalf("%s has no %q", file, old)
	}
	gittest.Write(t, dir, map[string]string{file: strings.Replace(string(content), old, with, 1)})
}

// read are the files below dir by their paths, with slashes.
func read(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}
