package static

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/subprocess"
)

// stopTimeout bounds how long a program may go on after it was killed.
const stopTimeout = 5 * time.Second

// Tree is the source tree that a release was made from. It is only read. What was learned of it
// is kept, so the edges of a release should share its Tree.
type Tree struct {
	dir   string
	tools Tools

	mu     sync.Mutex
	needed []markedRights
	told   map[string]facts
}

// Tools are what a Tree is read with.
type Tools struct {
	// Repository is the checkout that pins controller-gen.
	Repository string
	// CacheDir is the matrix's cache, for the programs that are built.
	CacheDir string
	// Progress receives one line of text for each step that takes long. It may be nil.
	Progress func(string)
}

// NewTree is the tree whose root is dir.
func NewTree(dir string, tools Tools) *Tree {
	return &Tree{dir: dir, tools: tools, told: map[string]facts{}}
}

// ControllerGen is the controller-gen that the repository pins.
func ControllerGen(repository string) gobuild.Program {
	return gobuild.Program{
		Dir:     filepath.Join(repository, "tools", "generators"),
		Package: "sigs.k8s.io/controller-tools/cmd/controller-gen",
		Inputs:  []string{"go.mod", "go.sum"},
	}
}

// errNoTree is for releases whose source nobody knows.
var errNoTree = fmt.Errorf("%w: the release has no source tree", check.ErrNotApplicable)

// markedRights are the rights that a package's markers ask for.
type markedRights struct {
	// dir is the package's folder, relative to the tree and with slashes.
	dir   string
	rules []rbacv1.PolicyRule
}

// rightsMarker is a comment that controller-gen makes a rule from.
var rightsMarker = regexp.MustCompile(`(?m)^\s*//\s*\+kubebuilder:rbac:`)

