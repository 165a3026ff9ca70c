package doctor

import (
	"errors"
	"fmt"
	"go/version"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/git"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30

	// cellMemory is what a cell needs at most on the embedded provider, leastMemory what one gets by with, in bytes
	// (docs/performance.md).
	cellMemory  = 2 * gibibyte
	leastMemory = 1 * gibibyte
	// firstDisk is what the first run takes of the caches, programs that are compiled included; leastDisk what one run takes
	// for its cluster and logs, in bytes.
	firstDisk = 5 * gibibyte
	leastDisk = 1 * gibibyte
	// kindInstances and kindWatches are what https://kind.sigs.k8s.io/docs/user/known-issues advises for several clusters.
	kindInstances = 512
	kindWatches   = 524288
)

// judgeGo compares the go command with the version that go.mod asks for. The go command downloads another one by itself
// where it may.
func judgeGo(found, wanted string, err error) Finding {
	f := Finding{What: "Go"}
	switch {
	case errors.Is(err, gobuild.ErrNoGo):
		f.State, f.Says, f.Advice = Missing, "there is no go command on the PATH", "install Go "+wanted+" or newer from https://go.dev/dl; only `--bundle` works without it"
	case err != nil:
		f.State, f.Says, f.Advice = Missing, "the go command fails: "+oneLine(err), "run `go version` and see to it that it works"
	case version.Compare(found, "go"+wanted) < 0:
		f.State, f.Says, f.Advice = Missing, found+", go.mod asks for "+wanted, "install Go "+wanted+" or newer from https://go.dev/dl"
	default:
		f.State, f.Says = OK, found
	}
	return f
}

// history is what git tells of a repository.
type history struct {
	shallow bool
	commits int
	// missing are the releases whose commits are not there.
	missing []string
	err     error
}

func judgeHistory(h history) Finding {
	f := Finding{What: "git history"}
	switch {
	case errors.Is(h.err, git.ErrNoGit):
		f.State, f.Says, f.Advice = Missing, "there is no git command on the PATH", "install git"
	case errors.Is(h.err, git.ErrNoRepository):
		f.State, f.Says, f.Advice = Missing, "this is no git repository", "work in a clone: earlier releases are built from their commits"
	case h.err != nil:
		f.State, f.Says, f.Advice = Missing, oneLine(h.err), "run `git status` and see to it that it works"
	case len(h.missing) > 0:
		f.State, f.Says, f.Advice = Missing, fmt.Sprintf("the commits of %s are not in this clone of %d commits", strings.Join(h.missing, ", "), h.commits), "run `git fetch --unshallow`, or correct the compatibility file"
		if !h.shallow {
			f.Advice = "run `git fetch`, or correct the compatibility file"
		}
	case h.shallow:
		f.State, f.Says, f.Advice = Note, fmt.Sprintf("the clone is shallow, with %d commits; those of all releases are among them", h.commits), "run `git fetch --unshallow` before evidence is verified"
	default:
		f.State, f.Says = OK, fmt.Sprintf("%d commits, those of all releases among them", h.commits)
	}
	return f
}

// judgeMemory judges what is left, in bytes; limit is that of the control group.
func judgeMemory(available, limit uint64, err error) Finding {
	f := Finding{What: "memory"}
	if err != nil {
		f.State, f.Says, f.Advice = Note, oneLine(err), "see to it that 2 GiB are free for each cell that runs at once"
		return f
	}
	says := fmt.Sprintf("%s available", size(available))
	if limit < available {
		available = limit
		says += fmt.Sprintf(", of which the control group lets %s be used", size(limit))
	}
	cells := available / cellMemory
	switch {
	case available < leastMemory:
		f.State, f.Says, f.Advice = Missing, says, "end other programs, or take a machine with 2 GiB of free memory"
	case cells < 1:
		f.State, f.Says, f.Advice = Note, says+": a cell needs up to 2 GiB", "run one cell at a time (--jobs 1), and end other programs"
	default:
		f.State, f.Says = OK, fmt.Sprintf("%s: enough for %d cells at once", says, cells)
	}
	return f
}

