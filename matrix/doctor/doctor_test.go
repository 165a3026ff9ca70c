package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

var errTest = errors.New("it is broken")

// Every finding says what is wrong, and what is not as it should be comes with advice.
func TestJudges(t *testing.T) {
	for name, test := range map[string]struct {
		finding Finding
		state   State
		says    string
	}{
		"no go":              {judgeGo("", "1.26.0", gobuild.ErrNoGo), Missing, "install Go 1.26.0"},
		"broken go":          {judgeGo("", "1.26.0", errTest), Missing, "it is broken"},
		"old go":             {judgeGo("go1.25.9", "1.26.0", nil), Missing, "go1.25.9, go.mod asks for 1.26.0"},
		"newer go":           {judgeGo("go1.26.3", "1.26.0", nil), OK, "go1.26.3"},
		"no git":             {judgeHistory(history{err: git.ErrNoGit}), Missing, "install git"},
		"no repository":      {judgeHistory(history{err: git.ErrNoRepository}), Missing, "work in a clone"},
		"broken repository":  {judgeHistory(history{err: errTest}), Missing, "git status"},
		"shallow, too short": {judgeHistory(history{shallow: true, commits: 1, missing: []string{"0.3.1"}}), Missing, "the commits of 0.3.1 are not in this clone of 1 commits; run `git fetch --unshallow`"},
		"whole, and short":   {judgeHistory(history{commits: 9, missing: []string{"0.3.1"}}), Missing, "run `git fetch`, or correct"},
		"shallow":            {judgeHistory(history{shallow: true, commits: 50}), Note, "--unshallow"},
		"whole":              {judgeHistory(history{commits: 300}), OK, "300 commits"},
		"much memory":        {judgeMemory(16<<30, noLimit, nil), OK, "enough for 8 cells"},
		"limited memory":     {judgeMemory(16<<30, 5<<30, nil), OK, "16.0 GiB available, of which the control group lets 5.0 GiB be used: enough for 2 cells"},
		"little memory":      {judgeMemory(1536<<20, noLimit, nil), Note, "--jobs 1"},
		"memory used up":     {judgeMemory(16<<30, 0, nil), Missing, "lets 0 MiB be used"},
		"no memory":          {judgeMemory(512<<20, noLimit, nil), Missing, "512 MiB available"},
		"unknown memory":     {judgeMemory(0, 0, errTest), Note, "it is broken"},
		"much disk":          {judgeDisk("disk", "/cache", 50<<30, false, nil), OK, "50.0 GiB free in /cache"},
		"little disk":        {judgeDisk("disk", "/cache", 3<<30, false, nil), Note, "the first run"},
		"little, but filled": {judgeDisk("disk", "/cache", 3<<30, true, nil), OK, "3.0 GiB"},
		"full disk":          {judgeDisk("disk", "/cache", 100<<20, true, nil), Missing, "make room"},
		"unknown disk":       {judgeDisk("disk", "/cache", 0, true, errTest), Missing, "it is broken"},
		"inotify":            {judgeInotify(8192, 1<<20, nil, "kind"), OK, "8192 instances"},
		"little inotify":     {judgeInotify(128, 8192, nil, "kind"), Note, "sysctl -w fs.inotify.max_user_instances=512"},
		"unknown inotify":    {judgeInotify(0, 0, errTest, "kind"), Note, "fs.inotify"},
		"cgroups 2":          {judgeGroups(true, false, "kind"), OK, "version 2"},
		"cgroups 1":          {judgeGroups(false, true, "kind"), Note, "version 1"},
		"no cgroups":         {judgeGroups(false, false, "kind"), Note, "none are mounted"},
		"root":               {judgeUser(true, false, false, "embedded"), OK, "root"},
		"user with ranges":   {judgeUser(false, true, true, "embedded"), OK, "subordinate ids"},
		"user without tools": {judgeUser(false, true, false, "embedded"), Note, "newuidmap"},
		"clusters":           {judgePreflight("embedded", nil), OK, "can be started"},
		"no clusters":        {judgePreflight("embedded", errTest), Missing, "it is broken"},
		"empty cache":        {judgeCache(cacheContents{dir: "/cache"}), Note, "cluster build"},
		"cache":              {judgeCache(cacheContents{dir: "/cache", bytes: 900 << 20, controls: []string{"1.37.2"}, programs: 4, artifacts: 9, runs: 1}), OK, "900 MiB in /cache: clusters of Kubernetes 1.37.2, 4 other programs, 9 charts and images, 1 checkouts"},
		"broken cache":       {judgeCache(cacheContents{dir: "/cache", err: errTest}), Note, "delete /cache"},
	} {
		f := test.finding
		if f.State != test.state || !strings.Contains(f.Says+"; "+f.Advice, test.says) {
			t.Errorf("%s: got %+v, want %s with %q", name, f, test.state, test.says)
		}
		if f.What == "" || f.Says == "" || (f.Advice != "") != (f.State != OK) {
			t.Errorf("%s: %+v has no words, or advice that nobody needs", name, f)
		}
	}
}

