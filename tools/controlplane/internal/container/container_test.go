//go:build linux

package container

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCapabilities(t *testing.T) {
	defaults := func() []int {
		numbers, err := Capabilities(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return numbers
	}()
	if len(defaults) != len(defaultCapabilities) || slices.Contains(defaults, unix.CAP_SYS_ADMIN) {
		t.Errorf("by default: %v", defaults)
	}
	tests := map[string]struct {
		add, drop []string
		want      []int
	}{
		"none":                {nil, []string{"ALL"}, nil},
		"none in lower case":  {nil, []string{"all"}, nil},
		"one of none":         {[]string{"NET_BIND_SERVICE"}, []string{"ALL"}, []int{unix.CAP_NET_BIND_SERVICE}},
		"with the prefix":     {[]string{"CAP_NET_ADMIN"}, []string{"ALL"}, []int{unix.CAP_NET_ADMIN}},
		"all but the default": {[]string{"KILL"}, append([]string{"ALL"}, defaultCapabilities...), []int{unix.CAP_KILL}},
	}
	for name, test := range tests {
		got, err := Capabilities(test.add, test.drop)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, test.want)
		}
	}
	all, err := Capabilities([]string{"ALL"}, []string{"SYS_ADMIN"})
	if err != nil || len(all) != len(capabilityNumbers)-1 || slices.Contains(all, unix.CAP_SYS_ADMIN) {
		t.Errorf("all but one: %v, %v", all, err)
	}
	if _, err := Capabilities([]string{"FLY"}, nil); err == nil {
		t.Error("an unknown capability was accepted")
	}
}

func TestFindProgram(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=/nowhere", "PATH=/nowhere:" + dir}
	if got, err := findProgram("program", env); err != nil || got != filepath.Join(dir, "program") {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := findProgram("./program", env); err != nil || got != "./program" {
		t.Errorf("a path is taken as it is: got %s, %v", got, err)
	}
	for _, name := range []string{"data", "missing"} {
		if got, err := findProgram(name, env); err == nil {
			t.Errorf("%s was found as %s", name, got)
		}
	}
}

func TestSingleIDMap(t *testing.T) {
	tests := map[string]bool{
		"         0      12345          1\n":                               true,
		"         0          0 4294967295\n":                               false,
		"         0      12345          1\n         1 100000      65536\n": false,
		"": false,
	}
	for text, want := range tests {
		if got := singleIDMap(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
