//go:build kind

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
)

// A container that the command leaves does not come back with the next engine.
func TestNothingComesBack(t *testing.T) {
	if name, err := kind.Engine(t.Context()); err == nil {
		t.Skipf("%s answers: a second engine would get in its way", name)
	}
	found, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(root, "pause"), "./tools/nodeimage/pause")
	build.Dir = found.Repository
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build a program: %v: %s", err, out)
	}
	found.CacheDir = t.TempDir() // so that the engine has a store of its own
	withEngine := func(use func(docker func(stdin string, args ...string) string)) {
		t.Helper()
		e, err := start(t.Context(), found, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := e.stop(); err != nil {
				t.Error(err)
			}
		}()
		use(func(stdin string, args ...string) string {
			t.Helper()
			cmd := exec.Command("docker", append([]string{"--host", e.host()}, args...)...)
			if stdin != "" {
				archive, err := os.Open(stdin)
				if err != nil {
					t.Fatal(err)
				}
				defer archive.Close()
				cmd.Stdin = archive
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
			}
			return strings.TrimSpace(string(out))
		})
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.Command("tar", "--directory", root, "--create", "--file", archive, "pause").CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	withEngine(func(docker func(string, ...string) string) {
		docker(archive, "import", "-", "left:1")
		docker("", "network", "create", "left")
		docker("", "run", "--detach", "--restart=always", "--network=left", "--name=left", "left:1", "/pause")
		if got := docker("", "ps", "--format={{.Names}}"); got != "left" {
			t.Fatalf("%q runs, want left", got)
		}
	})
	withEngine(func(docker func(string, ...string) string) {
		if got := docker("", "ps", "--all", "--format={{.Names}}"); got != "" {
			t.Errorf("%s has come back", got)
		}
		if got := docker("", "network", "ls", "--filter=type=custom", "--format={{.Name}}"); got != "" {
			t.Errorf("the network %s is still there", got)
		}
	})
}
