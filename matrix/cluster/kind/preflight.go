package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// What a node needs at least. The limits of inotify are the kernel's defaults: systemd, the kubelet
// and containerd of one node fit below them.
const (
	leastInotifyInstances = 128
	leastInotifyWatches   = 8192
	// leastDisk is the unpacked node image and the folder of one running node, with some room, in bytes.
	leastDisk = 3 << 30
)

// Preflight tells what the machine lacks for a node.
func Preflight(ctx context.Context) error {
	_, err := readyEngine(ctx)
	return err
}

// readyEngine finds the engine, and tells before a long start what the machine lacks for a node.
func readyEngine(ctx context.Context) (engine, error) {
	e, err := findEngine(ctx)
	if err != nil {
		return "", err
	}
	return e, preflight(ctx, e)
}

func preflight(ctx context.Context, e engine) error {
	var failures []error
	if runtime.GOOS == "linux" {
		failures = append(failures,
			checkSysctl("fs.inotify.max_user_instances", leastInotifyInstances),
			checkSysctl("fs.inotify.max_user_watches", leastInotifyWatches))
	}
	format := "{{.DockerRootDir}}"
	if e == podman {
		format = "{{.Store.GraphRoot}}"
	}
	root, err := e.ask(ctx, "info", "--format", format)
	if err != nil {
		return fmt.Errorf("ask the engine where it keeps images: %w", err)
	}
	return errors.Join(append(failures, checkDisk(root))...)
}

// checkSysctl wants a setting of the kernel to be at least so high.
func checkSysctl(name string, least int) error {
	content, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	if err != nil {
		return fmt.Errorf("read the kernel's %s: %w", name, err)
	}
	value, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return fmt.Errorf("read the kernel's %s: %w", name, err)
	}
	if value < least {
		return fmt.Errorf("the kernel's %s is %d, a node needs %d: sysctl -w %s=%d", name, value, least, name, least)
	}
	return nil
}

// checkDisk wants room where the engine keeps images, if that is on this machine.
func checkDisk(dir string) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return nil // in a virtual machine, or not for this user to see
	}
	if free := uint64(stat.Bavail) * uint64(stat.Bsize); free < leastDisk {
		return fmt.Errorf("%s, where the engine keeps images, has %d MiB left, a node needs %d: make room (`docker system df` shows what takes it)", dir, free>>20, leastDisk>>20)
	}
	return nil
}
