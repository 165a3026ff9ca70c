package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// smallCheckout is a checkout with one row and the files, and an empty cache. It returns its folder.
func smallCheckout(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := gittest.Init(t)
	gittest.Write(t, dir, map[string]string{
		"go.mod":                              "module github.com/trussiumhq/trussium-operator\n",
		"charts/trussium-operator/Chart.yaml": "apiVersion: v2\nname: trussium-operator\nversion: 9.0.0\n",
	})
	commit := gittest.Commit(t, dir, "release")
	gittest.Write(t, dir, map[string]string{"compatibility.yaml": strings.Replace(base, strings.Repeat("1", 40), commit, 1)})
	gittest.Write(t, dir, files)
	t.Chdir(dir)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	return dir
}

// Evidence that can't be read is told before anything is started, and stays for whoever looks at it.
// That of a cell which is run is written anew, so it is not in the way.
func TestBrokenEvidence(t *testing.T) {
	const broken = "{\n  \"apiVersion\": \"evidence.trussium.io/v1\",\n  \"kind\": \"Ce"
	for _, command := range []string{"run", "report", "verify"} {
		dir := smallCheckout(t, map[string]string{"evidence/other.json": broken})
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), []string{command}, &stdout, &stderr); code != exitInput {
			t.Errorf("matrix %s: exit code %d, want %d", command, code, exitInput)
		}
		if want := regexp.MustCompile(`(?m)evidence/other\.json:3:\d+: not an evidence document: `); !want.MatchString(stderr.String()) {
			t.Errorf("matrix %s says %q, want %s", command, stderr.String(), want)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "evidence", "other.json")); err != nil || string(content) != broken {
			t.Errorf("matrix %s left %q, %v", command, content, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "cache")); !os.IsNotExist(err) {
			t.Errorf("matrix %s wrote into the cache: %v", command, err)
		}
	}
}