// judgeDisk judges the room in a folder, in bytes.
func judgeDisk(what, dir string, free uint64, filled bool, err error) Finding {
	f := Finding{What: what}
	if err != nil {
		f.State, f.Says, f.Advice = Missing, oneLine(err), "see to it that the folder can be made and written"
		return f
	}
	f.Says = fmt.Sprintf("%s free in %s", size(free), dir)
	switch {
	case free < leastDisk:
		f.State, f.Advice = Missing, "make room, or choose another folder by XDG_CACHE_HOME, GOCACHE or TMPDIR"
	case free < firstDisk && !filled:
		f.State, f.Advice = Note, "the first run compiles a cluster and takes up to 5 GiB: make room"
	default:
		f.State = OK
	}
	return f
}

// judgeInotify judges the kernel's limits, which several Kind clusters exhaust first.
func judgeInotify(instances, watches int, err error, provider string) Finding {
	f := Finding{What: "inotify", NeededFor: provider}
	if err != nil {
		f.State, f.Says, f.Advice = Note, oneLine(err), "if nodes don't start, look at fs.inotify.max_user_instances and fs.inotify.max_user_watches"
		return f
	}
	f.State, f.Says = OK, fmt.Sprintf("%d instances, %d watches", instances, watches)
	if instances < kindInstances || watches < kindWatches {
		f.State, f.Advice = Note, fmt.Sprintf("for several clusters at once: sysctl -w fs.inotify.max_user_instances=%d fs.inotify.max_user_watches=%d", kindInstances, kindWatches)
	}
	return f
}

// judgeGroups tells which control groups there are.
func judgeGroups(unified, mounted bool, provider string) Finding {
	f := Finding{What: "cgroups", NeededFor: provider}
	switch {
	case unified:
		f.State, f.Says = OK, "version 2"
	case mounted:
		f.State, f.Says, f.Advice = Note, "version 1", "Kubernetes 1.35 and later want version 2: boot with systemd.unified_cgroup_hierarchy=1"
	default:
		f.State, f.Says, f.Advice = Note, "none are mounted: no limit of a container is enforced", "mount them at /sys/fs/cgroup"
	}
	return f
}

// judgeUser tells who runs this. The namespaces themselves are tried by the provider.
func judgeUser(root bool, ranges, tools bool, provider string) Finding {
	f := Finding{What: "user", NeededFor: provider}
	switch {
	case root:
		f.State, f.Says = OK, "root"
	case ranges && tools:
		f.State, f.Says = OK, "an ordinary user with subordinate ids"
	default:
		f.State, f.Says, f.Advice = Note, "an ordinary user without subordinate ids: pods with another runAsUser run as this user", "install newuidmap and newgidmap, and give the user a range in /etc/subuid and /etc/subgid"
	}
	return f
}

// judgePreflight tells what a provider says of the machine.
func judgePreflight(provider string, err error) Finding {
	f := Finding{What: "clusters", NeededFor: provider, State: OK, Says: "can be started"}
	if err != nil {
		f.State, f.Says, f.Advice = Missing, oneLine(err), "see to that, or use another provider (--provider)"
	}
	return f
}

// judgeCache tells what a run need not make again.
func judgeCache(c cacheContents) Finding {
	f := Finding{What: "cache", State: OK}
	if c.err != nil {
		f.State, f.Says, f.Advice = Note, oneLine(c.err), "delete "+c.dir+" if it is damaged: it can be deleted at any time"
		return f
	}
	if len(c.controls) == 0 {
		f.State, f.Says, f.Advice = Note, fmt.Sprintf("%s in %s, and no cluster among it", size(c.bytes), c.dir), "the first run compiles one, which takes minutes: go run ./tools/matrix cluster build"
		return f
	}
	f.Says = fmt.Sprintf("%s in %s: clusters of Kubernetes %s, %d other programs, %d charts and images, %d checkouts with runs",
		size(c.bytes), c.dir, strings.Join(c.controls, ", "), c.programs, c.artifacts, c.runs)
	return f
}

func size(bytes uint64) string {
	if bytes < gibibyte {
		return fmt.Sprintf("%d MiB", bytes/mebibyte)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/gibibyte)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
