//go:build unix

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// Machine is what is looked at.
type Machine struct {
	// Repository is the checkout, File its compatibility file.
	Repository string
	File       *compat.File
	// CacheDir is the matrix's cache.
	CacheDir string
	// GoVersion is what go.mod asks for, as in 1.26.0.
	GoVersion string
	// Embedded and Kind are the names of these providers. Preflights are what the providers say of the machine, by name.
	Embedded, Kind string
	Preflights     map[string]func(context.Context) error
	// Root is the folder of /proc, /sys and /etc. Default: /.
	Root string
}

// Look asks the machine. It changes nothing.
func (m Machine) Look(ctx context.Context) []Finding {
	found, err := goVersion(ctx, m.Repository)
	findings := []Finding{judgeGo(found, m.GoVersion, err), judgeHistory(m.history(ctx))}
	available, limit, err := m.memory()
	contents := m.cache()
	findings = append(findings, judgeMemory(available, limit, err))
	for _, disk := range []struct{ what, dir string }{{"disk for the cache", m.CacheDir}, {"disk for temporary files", os.TempDir()}} {
		free, err := room(disk.dir)
		findings = append(findings, judgeDisk(disk.what, disk.dir, free, disk.dir != m.CacheDir || len(contents.controls) > 0, err))
	}
	findings = append(findings, judgeCache(contents))
	findings = append(findings, judgeUser(os.Geteuid() == 0, m.subordinate(), onPath("newuidmap") && onPath("newgidmap"), m.Embedded))
	unified, mounted := m.exists("sys/fs/cgroup/cgroup.controllers"), m.exists("sys/fs/cgroup/memory")
	findings = append(findings, judgeGroups(unified, mounted, m.Kind))
	instances, instancesErr := m.number("proc/sys/fs/inotify/max_user_instances")
	watches, watchesErr := m.number("proc/sys/fs/inotify/max_user_watches")
	findings = append(findings, judgeInotify(int(instances), int(watches), errors.Join(instancesErr, watchesErr), m.Kind))
	for _, provider := range []string{m.Embedded, m.Kind} {
		if preflight := m.Preflights[provider]; preflight != nil {
			findings = append(findings, judgePreflight(provider, preflight(ctx)))
		}
	}
	return findings
}

func goVersion(ctx context.Context, dir string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = dir
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", gobuild.ErrNoGo
	}
	return strings.TrimSpace(string(out)), err
}

func (m Machine) history(ctx context.Context) history {
	repository := git.Repository{Dir: m.Repository}
	var h history
	if h.shallow, h.err = repository.Shallow(ctx); h.err != nil {
		return h
	}
	commits, err := repository.History(ctx, "HEAD")
	if h.err = err; err != nil {
		return h
	}
	h.commits = len(commits)
	for _, release := range m.File.OperatorReleases {
		found, err := repository.HasCommit(ctx, release.Commit)
		if err != nil {
			h.err = err
			return h
		}
		if !found {
			h.missing = append(h.missing, release.Version)
		}
	}
	return h
}

// noLimit is the limit of a control group that has none.
const noLimit = math.MaxUint64

// memory is what is available, and what the control group has left of its limit, in bytes.
func (m Machine) memory() (available, limit uint64, err error) {
	content, err := os.ReadFile(m.path("proc/meminfo"))
	if err != nil {
		return 0, 0, fmt.Errorf("the free memory can't be read: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		var kibibytes uint64
		if _, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kibibytes); err == nil {
			available = kibibytes << 10
		}
	}
	if available == 0 {
		return 0, 0, errors.New("the free memory can't be read: /proc/meminfo has no line MemAvailable")
	}
	most, err := m.number("sys/fs/cgroup/memory.max")
	if err != nil {
		return available, noLimit, nil // it is "max", or not there
	}
	used, err := m.number("sys/fs/cgroup/memory.current")
	if err != nil {
		return 0, 0, fmt.Errorf("the free memory can't be read: %w", err)
	}
	// Files that were only read are counted, and go when the memory is wanted.
	used -= min(used, m.inactiveFiles())
	return available, most - min(most, used), nil
}

