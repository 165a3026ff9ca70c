//go:build linux

package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"
)

// The kernel's interfaces that a container may see but not change, and those it may not
// see, as in the default specification of runc.
var (
	readOnlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	maskedPaths   = []string{"/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/timer_list", "/sys/firmware"}
)

// devices are the device files of a container.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// buildRoot makes the container's root and moves this process into it. The process must be
// in a mount namespace of its own.
func buildRoot(spec *Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w", err)
	}
	root, err := mountImage(spec.Lower, spec.Scratch)
	if err != nil {
		return err
	}
	b := rootBuilder{root: root}
	if err := b.mountKernelFileSystems(); err != nil {
		return err
	}
	if err := b.addFiles(spec.Files, filepath.Join(spec.Scratch, "files")); err != nil {
		return err
	}
	for _, mount := range spec.Mounts {
		if err := b.bind(mount.Source, mount.Target, mount.ReadOnly); err != nil {
			return fmt.Errorf("mount %s: %w", mount.Target, err)
		}
	}
	if spec.Process.Dir != "" {
		if err := b.directory(spec.Process.Dir); err != nil {
			return fmt.Errorf("make the working directory %s: %w", spec.Process.Dir, err)
		}
	}
	if err := enterRoot(root); err != nil {
		return err
	}
	if spec.ReadOnly {
		return remountReadOnly("/")
	}
	return nil
}

// mountImage puts a writable layer in memory over the image's files and returns where.
func mountImage(lower, scratch string) (string, error) {
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, "mode=0755"); err != nil {
		return "", fmt.Errorf("mount the container's writable layer: %w", err)
	}
	var directories [3]string
	for i, name := range []string{"root", "upper", "work"} {
		directories[i] = filepath.Join(scratch, name)
		if err := os.Mkdir(directories[i], 0o755); err != nil {
			return "", fmt.Errorf("prepare the container's root: %w", err)
		}
	}
	root := directories[0]
	// userxattr: in a user namespace overlayfs may not use the trusted attributes.
	options := "lowerdir=" + lower + ",upperdir=" + directories[1] + ",workdir=" + directories[2] + ",userxattr"
	overlayErr := unix.Mount("overlay", root, "overlay", 0, options)
	if overlayErr == nil {
		return root, nil
	}
	// Kernels before 5.11 have no overlayfs in user namespaces: a copy takes its place.
	if err := os.CopyFS(root, os.DirFS(lower)); err != nil {
		return "", fmt.Errorf("copy the image, as overlayfs is not available (%w): %w", overlayErr, err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND, ""); err != nil {
		return "", fmt.Errorf("mount the container's root: %w", err)
	}
	return root, nil
}

type rootBuilder struct{ root string }

// path is where a path of the container is while its root is built. Links are followed as
// the container would.
func (b rootBuilder) path(inside string) (string, error) {
	return securejoin.SecureJoin(b.root, inside)
}

func (b rootBuilder) directory(inside string) error {
	path, err := b.path(inside)
	if err != nil {
		return err
	}
	return os.MkdirAll(path, 0o755)
}

