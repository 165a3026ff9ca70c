package main

import (
	"os"
	"path/filepath"
	"testing"
)

// lacking is the status of a process without CAP_SYS_RESOURCE, number 24.
const lacking = "Name:\tdockerd\nCapEff:\t000001ffffffffff\nCapBnd:\t000001fffeffffff\n"

func TestRestrict(t *testing.T) {
	const config = `{"ociVersion":"1.0.2","process":{"args":["/sbin/init"],"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_RESOURCE","CAP_NEWER"],"effective":["CAP_SYS_RESOURCE"]},"rlimits":[{"hard":1048576,"soft":512,"type":"RLIMIT_NOFILE"},{"hard":18446744073709551615,"soft":1048576,"type":"RLIMIT_NEWER"}]}}`
	const want = `{"ociVersion":"1.0.2","process":{"args":["/sbin/init"],"capabilities":{"bounding":["CAP_CHOWN","CAP_NEWER"],"effective":[]},"rlimits":[{"hard":1024,"soft":512,"type":"RLIMIT_NOFILE"},{"hard":18446744073709551615,"soft":1048576,"type":"RLIMIT_NEWER"}]}}`
	const process = `{"capabilities":{"effective":["CAP_SYS_RESOURCE","CAP_KILL"]},"cwd":"/","rlimits":[{"hard":2048,"soft":2048,"type":"RLIMIT_NOFILE"}]}`
	const wantProcess = `{"capabilities":{"effective":["CAP_KILL"]},"cwd":"/","rlimits":[{"hard":1024,"soft":1024,"type":"RLIMIT_NOFILE"}]}`
	allowed, err := boundingSet(lacking)
	if err != nil {
		t.Fatal(err)
	}
	h := host{allowed, func(name string) (uint64, bool) { return 1024, name == "RLIMIT_NOFILE" }}
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	for _, test := range []struct {
		name, before, after string
		args                []string
	}{
		{"create", config, want, []string{"--root", "/run", "create", "--bundle", dir, "id"}},
		{"create, in one word", config, want, []string{"run", "--bundle=" + dir, "id"}},
		{"create, short", config, want, []string{"create", "-b", dir, "id"}},
		{"exec", process, wantProcess, []string{"exec", "--process", file, "id"}},
		{"exec, short", process, wantProcess, []string{"exec", "-p", file, "id"}},
		{"another command", config, config, []string{"delete", "id"}},
		{"a container without a process", `{"ociVersion":"1.0.2"}`, `{"ociVersion":"1.0.2"}`, []string{"create", "-b", dir}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.before), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := restrict(test.args, h); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil || string(got) != test.after {
				t.Errorf("got %s, %v\nwant %s", got, err, test.after)
			}
		})
	}
	if err := restrict([]string{"create", "-b", filepath.Join(dir, "none")}, h); err == nil {
		t.Error("a bundle that is not there is no error")
	}
}

func TestBoundingSet(t *testing.T) {
	allowed, err := boundingSet(lacking)
	if err != nil {
		t.Fatal(err)
	}
	for capability, want := range map[string]bool{"CAP_CHOWN": true, "CAP_SYS_RESOURCE": false, "CAP_CHECKPOINT_RESTORE": true, "CAP_NEWER": true} {
		if got := allowed(capability); got != want {
			t.Errorf("%s: got %t", capability, got)
		}
	}
	for _, status := range []string{"", "CapBnd:\tnone\n"} {
		if _, err := boundingSet(status); err == nil {
			t.Errorf("%q is no error", status)
		}
	}
}
