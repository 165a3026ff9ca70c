package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// stopTimeout bounds how long a go command may go on after it was told to end.
const stopTimeout = 5 * time.Second

// program is a program of the checkout for the platform of the images. Its inputs are the
// packages that it is made of, so that an edit elsewhere in the checkout does not rebuild it.
func (b *Builder) program(ctx context.Context, pkg string) (gobuild.Program, error) {
	const ownPackages = `{{if not .Standard}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}`
	cmd := goCommand(ctx, b.Repository, "list", "-deps", "-f", ownPackages, pkg)
	cmd.Env = append(cmd.Env, "GOOS=linux", "GOARCH="+b.arch())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := subprocess.Output(cmd)
	if err != nil {
		return gobuild.Program{}, goError(ctx, err, fmt.Sprintf("list the packages of %s in %s", pkg, b.Repository), stderr.String())
	}
	inputs := []string{"go.mod", "go.sum"}
	for dir := range strings.Lines(string(out)) {
		if dir = strings.TrimSpace(dir); dir == "" {
			continue
		}
		input, err := filepath.Rel(b.Repository, dir)
		if err != nil || !filepath.IsLocal(input) {
			return gobuild.Program{}, buildFailed(fmt.Errorf("package folder %s is outside of the checkout %s", dir, b.Repository))
		}
		inputs = append(inputs, input)
	}
	return gobuild.Program{Dir: b.Repository, Package: pkg, GOOS: "linux", GOARCH: b.arch(), Inputs: inputs}, nil
}

// operatorProgram builds the operator of the checkout with the version that it calls itself.
func (b *Builder) operatorProgram(ctx context.Context, version string) (string, error) {
	program, err := b.program(ctx, b.operator().Image.Package)
	if err != nil {
		return "", err
	}
	program.LDFlags = b.versionFlag(version)
	return b.cached(ctx, program)
}

// simulatorProgram builds the program of the checkout that stands in for the runtime.
func (b *Builder) simulatorProgram(ctx context.Context, pkg string) (string, error) {
	program, err := b.program(ctx, pkg)
	if err != nil {
		return "", err
	}
	return b.cached(ctx, program)
}

// cached builds a program of the checkout unless the cache has it.
func (b *Builder) cached(ctx context.Context, program gobuild.Program) (string, error) {
	path, err := program.Cached(ctx, b.CacheDir, b.Progress)
	if err != nil {
		return "", buildError(ctx, err)
	}
	return path, nil
}

// goVersion is the version of the go command outside of any module: the version that builds
// a commit, unless its go.mod selects another one.
func goVersion(ctx context.Context) (string, error) {
	var stderr bytes.Buffer
	cmd := goCommand(ctx, os.TempDir(), "env", "GOVERSION")
	cmd.Stderr = &stderr
	out, err := subprocess.Output(cmd)
	if err != nil {
		return "", goError(ctx, err, "ask the go command for its version", stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	cmd.WaitDelay = stopTimeout
	return cmd
}

func goError(ctx context.Context, err error, doing, stderr string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return infrastructure(fmt.Errorf("%s: %w", doing, gobuild.ErrNoGo))
	}
	return buildError(ctx, fmt.Errorf("%s: %w\n%s", doing, err, strings.TrimSpace(stderr)))
}

// buildError marks a failed build, but not one that was cancelled.
func buildError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case errors.Is(err, gobuild.ErrNoGo):
		return infrastructure(err)
	default:
		return buildFailed(err)
	}
}
