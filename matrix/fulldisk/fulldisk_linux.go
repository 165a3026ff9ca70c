package fulldisk

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// insideVariable is set in the process that has the small disk.
const insideVariable = "FULLDISK_TEST"

// Run calls test with an empty folder on a disk of so many bytes. It does so in another process of
// the test program, with mounts of its own, so that nothing stays mounted however that ends. It
// needs root or a user namespace.
func Run(t *testing.T, bytes int, test func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(insideVariable) == t.Name() {
		test(t, mount(t, bytes))
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideVariable+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("on a small disk: %v\n%s", err, out)
	}
}

func mount(t *testing.T, bytes int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatalf("keep mounts private: %v", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(bytes)); err != nil {
		t.Fatalf("mount a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount the small disk: %v", err)
		}
	})
	return dir
}

// Fill writes to the disk that dir is on until it has only so many bytes left. It returns how to
// make room again.
func Fill(t *testing.T, dir string, left int64) (free func()) {
	t.Helper()
	path := filepath.Join(dir, ".ballast")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err := errors.Join(err, file.Truncate(size-left), file.Close()); err != nil {
		t.Fatalf("fill the disk: %v", err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
