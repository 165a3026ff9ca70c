//go:build linux

package embedded

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// gone is how long a cluster may take to disappear after its end.
const gone = 10 * time.Second

// processID tells a process from another one that got its number later.
type processID struct {
	pid     int
	started string
}

// descendants are all processes below pid, in whatever namespaces they are, and pid itself.
func descendants(t *testing.T, pid int) []processID {
	t.Helper()
	children := map[int][]int{}
	started := map[int]string{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		id, parent, start, ok := readStat(path)
		if ok {
			children[parent] = append(children[parent], id)
			started[id] = start
		}
	}
	var all []processID
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, processID{next[0], started[next[0]]})
		next = append(next, children[next[0]]...)
	}
	return all
}

func readStat(path string) (pid, parent int, started string, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, "", false // it has ended meanwhile
	}
	// The name in parentheses may hold anything, blanks too.
	head, tail, found := strings.Cut(string(content), " (")
	fields := strings.Fields(tail[strings.LastIndex(tail, ")")+1:])
	pid, pidErr := strconv.Atoi(head)
	if !found || pidErr != nil || len(fields) < 20 {
		return 0, 0, "", false
	}
	parent, err = strconv.Atoi(fields[1])
	return pid, parent, fields[19], err == nil
}

func alive(p processID) bool {
	_, _, started, ok := readStat(fmt.Sprintf("/proc/%d/stat", p.pid))
	return ok && started == p.started
}

// expectNothingLeft fails unless all processes, the folder, and every mount and network
// interface of the cluster are gone soon.
func expectNothingLeft(t *testing.T, processes []processID, dir string, interfaces []string) {
	t.Helper()
	if len(processes) < 2 {
		t.Fatalf("the cluster had %d processes: the test looks at the wrong ones", len(processes))
	}
	deadline := time.Now().Add(gone)
	for {
		left := leftovers(t, processes, dir, interfaces)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left %s after the end: %s", gone, strings.Join(left, ", "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func leftovers(t *testing.T, processes []processID, dir string, interfaces []string) []string {
	t.Helper()
	var left []string
	for _, p := range processes {
		if alive(p) {
			command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
			left = append(left, fmt.Sprintf("process %d %s", p.pid, strings.ReplaceAll(string(command), "\x00", " ")))
		}
	}
	if _, err := os.Stat(dir); err == nil {
		left = append(left, "folder "+dir)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), dir) {
		left = append(left, "a mount below "+dir)
	}
	for _, name := range interfaceNames(t) {
		if !slices.Contains(interfaces, name) {
			left = append(left, "network interface "+name)
		}
	}
	return left
}

func interfaceNames(t *testing.T) []string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}
