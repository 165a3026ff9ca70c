package gobuild

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/filelock"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// progressInterval is how often a running build tells how far it is.
const progressInterval = 5 * time.Second

// compilerGOGC lets compilers collect garbage less often, which saves 7 % of the time of a large
// build (docs/performance.md).
const compilerGOGC = "400"

// fewProcessors is the most processors for which one compiler of one thread each saves time, and a
// tenth of the work (docs/performance.md). With more of them, all wait for the largest package.
const fewProcessors = 2

// Program is a Go main package and the way it is built.
type Program struct {
	// Name is the file name of the result. Default: the base name of the package or of Dir.
	Name string
	// Dir is the root of the module that holds the package.
	Dir string
	// Package is the package to build, relative to Dir or an import path. Default: ".".
	Package string
	// ModFile is another go.mod to build with, relative to Dir (go build -modfile).
	ModFile string
	// Overlay is a file that puts other files in the place of some, relative to Dir (go build -overlay).
	Overlay string
	// LDFlags are linker flags in addition to "-s -w".
	LDFlags string
	// GOOS and GOARCH are the platform. Default: this machine's.
	GOOS, GOARCH string
	// Inputs are the files and folders, relative to Dir, whose content is the cache key
	// of Cached. Default: the whole of Dir.
	Inputs []string
	// Background lets the build give way to whatever else this machine does.
	Background bool
}

// Cached returns the path of the built program in cacheDir/bin, building it first if the
// cache has no build of the same inputs, flags and Go version. Processes that want the
// same program wait for one build. progress may be nil.
func (p Program) Cached(ctx context.Context, cacheDir string, progress func(string)) (string, error) {
	path, err := p.cachePath(ctx, cacheDir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", fmt.Errorf("create the cache for built programs: %w", err)
	}
	if built(path) {
		return path, nil
	}
	unlock, err := filelock.Wait(ctx, path+".lock", func() { report(progress, "waiting for another process that builds "+p.name()) })
	if err != nil {
		return "", err
	}
	defer unlock()
	if built(path) {
		return path, nil
	}
	removeAbandoned(path)
	if err := p.Build(ctx, path, progress); err != nil {
		return "", err
	}
	return path, nil
}

// IsCached tells whether Cached would build nothing.
func (p Program) IsCached(ctx context.Context, cacheDir string) (bool, error) {
	path, err := p.cachePath(ctx, cacheDir)
	return err == nil && built(path), err
}

