// Package confinement reads from /proc how a process is confined: as which user it runs, what it may
// do, and whether it can write to its root. It is made of the standard library alone, so that a small
// program can do that inside of a cluster.
package confinement

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Facts are how a process is confined.
type Facts struct {
	// UID and GID are the user and the group that it runs as.
	UID, GID int64
	// Capabilities are those that it has, or could get, as a bit mask.
	Capabilities uint64
	// NoNewPrivileges tells that no program which it starts can have more rights.
	NoNewPrivileges bool
	// Seccomp tells that a filter decides which system calls it may make.
	Seccomp bool
	// ReadOnlyRoot tells that it can't write to its root.
	ReadOnlyRoot bool
}

func (f Facts) String() string {
	return fmt.Sprintf("uid %d, gid %d, capabilities %#x, no new privileges %t, seccomp filter %t, read-only root %t",
		f.UID, f.GID, f.Capabilities, f.NoNewPrivileges, f.Seccomp, f.ReadOnlyRoot)
}

// Read reads the facts of a process from proc, which is where that file system is mounted.
func Read(proc string, pid int) (Facts, error) {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Facts{}, fmt.Errorf("read how process %d is confined: %w", pid, err)
	}
	mounts, err := os.ReadFile(filepath.Join(dir, "mountinfo"))
	if err != nil {
		return Facts{}, fmt.Errorf("read how process %d is confined: %w", pid, err)
	}
	facts, err := parse(string(status), string(mounts))
	if err != nil {
		return Facts{}, fmt.Errorf("read how process %d is confined: %w", pid, err)
	}
	return facts, nil
}

// seccompFilter is the mode of a process whose system calls are filtered, see proc(5).
const seccompFilter = "2"

// parse reads the texts of /proc/PID/status and /proc/PID/mountinfo.
func parse(status, mounts string) (Facts, error) {
	fields := map[string][]string{}
	for line := range strings.Lines(status) {
		name, value, found := strings.Cut(line, ":")
		if found {
			fields[name] = strings.Fields(value)
		}
	}
	var facts Facts
	for _, name := range []string{"Uid", "Gid", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"} {
		if len(fields[name]) == 0 {
			return facts, fmt.Errorf("its status has no %s", name)
		}
	}
	var err error
	const effective = 1 // real, effective, saved, file system
	if len(fields["Uid"]) <= effective || len(fields["Gid"]) <= effective {
		return facts, fmt.Errorf("its status has only %d users", len(fields["Uid"]))
	}
	if facts.UID, err = strconv.ParseInt(fields["Uid"][effective], 10, 64); err != nil {
		return facts, err
	}
	if facts.GID, err = strconv.ParseInt(fields["Gid"][effective], 10, 64); err != nil {
		return facts, err
	}
	for _, name := range []string{"CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		set, err := strconv.ParseUint(fields[name][0], 16, 64)
		if err != nil {
			return facts, err
		}
		facts.Capabilities |= set
	}
	facts.NoNewPrivileges = fields["NoNewPrivs"][0] == "1"
	facts.Seccomp = fields["Seccomp"][0] == seccompFilter
	facts.ReadOnlyRoot, err = readOnlyRoot(mounts)
	return facts, err
}

// readOnlyRoot finds the mount at / that was made last, for it hides the others.
func readOnlyRoot(mounts string) (readOnly bool, err error) {
	found := false
	for line := range strings.Lines(mounts) {
		const mountPoint, options = 4, 5
		fields := strings.Fields(line)
		if len(fields) > options && fields[mountPoint] == "/" {
			found, readOnly = true, slices.Contains(strings.Split(fields[options], ","), "ro")
		}
	}
	if !found {
		return false, fmt.Errorf("nothing is mounted at its root")
	}
	return readOnly, nil
}
