package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// copyOfCheckout is a clone of this checkout, with its uncommitted changes, and the tool in it.
type copyOfCheckout struct {
	dir string
	// run is the folder, in the user's cache, for the state of its runs.
	run string
	// temp is the folder for temporary files that the tool is given.
	temp string
	tool string
	// cell is the id of the cell that is run.
	cell string
}

// newCopy makes a copy. What its runs leave in the cache goes with the test.
func newCopy(t *testing.T) *copyOfCheckout {
	t.Helper()
	places, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	c := &copyOfCheckout{dir: filepath.Join(t.TempDir(), "checkout"), temp: t.TempDir()}
	gittest.Run(t, places.Repository, "clone", "-q", "--no-local", ".", c.dir)
	for _, name := range listed(t, places.Repository, "--deleted") {
		if err := os.Remove(filepath.Join(c.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range listed(t, places.Repository, "--modified", "--others", "--exclude-standard") {
		copyFile(t, filepath.Join(places.Repository, name), filepath.Join(c.dir, name))
	}
	c.run = matrix.RunDir(c.dir, places.CacheDir)
	t.Cleanup(func() {
		if err := os.RemoveAll(c.run); err != nil {
			t.Error(err)
		}
	})
	c.tool = filepath.Join(t.TempDir(), "matrix")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", c.tool, "./tools/matrix")
	build.Dir = c.dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tool: %v\n%s", err, out)
	}
	c.cell = c.chooseCell(t)
	return c
}

// listed are the files that git ls-files names with the options.
func listed(t *testing.T, dir string, options ...string) []string {
	t.Helper()
	var names []string
	for name := range strings.SplitSeq(gittest.Run(t, dir, append([]string{"ls-files", "-z"}, options...)...), "\x00") {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return // deleted
	}
	if err == nil && info.Mode().IsRegular() {
		var content []byte
		if content, err = os.ReadFile(from); err == nil {
			if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
				err = os.WriteFile(to, content, info.Mode().Perm())
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// chooseCell is the first cell of the plan that rolls the chart back, so that it has all steps.
func (c *copyOfCheckout) chooseCell(t *testing.T) string {
	t.Helper()
	cmd := c.command(t.Context(), "plan", "-o", "json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("plan: %v\n%s", err, stderr.String())
	}
	var planned struct {
		Cells []struct {
			ID       string   `json:"id"`
			Rollback string   `json:"rollback"`
			Through  []string `json:"through"`
			Run      bool     `json:"run"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(out, &planned); err != nil {
		t.Fatalf("read the plan: %v\n%s", err, out)
	}
	for _, cell := range planned.Cells {
		if cell.Run && cell.Rollback == "chart" && len(cell.Through) == 0 {
			return cell.ID
		}
	}
	t.Fatalf("no cell of the plan rolls the chart back: %s", out)
	return ""
}

// command is the tool with the arguments, as it is started in the copy.
func (c *copyOfCheckout) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.tool, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+c.temp)
	return cmd
}

// start starts a run of the cell.
func (c *copyOfCheckout) start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: c.command(t.Context(), append([]string{"run", "--cell", c.cell}, args...)...), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.output, &r.output
	if err := subprocess.Start(r.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.ended)
	}()
	return r
}

// running is a run of the tool. Its other fields may be read when ended is closed.
type running struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	output bytes.Buffer
	err    error
}

// begun is the step that the cell began last; empty if it began none.
func (c *copyOfCheckout) begun() string {
	file, err := os.Open(filepath.Join(c.run, "cells", c.cell, "state.json"))
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 100) // it comes first, and the rest is long
	n, _ := file.Read(head)
	rest, found := strings.CutPrefix(string(head[:n]), `{"begun":"`)
	if !found {
		return ""
	}
	step, _, _ := strings.Cut(rest, `"`)
	return step
}

// growing is the evidence of the cell while it grows; nil if there is none.
func (c *copyOfCheckout) growing(t *testing.T) *evidence.Cell {
	t.Helper()
	return load(t, filepath.Join(c.run, "evidence"), c.cell)
}

// published is the evidence in the copy.
func (c *copyOfCheckout) published(t *testing.T) *evidence.Cell {
	t.Helper()
	return load(t, filepath.Join(c.dir, matrix.EvidenceDir), c.cell)
}

func load(t *testing.T, dir, id string) *evidence.Cell {
	t.Helper()
	cell, err := (evidence.Store{Dir: dir}).Load(id)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Errorf("%v", fmt.Errorf("a killed run left broken evidence: %w", err))
		return nil
	}
	return cell
}
