//go:build linux

package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// run gives up rights and becomes the container's program. It returns only with an error.
func run(p Process) error {
	unix.CloseOnExec(reportDescriptor)
	if p.Terminal {
		if err := unix.IoctlSetInt(0, unix.TIOCSCTTY, 0); err != nil {
			return fmt.Errorf("take control of the terminal: %w", err)
		}
	}
	if p.Dir != "" {
		if err := os.Chdir(p.Dir); err != nil {
			return fmt.Errorf("enter the working directory: %w", err)
		}
	}
	if err := limitCapabilities(p.Capabilities); err != nil {
		return err
	}
	if err := setUser(p); err != nil {
		return err
	}
	kept := p.Capabilities
	if p.UID != 0 {
		kept = nil // as the kernel does on a change from root to another user
	}
	if err := setCapabilities(kept); err != nil {
		return err
	}
	if p.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("forbid new privileges: %w", err)
		}
	}
	unix.Umask(0o022)
	path, err := findProgram(p.Args[0], p.Env)
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, p.Args, p.Env); err != nil {
		return fmt.Errorf("exec %q: %w", path, err)
	}
	return nil
}

// setUser changes to the user of the process. With a single id there is none to change to:
// the user namespace shows that id as the wanted one.
func setUser(p Process) error {
	if p.SingleID {
		return nil
	}
	groups := make([]int, len(p.Groups))
	for i, group := range p.Groups {
		groups[i] = int(group)
	}
	if err := syscall.Setgroups(groups); err != nil {
		return fmt.Errorf("set supplementary groups %v: %w", groups, err)
	}
	if err := syscall.Setresgid(int(p.GID), int(p.GID), int(p.GID)); err != nil {
		return fmt.Errorf("change to group %d: %w", p.GID, err)
	}
	if err := syscall.Setresuid(int(p.UID), int(p.UID), int(p.UID)); err != nil {
		return fmt.Errorf("change to user %d: %w", p.UID, err)
	}
	return nil
}

// findProgram looks a program up in the PATH of env, unless it is a path itself.
func findProgram(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	search := ""
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			search = value // the last one counts
		}
	}
	var found error
	for _, directory := range filepath.SplitList(search) {
		path := filepath.Join("/", directory, program)
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			found = err
		case !info.IsDir() && info.Mode()&0o111 != 0:
			return path, nil
		}
	}
	if found != nil {
		return "", fmt.Errorf("exec %q: %w", program, found)
	}
	return "", fmt.Errorf("exec %q: executable file not found in $PATH", program)
}