func TestCanRun(t *testing.T) {
	findings := []Finding{{State: OK}, {State: Note}, {NeededFor: "kind", State: Missing}}
	if !CanRun(findings, "embedded") || CanRun(findings, "kind") {
		t.Error("what kind lacks must prevent kind, and kind alone")
	}
	if CanRun(append(findings, Finding{State: Missing}), "embedded") {
		t.Error("what everything needs must prevent everything")
	}
}

// A machine is asked for what it has: here a made-up one around a real repository.
func TestLook(t *testing.T) {
	root, repository, cache := t.TempDir(), gittest.Init(t), t.TempDir()
	gittest.Write(t, root, map[string]string{
		"proc/meminfo":                           "MemTotal: 9 kB\nMemAvailable:  8388608 kB\n",
		"proc/sys/fs/inotify/max_user_instances": "128\n",
		"proc/sys/fs/inotify/max_user_watches":   "65536\n",
		"sys/fs/cgroup/cgroup.controllers":       "cpu memory\n",
		"sys/fs/cgroup/memory.max":               "4294967296\n",
		"sys/fs/cgroup/memory.current":           "4294967296\n", // full of files that can go
		"sys/fs/cgroup/memory.stat":              "anon 1073741824\ninactive_file 3221225472\n",
		"etc/subuid":                             "someone:100000:65536\n",
	})
	gittest.Write(t, cache, map[string]string{
		"bin/controlplane-1.37.2-0123456789abcdef": "x", "bin/controlplane-1.37.2-0123456789abcdef.lock": "", "bin/chainsaw-0123456789abcdef": "x",
		"oci/key/index.json": "{}", "oci/.writing-1/index.json": "{}", "runs/abc/registry": "",
	})
	gittest.Write(t, repository, map[string]string{"file": "x"})
	commit := gittest.Commit(t, repository, "first")
	machine := Machine{
		Repository: repository, CacheDir: cache, GoVersion: "1.21.0", Embedded: "embedded", Kind: "kind", Root: root,
		File: &compat.File{OperatorReleases: []compat.OperatorRelease{{Version: "0.3.1", Commit: commit}, {Version: "0.5.0", Commit: strings.Repeat("1", 40)}}},
		Preflights: map[string]func(context.Context) error{
			"embedded": func(context.Context) error { return nil },
			"kind":     func(context.Context) error { return errTest },
		},
	}
	told := map[string]string{}
	for _, f := range machine.Look(t.Context()) {
		told[f.What+" "+f.NeededFor] += f.Says + "; "
	}
	for what, says := range map[string]string{
		"Go ":                 "go1.",
		"git history ":        "the commits of 0.5.0 are not in this clone of 1 commits",
		"memory ":             "8.0 GiB available, of which the control group lets 3.0 GiB be used: enough for 1 cells",
		"disk for the cache ": "free in " + cache,
		"cache ":              "clusters of Kubernetes 1.37.2, 1 other programs, 1 charts and images, 1 checkouts",
		"cgroups kind":        "version 2",
		"inotify kind":        "128 instances, 65536 watches",
		"clusters embedded":   "can be started",
		"clusters kind":       "it is broken",
	} {
		if !strings.Contains(told[what], says) {
			t.Errorf("%s: told %q, want %q", what, told[what], says)
		}
	}
	if cells, err := machine.Cells(); err != nil || cells != 1 {
		t.Errorf("there is memory for %d cells (%v), want 1", cells, err)
	}
	if free, err := room(filepath.Join(cache, "not", "there")); err != nil || free == 0 {
		t.Errorf("the room in a folder that is not there yet: %d, %v", free, err)
	}
	if entries, _ := os.ReadDir(repository); len(entries) != 2 {
		t.Errorf("it left something in the repository: %v", entries)
	}
}