func (b rootBuilder) mountKernelFileSystems() error {
	const restricted = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	mounts := []struct {
		kind, target string
		flags        uintptr
		data         string
		optional     bool
	}{
		{"proc", "/proc", restricted, "", false},
		{"tmpfs", "/dev", unix.MS_NOSUID | unix.MS_STRICTATIME, "mode=0755,size=64k", false},
		{"devpts", "/dev/pts", unix.MS_NOSUID | unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620", false},
		{"tmpfs", "/dev/shm", restricted, "mode=1777,size=64m", false},
		// Not allowed in a user namespace that doesn't own the network namespace.
		{"sysfs", "/sys", restricted | unix.MS_RDONLY, "", true},
	}
	for _, m := range mounts {
		if err := b.directory(m.target); err != nil {
			return fmt.Errorf("prepare %s: %w", m.target, err)
		}
		path, err := b.path(m.target)
		if err != nil {
			return err
		}
		if err := unix.Mount(m.kind, path, m.kind, m.flags, m.data); err != nil && !m.optional {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := b.addDevices(); err != nil {
		return err
	}
	return b.restrictKernelFiles()
}

func (b rootBuilder) addDevices() error {
	for _, device := range devices {
		if err := b.bind("/dev/"+device, "/dev/"+device, false); err != nil {
			return fmt.Errorf("add the device %s: %w", device, err)
		}
	}
	links := map[string]string{
		"/proc/self/fd":   "fd",
		"/proc/self/fd/0": "stdin",
		"/proc/self/fd/1": "stdout",
		"/proc/self/fd/2": "stderr",
		"pts/ptmx":        "ptmx",
	}
	for target, name := range links {
		if err := os.Symlink(target, filepath.Join(b.root, "dev", name)); err != nil {
			return fmt.Errorf("add the device %s: %w", name, err)
		}
	}
	return nil
}

func (b rootBuilder) restrictKernelFiles() error {
	for _, path := range readOnlyPaths {
		if err := b.restrict(path, func(real string, _ bool) error {
			if err := unix.Mount(real, real, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return err
			}
			return remountReadOnly(real)
		}); err != nil {
			return err
		}
	}
	for _, path := range maskedPaths {
		if err := b.restrict(path, func(real string, directory bool) error {
			if directory {
				return unix.Mount("tmpfs", real, "tmpfs", unix.MS_RDONLY, "size=0")
			}
			return unix.Mount("/dev/null", real, "", unix.MS_BIND, "")
		}); err != nil {
			return err
		}
	}
	return nil
}

// restrict applies a mount to a path that exists on this kernel.
func (b rootBuilder) restrict(path string, mount func(real string, directory bool) error) error {
	real := filepath.Join(b.root, path)
	info, err := os.Lstat(real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = mount(real, info.IsDir())
	}
	if err != nil {
		return fmt.Errorf("restrict %s: %w", path, err)
	}
	return nil
}

// addFiles makes the files that the runtime provides and mounts them, so that the image's
// own stay as they are and the container can't keep what it writes to them.
func (b rootBuilder) addFiles(files map[string]string, directory string) error {
	if err := os.Mkdir(directory, 0o755); err != nil {
		return fmt.Errorf("add files to the container: %w", err)
	}
	for target, content := range files {
		source := filepath.Join(directory, strings.ReplaceAll(target, "/", "_"))
		if err := os.WriteFile(source, []byte(content), 0o644); err != nil {
			return fmt.Errorf("add %s: %w", target, err)
		}
		if err := b.bind(source, target, false); err != nil {
			return fmt.Errorf("add %s: %w", target, err)
		}
	}
	return nil
}

// bind mounts a file or folder of the host, making the place for it if the image has none.
func (b rootBuilder) bind(source, target string, readOnly bool) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	path, err := b.path(target)
	if err != nil {
		return err
	}
	if err := makeMountPoint(path, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(source, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if readOnly {
		return remountReadOnly(path)
	}
	return nil
}

func makeMountPoint(path string, directory bool) error {
	if directory {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// remountReadOnly makes a mount read-only. Its other restrictions are named again: in a
// user namespace they are locked, and a remount that leaves one out is refused.
func remountReadOnly(path string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	const locked = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME
	flags := uintptr(stat.Flags) & locked
	if err := unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|flags, ""); err != nil {
		return fmt.Errorf("make %s read-only: %w", path, err)
	}
	return nil
}

// enterRoot makes root this process's / and lets go of the host's.
func enterRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return fmt.Errorf("enter the container's root: %w", err)
	}
	// With both the same the old root is stacked below the new one, where no folder of the
	// image is needed for it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change to the container's root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	return unix.Chdir("/")
}
