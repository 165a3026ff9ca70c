//go:build unix

package gobuild

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the go command a process group of its own, so that a cancelled build
// ends its compilers too, and not only the go command.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
