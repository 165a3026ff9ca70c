package embeddedtest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// ProcessOf is the one process of a pod. It ends the test if there is none or more than one.
func ProcessOf(t *testing.T, pod string) *os.Process {
	t.Helper()
	found := ProcessesOf(t, pod)
	if len(found) != 1 {
		t.Fatalf("%d processes have the host name %s, want 1", len(found), pod)
	}
	return found[0]
}

// ProcessesOf are the processes of a pod: the node's containers are processes of this machine.
func ProcessesOf(t *testing.T, pod string) []*os.Process {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var found []*os.Process
	for _, file := range files {
		environment, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00HOSTNAME="+pod+"\x00")) {
			continue // somebody else's, or gone
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(id)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, process)
	}
	return found
}
