package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
)

// gone is how long what belonged to a killed run may take to disappear.
const gone = time.Minute

// expectNothingLeft fails unless soon no process and no mount has to do with the copy, apart from a
// cluster that was to be kept. Network interfaces of an embedded cluster are in a namespace that
// ends with its processes.
func (c *copyOfCheckout) expectNothingLeft(t *testing.T, butCluster bool) {
	t.Helper()
	for deadline := time.Now().Add(gone); ; time.Sleep(50 * time.Millisecond) {
		left := c.left(t, butCluster)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("left %s after the end: %s", gone, strings.Join(left, ", "))
			return
		}
	}
}

func (c *copyOfCheckout) left(t *testing.T, butCluster bool) []string {
	t.Helper()
	left := c.processes(t, butCluster)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{c.run, c.dir} {
		if strings.Contains(string(mounts), dir) {
			left = append(left, "a mount below "+dir)
		}
	}
	return left
}

// processes are those that work in the copy or for it: their command line or their folder says so.
func (c *copyOfCheckout) processes(t *testing.T, butCluster bool) []string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, process := range all {
		if filepath.Base(process) == fmt.Sprint(os.Getpid()) || butCluster && ofCluster(process) {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(process, "cmdline")) // it may have ended meanwhile
		folder, _ := os.Readlink(filepath.Join(process, "cwd"))
		environment, _ := os.ReadFile(filepath.Join(process, "environ"))
		for _, trace := range []string{string(command), folder, string(environment)} {
			if len(command) > 0 && (strings.Contains(trace, c.run) || strings.Contains(trace, c.dir) || strings.Contains(trace, c.temp)) {
				found = append(found, fmt.Sprintf("process %s %s", filepath.Base(process), strings.ReplaceAll(string(command), "\x00", " ")))
				break
			}
		}
	}
	return found
}

// endCluster ends the cluster of a test that failed.
func (c *copyOfCheckout) endCluster(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	cluster, err := embedded.Attach(ctx, filepath.Join(c.run, "cells", c.cell, "cluster"))
	if err != nil {
		return // there is none
	}
	if err := cluster.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// ofCluster tells that the process is an embedded cluster's: the cluster's program, or below it.
func ofCluster(process string) bool {
	for {
		command, err := os.ReadFile(filepath.Join(process, "cmdline"))
		if err != nil || filepath.Base(process) == "0" {
			return false
		}
		program, _, _ := strings.Cut(string(command), "\x00")
		if strings.HasPrefix(filepath.Base(program), "controlplane-") {
			return true
		}
		stat, _ := os.ReadFile(filepath.Join(process, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest) // state, parent, ...
		if len(fields) < 2 {
			return false
		}
		process = filepath.Join("/proc", fields[1])
	}
}

// expectNoTemporaryFiles fails if the runs left any.
func (c *copyOfCheckout) expectNoTemporaryFiles(t *testing.T) {
	t.Helper()
	for _, dir := range []string{c.temp, filepath.Join(c.run, "tmp")} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		for _, entry := range entries {
			t.Errorf("left the temporary file %s", filepath.Join(dir, entry.Name()))
		}
	}
	folders, err := filepath.Glob(filepath.Join(c.run, "cells", "*", "cluster"))
	if err != nil || len(folders) > 0 {
		t.Errorf("left the state of clusters: %v, %v", folders, err)
	}
}
