// Package generated finds files of a commit that are not as they would be generated now.
package generated

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/git"
)

// stopTimeout bounds how long a generator may go on after it was told to end.
const stopTimeout = 5 * time.Second

// OutOfSync lists the files that go generate would change, add or remove. The generators run in a copy of the commit;
// the checkout is not touched.
func OutOfSync(ctx context.Context, repository git.Repository, commit string) ([]string, error) {
	dir, err := os.MkdirTemp("", "generated-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for commit %s: %w", commit, err)
	}
	defer os.RemoveAll(dir)
	if err := repository.Extract(ctx, commit, dir); err != nil {
		return nil, err
	}
	before, err := digests(dir)
	if err != nil {
		return nil, err
	}
	if err := generate(ctx, dir); err != nil {
		return nil, err
	}
	after, err := digests(dir)
	if err != nil {
		return nil, err
	}
	return differing(before, after), nil
}

func generate(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "generate", "./...")
	cmd.Dir = dir
	// With the flags of the matrix's own builds nothing is compiled twice.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("go generate: %w", ctx.Err())
	default:
		return fmt.Errorf("go generate: %w\n%s", err, strings.TrimSpace(output.String()))
	}
}

// digests are those of all regular files below dir, by path.
func digests(dir string) (map[string][sha256.Size]byte, error) {
	found := map[string][sha256.Size]byte{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		found[filepath.ToSlash(name)] = sha256.Sum256(content)
		return err
	})
	return found, err
}

// differing are the names whose value is another one, or is in one of the two alone.
func differing(before, after map[string][sha256.Size]byte) []string {
	names := slices.Sorted(maps.Keys(before))
	for name := range after {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(names, func(name string) bool {
		old, was := before[name]
		now, is := after[name]
		return was && is && old == now
	})
}
