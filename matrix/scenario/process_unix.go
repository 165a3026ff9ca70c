//go:build unix

package scenario

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cancellation reach the children of the command, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
