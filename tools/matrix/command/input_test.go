package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/filelock"
)

// base is a valid compatibility file but for its commit, which is in no repository.
const base = `apiVersion: compatibility.trussium.io/v1
kubernetes:
  floor: "1.25"
  versions: {default: ["1.34.4"]}
operatorReleases:
- version: "0.3.1"
  commit: "1111111111111111111111111111111111111111"
runtimeReleases:
- version: v1.27.0
  imageTag: "1.27.0"
  contractImpact: representative
  decision: validated
- version: v1.30.0
  imageTag: "1.30.0"
  contractImpact: representative
  decision: validated
upgrades:
- from: "0.3.1"
  runtime: {baseline: v1.27.0, target: v1.30.0}
  rollback: chart
  crds: apply
  values: default
`

// Mistakes are told with file, line, column and a way out, by exit code 2, before anything is
// built, started or written.
func TestBadInput(t *testing.T) {
	tests := []struct {
		name     string
		old, new string
		says     string // a regular expression
	}{
		{"unquoted version", `- version: "0.3.1"`, `- version: 0.31`, `:6:12: .*quote`},
		{"unknown key", "rollback: chart", "rolback: chart", `:20:3: .*rolback.*rollback`},
		{"unknown release", `- from: "0.3.1"`, `- from: "0.9.9"`, `:18:9: .*0\.9\.9`},
		{"unknown commit", "", "", `:7:11: commit 1111111.* is not in this repository`},
		{"unknown API version", "trussium.io/v1", "trussium.io/v7", `:1:13: .*v7`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cache := t.TempDir()
			t.Setenv("XDG_CACHE_HOME", cache)
			file := filepath.Join(t.TempDir(), "compatibility.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(base, test.old, test.new, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			var stdout, stderr bytes.Buffer
			if code := run(context.Background(), []string{"-f", file}, &stdout, &stderr); code != exitInput {
				t.Errorf("exit code %d, want %d", code, exitInput)
			}
			if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + test.says).MatchString(stderr.String()) {
				t.Errorf("it says %q, want %s%s", stderr.String(), file, test.says)
			}
			if stdout.Len() > 0 {
				t.Errorf("it printed %q", stdout.String())
			}
			if left, _ := os.ReadDir(cache); len(left) > 0 {
				t.Errorf("it wrote %v into the cache", left)
			}
		})
	}
}

func TestBadCommandLine(t *testing.T) {
	for says, args := range map[string][]string{
		`no command "frobnicate"`:                 {"frobnicate"},
		"unknown flag: --frob: see matrix --help": {"--frob"},
		`no provider "docker"`:                    {"plan", "--provider", "docker"},
		`no row "9.9.9"`:                          {"plan", "--row", "9.9.9"},
		`no cell "x"`:                             {"plan", "--cell", "x"},
		`version "1.34"`:                          {"plan", "--kubernetes", "1.34"},
		`unknown command "extra" for "matrix report": see matrix report --help`: {"report", "extra"},
		"--jobs 0": {"run", "--jobs", "0"},
		"nowhere.yaml: no such file or directory": {"validate", "-f", "nowhere.yaml"},
		"name another file with -f":               {"plan", "-f", "nowhere.yaml"},
		"has no Kubernetes 1.99.0: choose one of": {"run", "--kubernetes", "1.99.0"},
		"Kubernetes 1.98.0: choose one of":        {"cluster", "build", "--kubernetes", "1.98.0"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), args, &stdout, &stderr); code != exitInput {
			t.Errorf("matrix %v: exit code %d, want %d", args, code, exitInput)
		}
		if !strings.Contains(stderr.String(), says) {
			t.Errorf("matrix %v says %q, want something with %q", args, stderr.String(), says)
		}
	}
}

func TestOutsideACheckout(t *testing.T) {
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"plan"}, &stdout, &stderr); code != exitInput {
		t.Errorf("exit code %d, want %d", code, exitInput)
	}
	if !strings.Contains(stderr.String(), "not in a checkout") {
		t.Errorf("it says %q", stderr.String())
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"--help"}, &stdout, &stderr); code != exitGreen {
		t.Errorf("exit code %d, want %d", code, exitGreen)
	}
	if !strings.Contains(stdout.String(), "Without a command it runs the whole matrix") {
		t.Errorf("the help is %q", stdout.String())
	}
}

// A second run in the same checkout must not take the first one's clusters.
func TestOneRunAtATime(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	found, err := places()
	if err != nil {
		t.Fatal(err)
	}
	dir := matrix.RunDir(found.Repository, found.CacheDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := filelock.Try(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), []string{"run"}, &stdout, &stderr); code != exitInfrastructure {
		t.Errorf("exit code %d, want %d", code, exitInfrastructure)
	}
	if holder := fmt.Sprintf("process %d, since 2", os.Getpid()); !strings.Contains(stderr.String(), "is being run in this checkout already") || !strings.Contains(stderr.String(), holder) {
		t.Errorf("it says %q", stderr.String())
	}
}
