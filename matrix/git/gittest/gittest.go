// Package gittest is what tests make repositories with.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Run runs a git command in dir, as an author of its own, and returns what it prints, trimmed.
func Run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Init makes an empty repository, which ends with the test.
func Init(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	Run(t, dir, "init", "-q", "-b", "main")
	return dir
}

// Write writes the files, by their paths relative to dir.
func Write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Commit commits what has changed in dir, which must be something, and returns the commit.
func Commit(t testing.TB, dir, message string) string {
	t.Helper()
	Run(t, dir, "add", "-A")
	Run(t, dir, "commit", "-q", "-m", message)
	return Run(t, dir, "rev-parse", "HEAD")
}
