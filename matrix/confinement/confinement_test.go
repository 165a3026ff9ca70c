package confinement

import (
	"os"
	"strings"
	"testing"
)

const (
	status = "Name:\ttrussium\nUid:\t10001\t10001\t10001\t10001\nGid:\t10001\t10001\t10001\t10001\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n" +
		"CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	mounts = "1 0 0:1 / /proc rw - proc proc rw\n2 0 0:2 / / ro,relatime - overlay overlay rw\n"
)

func TestParse(t *testing.T) {
	confined := Facts{UID: 10001, GID: 10001, NoNewPrivileges: true, Seccomp: true, ReadOnlyRoot: true}
	for _, test := range []struct {
		name, old, new string
		want           func(*Facts)
	}{
		{"confined", "", "", func(*Facts) {}},
		{"root", "Uid:\t10001\t10001", "Uid:\t10001\t0", func(f *Facts) { f.UID = 0 }},
		{"another group", "Gid:\t10001\t10001", "Gid:\t10001\t5", func(f *Facts) { f.GID = 5 }},
		{"a capability that it can get", "CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400", func(f *Facts) { f.Capabilities = 0x400 }},
		{"new privileges", "NoNewPrivs:\t1", "NoNewPrivs:\t0", func(f *Facts) { f.NoNewPrivileges = false }},
		{"no filter", "Seccomp:\t2", "Seccomp:\t0", func(f *Facts) { f.Seccomp = false }},
		{"a root that can be written", "/ ro,relatime", "/ rw,relatime", func(f *Facts) { f.ReadOnlyRoot = false }},
		{"a mount over the root", "overlay rw\n", "overlay rw\n3 2 0:3 / / rw - tmpfs tmpfs rw\n", func(f *Facts) { f.ReadOnlyRoot = false }},
	} {
		want := confined
		test.want(&want)
		got, err := parse(strings.Replace(status, test.old, test.new, 1), strings.Replace(mounts, test.old, test.new, 1))
		if err != nil || got != want {
			t.Errorf("%s: got %s, %v\nwant %s", test.name, got, err, want)
		}
	}
	for _, test := range []struct{ name, status, mounts, says string }{
		{"no user", "Name: x\n", mounts, "no Uid"},
		{"no root", status, "1 0 0:1 / /proc rw - proc proc rw\n", "nothing is mounted"},
		{"half a user", strings.Replace(status, "Uid:\t10001\t10001\t10001\t10001", "Uid:\t10001", 1), mounts, "only 1 users"},
		{"no number", strings.Replace(status, "CapEff:\t0", "CapEff:\tx", 1), mounts, "invalid syntax"},
	} {
		if got, err := parse(test.status, test.mounts); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %s, %v", test.name, got, err)
		}
	}
}

func TestReadOfThisProcess(t *testing.T) {
	facts, err := Read("/proc", os.Getpid())
	if err != nil || facts.UID != int64(os.Geteuid()) || facts.GID != int64(os.Getegid()) {
		t.Errorf("got %s, %v", facts, err)
	}
	if _, err := Read(t.TempDir(), 1); err == nil {
		t.Error("a process that is not there is no error")
	}
}
