package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/doctor"
)

// The exit code says whether the provider can run, and the output what is missing.
func TestDoctor(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ask := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), append([]string{"doctor"}, args...), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	for _, provider := range matrix.Providers {
		code, told, _ := ask("-o", "json", "--provider", provider)
		var result struct {
			CanRun   map[string]bool
			Findings []doctor.Finding
		}
		if err := json.Unmarshal([]byte(told), &result); err != nil {
			t.Fatalf("%v in %s", err, told)
		}
		want := exitRed
		if result.CanRun[provider] {
			want = exitGreen
		}
		if code != want || len(result.Findings) < 8 || len(result.CanRun) != len(matrix.Providers) {
			t.Errorf("%s: exit code %d, want %d with %+v", provider, code, want, result)
		}
	}
	// Without Go nothing can be built.
	bin := t.TempDir()
	if err := os.Symlink(git, filepath.Join(bin, "git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	code, told, says := ask()
	if code != exitRed || !strings.Contains(told, "✗ Go") || !strings.Contains(told, "-> install Go ") || !strings.Contains(says, "can't run the provider embedded") {
		t.Errorf("without Go: exit code %d: %s%s", code, told, says)
	}
	if code, _, says := ask("-o", "xml"); code != exitInput || !strings.Contains(says, "give table, json or yaml") {
		t.Errorf("an unknown output: exit code %d: %s", code, says)
	}
	if code, _, says := ask("--provider", "docker"); code != exitInput || !strings.Contains(says, `no provider "docker"`) {
		t.Errorf("an unknown provider: exit code %d: %s", code, says)
	}
}

// Where artifacts come from must be said without contradiction, before anything is started.
func TestBadSources(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cut := filepath.Join(t.TempDir(), "cut.tar")
	if err := os.WriteFile(cut, bytes.Repeat([]byte("x"), 700), 0o644); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"name the archive to write":                                  {"bundle"},
		"its folder does not exist":                                  {"bundle", "-o", "no/such/folder/bundle.tar"},
		"leave --mirror and --published out":                         {"run", "--bundle", cut, "--published"},
		"has what the provider embedded needs, and nothing for kind": {"run", "--bundle", cut, "--provider", "kind"},
		"is damaged, or none: copy it again":                         {"run", "--bundle", cut},
		"open the bundle":                                            {"run", "--bundle", cut + ".missing"},
		"write HOST=HOST":                                            {"run", "--mirror", "ghcr.io"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != exitInput || !strings.Contains(stderr.String(), says) {
			t.Errorf("matrix %v: exit code %d: %s%s", args, code, stdout.String(), stderr.String())
		}
	}
}
