package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// switches is compiled into the package: it says which mutation is on.
//
//go:embed switches.go.txt
var switches []byte

// limit is what one run of the tests may take. A test that hangs has noticed, too.
const limit = 30 * time.Second

var errBuild = errors.New("the tests do not compile")

// testRun runs the tests of one package, again and again.
type testRun struct {
	folder    string
	arguments []string
	scratch   string
	binary    string
}

// newTestRun builds the tests with all mutations that can be switched.
func newTestRun(ctx context.Context, folder string, files []*file, mutations []mutation, arguments []string) (*testRun, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	r := &testRun{folder: folder, arguments: arguments, scratch: scratch, binary: filepath.Join(scratch, "switched.test")}
	sources := map[string][]byte{}
	for _, f := range files {
		sources[filepath.Base(f.name)] = edited(f.content, f.edits)
	}
	name := regexp.MustCompile(`(?m)^package \w+$`).Find(files[0].content)
	sources["mutate_switches.go"] = slices.Concat(name, []byte("\n"), switches)
	if output, err := r.build(ctx, r.binary, sources); err != nil {
		r.close()
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	return r, nil
}

func (r *testRun) close() { _ = os.RemoveAll(r.scratch) }

// with runs the tests with one mutation. An error says that they noticed it.
func (r *testRun) with(ctx context.Context, m mutation) ([]byte, error) {
	binary := r.binary
	if m.alone != nil {
		binary = filepath.Join(r.scratch, "alone.test")
		source := edited(m.file.content, []edit{*m.alone})
		if output, err := r.build(ctx, binary, map[string][]byte{filepath.Base(m.file.name): source}); err != nil {
			return output, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, binary, slices.Concat([]string{"-test.failfast"}, r.arguments)...)
	command.Dir = r.folder
	command.Env = append(os.Environ(), "MUTATION="+strconv.Itoa(m.id))
	return command.CombinedOutput()
}

// build builds the tests with other sources in the place of the package's.
func (r *testRun) build(ctx context.Context, binary string, sources map[string][]byte) ([]byte, error) {
	replace := map[string]string{}
	for name, content := range sources {
		file := filepath.Join(r.scratch, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return nil, err
		}
		replace[filepath.Join(r.folder, name)] = file
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(r.scratch, "overlay.json")
	if err := os.WriteFile(overlay, content, 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, ".")
	command.Dir = r.folder
	output, err := command.CombinedOutput()
	if err != nil {
		return output, fmt.Errorf("%w: %w", errBuild, err)
	}
	return output, nil
}