// rights are what the markers of the tree's packages ask for, as controller-gen reads them.
func (t *Tree) rights(ctx context.Context) ([]markedRights, error) {
	if t == nil {
		return nil, errNoTree
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.needed != nil {
		return t.needed, nil
	}
	dirs, err := t.marked()
	if err != nil {
		return nil, fmt.Errorf("look for markers in %s: %w", t.dir, err)
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%w: no package of %s has a +kubebuilder:rbac marker", check.ErrNotApplicable, t.dir)
	}
	program, err := ControllerGen(t.tools.Repository).Cached(ctx, t.tools.CacheDir, t.tools.Progress)
	if err != nil {
		return nil, err
	}
	needed := make([]markedRights, len(dirs))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, dir := range dirs {
		group.Go(func() error {
			out, err := t.run(groupCtx, program, nil, "rbac:roleName=manager", "paths=./"+dir, "output:stdout")
			if err != nil {
				return err
			}
			needed[i], err = readRights(dir, out)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	t.needed = needed
	return needed, nil
}

// marked are the folders with a marker, apart from those of other modules and of tests.
func (t *Tree) marked() ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(t.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != t.dir && (err == nil || name == "testdata" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil || !rightsMarker.Match(source) {
			return err
		}
		dir, err := filepath.Rel(t.dir, filepath.Dir(path))
		if dir = filepath.ToSlash(dir); err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return err
	})
	return dirs, err
}

// Digest identifies all that the checks of this package read of the tree.
func (t *Tree) Digest() (string, error) {
	dirs, err := t.marked()
	if err != nil {
		return "", fmt.Errorf("look for markers in %s: %w", t.dir, err)
	}
	content := map[string]string{}
	for _, input := range append(dirs, introspectInputs...) {
		err := filepath.WalkDir(filepath.Join(t.dir, input), func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // another release, or another operator
			}
			if err != nil || !entry.Type().IsRegular() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := os.ReadFile(path)
			content[strings.TrimPrefix(path, t.dir)] = string(file)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hash the source in %s: %w", t.dir, err)
		}
	}
	return contentkey.Of(content), nil
}

func readRights(dir string, manifest []byte) (markedRights, error) {
	rights := markedRights{dir: dir}
	found, err := documents(manifest)
	if err != nil {
		return rights, fmt.Errorf("read what controller-gen made of %s: %w", dir, err)
	}
	for _, document := range found {
		role, err := as[rbacv1.ClusterRole](document)
		if err != nil {
			return rights, fmt.Errorf("read what controller-gen made of %s: %w", dir, err)
		}
		rights.rules = append(rights.rules, role.Rules...)
	}
	return rights, nil
}

// facts are what the code of a release tells of itself, in the format of introspect.
type facts struct {
	Workloads []workload `json:"workloads"`
	Cached    []struct {
		Group    string `json:"group"`
		Resource string `json:"resource"`
	} `json:"cached"`
}

// workload is what the operator asks for to run a runtime.
type workload struct {
	Selector any    `json:"selector,omitempty"`
	Template any    `json:"template,omitempty"`
	Error    string `json:"error,omitempty"`
}

//go:embed introspect/main.go
var introspectSource []byte

const introspectPackage = "matrix/check/static/introspect"

// introspectModule is the module whose packages introspect calls.
const introspectModule = "github.com/trussiumhq/trussium-operator"

// introspectInputs are what introspect is built from, relative to the tree.
var introspectInputs = []string{"go.mod", "go.sum", "api", "charts", "operator"}

// introspected are the packages, relative to the tree, that introspect calls.
var introspected = []string{"api/v1alpha1", "operator/controller", "operator/desired"}

// introspect asks the code of the tree what it makes of the runtimes. The code is run, and not
// only what its tests say of it is read.
func (t *Tree) introspect(ctx context.Context, runtimes []map[string]any) (facts, error) {
	if t == nil {
		return facts{}, errNoTree
	}
	input, err := json.Marshal(runtimes)
	if err != nil {
		return facts{}, fmt.Errorf("write the runtimes: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := contentkey.Of(map[string]string{"runtimes": string(input)})
	if told, ok := t.told[key]; ok {
		return told, nil
	}
	if module, err := os.ReadFile(filepath.Join(t.dir, "go.mod")); err != nil || !strings.HasPrefix(string(module), "module "+introspectModule+"\n") {
		return facts{}, fmt.Errorf("%w: only the code of the matrix's own repository can be asked what it makes", check.ErrNotApplicable)
	}
	for _, pkg := range introspected {
		if _, err := os.Stat(filepath.Join(t.dir, pkg)); errors.Is(err, fs.ErrNotExist) {
			return facts{}, fmt.Errorf("%w: %s has no package %s", check.ErrNotApplicable, t.dir, pkg)
		}
	}
	overlay, err := t.overlay()
	if err != nil {
		return facts{}, err
	}
	program, err := gobuild.Program{
		Dir: t.dir, Package: "./" + introspectPackage, Overlay: overlay,
		Inputs: introspectInputs,
	}.Cached(ctx, t.tools.CacheDir, t.tools.Progress)
	if err != nil {
		return facts{}, err
	}
	out, err := t.run(ctx, program, input)
	if err != nil {
		return facts{}, err
	}
	var told facts
	if err := json.Unmarshal(out, &told); err != nil {
		return told, fmt.Errorf("read what the code of %s tells: %w", t.dir, err)
	}
	if len(told.Workloads) != len(runtimes) {
		return told, fmt.Errorf("the code of %s tells of %d runtimes, asked for %d", t.dir, len(told.Workloads), len(runtimes))
	}
	t.told[key] = told
	return told, nil
}

// overlay lays introspect into the tree for the go command, without touching the tree. Its path is
// part of the program's cache key, so it names the content and not the tree.
func (t *Tree) overlay() (string, error) {
	key := contentkey.Of(map[string]string{"source": string(introspectSource)})
	dir := filepath.Join(t.tools.CacheDir, "introspect", key[:16])
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	// The go command takes paths in it as relative to the folder that it runs in.
	content, err := json.Marshal(map[string]map[string]string{"Replace": {introspectPackage + "/main.go": source}})
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for path, content := range map[string][]byte{source: introspectSource, overlay: content} {
		if err == nil {
			err = replace(path, content)
		}
	}
	if err != nil {
		return "", fmt.Errorf("keep the source of introspect in the cache: %w", err)
	}
	return overlay, nil
}

// replace writes a file at once, so that another process never sees half of it.
func replace(path string, content []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".writing-")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if _, err := temp.Write(content); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// run runs a program in the tree and returns what it prints.
func (t *Tree) run(ctx context.Context, program string, input []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = t.dir
	// The flags of gobuild, so that what controller-gen has the go command compile is compiled already.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off")
	cmd.Stdin = bytes.NewReader(input)
	cmd.WaitDelay = stopTimeout
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := subprocess.Run(cmd); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("run %s: %w", filepath.Base(program), ctx.Err())
		}
		return nil, fmt.Errorf("run %s %s in %s: %w\n%s", filepath.Base(program), strings.Join(args, " "), t.dir, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.Bytes(), nil
}