// inactiveFiles is how much of the control group's memory holds files that nobody uses, in bytes.
func (m Machine) inactiveFiles() uint64 {
	content, err := os.ReadFile(m.path("sys/fs/cgroup/memory.stat"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		var bytes uint64
		if _, err := fmt.Sscanf(line, "inactive_file %d", &bytes); err == nil {
			return bytes
		}
	}
	return 0
}

// Cells is how many cells the free memory is enough for. The error says that it can't be told.
func (m Machine) Cells() (int, error) {
	available, limit, err := m.memory()
	if err != nil {
		return 0, err
	}
	return int(min(available, limit) / cellMemory), nil
}

// room is the free space for this user where dir is or will be.
func room(dir string) (uint64, error) {
	for {
		var stat unix.Statfs_t
		err := unix.Statfs(dir, &stat)
		if err == nil {
			return uint64(stat.Bavail) * uint64(stat.Bsize), nil
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, fs.ErrNotExist) || parent == dir {
			return 0, fmt.Errorf("the room in %s can't be told: %w", dir, err)
		}
		dir = parent
	}
}

// cacheContents are what the cache holds.
type cacheContents struct {
	dir   string
	bytes uint64
	// controls are the Kubernetes versions of the clusters.
	controls                  []string
	programs, artifacts, runs int
	err                       error
}

const controlPrefix = "controlplane-"

func (m Machine) cache() cacheContents {
	c := cacheContents{dir: m.CacheDir}
	device := deviceOf(m.CacheDir)
	err := filepath.WalkDir(m.CacheDir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == m.CacheDir && !errors.Is(err, fs.ErrNotExist):
			return err
		case err != nil:
			return nil // not there yet, deleted meanwhile, or nobody's business
		case entry.IsDir() && deviceOf(path) != device:
			return fs.SkipDir // what a node that is being built has mounted
		}
		name := entry.Name()
		if info, err := entry.Info(); err == nil && entry.Type().IsRegular() {
			c.bytes += uint64(info.Size())
		}
		switch filepath.Dir(path) {
		case filepath.Join(m.CacheDir, "oci"):
			if !strings.HasPrefix(name, ".") {
				c.artifacts++
			}
		case filepath.Join(m.CacheDir, "runs"):
			c.runs++
		case filepath.Join(m.CacheDir, "bin"):
			kubernetes, isControl := strings.CutPrefix(name, controlPrefix)
			switch {
			case entry.IsDir() || strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "."):
			case isControl:
				version, _, _ := strings.Cut(kubernetes, "-")
				if !slices.Contains(c.controls, version) {
					c.controls = append(c.controls, version)
				}
			default:
				c.programs++
			}
		}
		return nil
	})
	if err != nil {
		c.err = fmt.Errorf("the cache can't be read: %w", err)
	}
	return c
}

// deviceOf is the file system that a path is on; 0 if it can't be told.
func deviceOf(path string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return 0
	}
	return uint64(stat.Dev)
}

// subordinate tells whether the user has ranges of subordinate ids.
func (m Machine) subordinate() bool {
	for _, file := range []string{"etc/subuid", "etc/subgid"} {
		content, err := os.ReadFile(m.path(file))
		if err != nil {
			return false
		}
		found := false
		for line := range strings.Lines(string(content)) {
			owner, _, _ := strings.Cut(line, ":")
			found = found || owner == os.Getenv("USER") || owner == strconv.Itoa(os.Geteuid())
		}
		if !found {
			return false
		}
	}
	return true
}

func onPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func (m Machine) path(name string) string {
	root := m.Root
	if root == "" {
		root = "/"
	}
	return filepath.Join(root, filepath.FromSlash(name))
}

func (m Machine) exists(name string) bool {
	_, err := os.Stat(m.path(name))
	return err == nil
}

// number reads a file with a number.
func (m Machine) number(name string) (uint64, error) {
	content, err := os.ReadFile(m.path(name))
	if err != nil {
		return 0, fmt.Errorf("/%s can't be read: %w", name, err)
	}
	value, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("/%s can't be read: %w", name, err)
	}
	return value, nil
}