func (p Program) cachePath(ctx context.Context, cacheDir string) (string, error) {
	key, err := p.Key(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Join(cacheDir, "bin", p.name()+"-"+key[:16]), nil
}

func built(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Build writes the program to out, which is replaced only when the build succeeds.
// Nothing is cached beyond what the go command caches itself. progress may be nil.
func (p Program) Build(ctx context.Context, out string, progress func(string)) error {
	temp, err := os.MkdirTemp(filepath.Dir(out), temporaryPrefix(out))
	if err != nil {
		return fmt.Errorf("build %s: %w", p.name(), err)
	}
	defer os.RemoveAll(temp)
	// The program keeps its own name while it is linked: the linker's build ID must not depend on the temporary folder.
	file := filepath.Join(temp, p.name())
	if err := compile(ctx, []Program{p}, temp, []string{"build", "-o", file}, progress); err != nil {
		return err
	}
	if err := os.Rename(file, out); err != nil {
		return fmt.Errorf("build %s: %w", p.name(), err)
	}
	return nil
}

// Compile fills the go command's cache with all packages of several programs, which differ in their
// packages alone: two builds that start side by side with an empty cache both compile what the
// programs have in common. Temporary files are in temp. progress may be nil.
func Compile(ctx context.Context, programs []Program, temp string, progress func(string)) error {
	// Unlike build, list compiles programs without linking them.
	return compile(ctx, programs, temp, []string{"list", "-export", "-deps", "-f", "{{with .Error}}{{.}}{{end}}"}, progress)
}

// compile runs a go command that compiles programs, with its temporary files in temp: one that is
// killed leaves them behind.
func compile(ctx context.Context, programs []Program, temp string, args []string, progress func(string)) error {
	p, name := programs[0], names(programs)
	total := countPackages(ctx, programs, progress)
	args = append(append(args, "-v"), p.flags()...)
	env := []string{"GOTMPDIR=" + temp}
	if processors := runtime.GOMAXPROCS(0); processors <= fewProcessors {
		args = append(args, fmt.Sprintf("-p=%d", processors))
		env = append(env, "GOMAXPROCS=1")
	}
	cmd := p.command(ctx, append(args, packages(programs)...)...)
	cmd.Env = append(cmd.Env, env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	if err := subprocess.Start(cmd); err != nil {
		return fmt.Errorf("build %s: start the go command: %w", name, err)
	}
	if p.Background {
		if err := subprocess.YieldCPU(cmd); err != nil && progress != nil {
			progress(fmt.Sprintf("%s is built at the usual priority: %v", name, err))
		}
	}
	errorText := follow(stderr, name, total, progress)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", name, ctx.Err())
		}
		return fmt.Errorf("build %s in %s: %w\n%s", strings.Join(packages(programs), " "), p.Dir, err, errorText)
	}
	return nil
}

func names(programs []Program) string {
	var names []string
	for _, program := range programs {
		names = append(names, program.name())
	}
	return strings.Join(names, ", ")
}

func packages(programs []Program) []string {
	var packages []string
	for _, program := range programs {
		packages = append(packages, program.pkg())
	}
	return packages
}

// temporaryPrefix starts the names of the folders, beside it, that a program is built in.
func temporaryPrefix(out string) string {
	return ".build-" + filepath.Base(out) + "-"
}

// removeAbandoned deletes what killed builds of a program left, as far as it can. The caller
// holds the lock of the program, so nobody else builds it.
func removeAbandoned(out string) {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(out), temporaryPrefix(out)+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// countPackages counts what the programs consist of, downloading modules as needed; 0 if the go
// command can't tell (the build itself then says why).
func countPackages(ctx context.Context, programs []Program, progress func(string)) int {
	report(progress, names(programs)+": resolving modules")
	args := append([]string{"list", "-deps"}, programs[0].sourceFlags()...)
	out, err := subprocess.Output(programs[0].command(ctx, append(args, packages(programs)...)...))
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// follow reads the package names that `go build -v` prints as it compiles, reports the
// progress, and returns the tail of everything that is not a package name.
func follow(stderr io.Reader, name string, total int, progress func(string)) string {
	start := time.Now()
	last := start
	compiled := 0
	var other []string
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !packageName(line) {
			other = append(other, line)
			if len(other) > 40 {
				other = other[1:]
			}
			continue
		}
		compiled++
		if time.Since(last) >= progressInterval {
			last = time.Now()
			report(progress, fmt.Sprintf("%s: compiled %d of at most %d packages in %s", name, compiled, total, time.Since(start).Round(time.Second)))
		}
	}
	return strings.Join(other, "\n")
}

// packageName tells an import path from a compiler message: the go command prints the
// former bare, one a line.
func packageName(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t:#")
}

func (p Program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+p.goos(), "GOARCH="+p.goarch())
	if os.Getenv("GOGC") == "" {
		cmd.Env = append(cmd.Env, "GOGC="+compilerGOGC)
	}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (p Program) flags() []string {
	flags := []string{"-trimpath", "-buildvcs=false", "-ldflags=" + strings.TrimSpace("-s -w -buildid= "+p.LDFlags)}
	return append(flags, p.sourceFlags()...)
}

// sourceFlags choose the source.
func (p Program) sourceFlags() []string {
	var flags []string
	if p.ModFile != "" {
		flags = append(flags, "-modfile="+p.ModFile)
	}
	if p.Overlay != "" {
		flags = append(flags, "-overlay="+p.Overlay)
	}
	return flags
}

func (p Program) name() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.pkg() == ".":
		return filepath.Base(p.Dir)
	default:
		return filepath.Base(p.pkg())
	}
}

func (p Program) pkg() string {
	if p.Package == "" {
		return "."
	}
	return p.Package
}

func (p Program) goos() string {
	if p.GOOS == "" {
		return runtime.GOOS
	}
	return p.GOOS
}

func (p Program) goarch() string {
	if p.GOARCH == "" {
		return runtime.GOARCH
	}
	return p.GOARCH
}

func report(progress func(string), text string) {
	if progress != nil {
		progress(text)
	}
}

// ErrNoGo says that there is no go command to build with.
var ErrNoGo = errors.New("the go command is not on the PATH: install Go (https://go.dev/dl)")

// goVersion is what the go command of this machine calls itself in dir: a toolchain line
// of a module's go.mod can select another one than on the PATH.
func (p Program) goVersion(ctx context.Context) (string, error) {
	out, err := subprocess.Output(p.command(ctx, "env", "GOVERSION"))
	if errors.Is(err, exec.ErrNotFound) {
		return "", ErrNoGo
	}
	if err != nil {
		return "", fmt.Errorf("ask the go command for its version in %s: %w", p.Dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
