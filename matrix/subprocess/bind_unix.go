//go:build unix && !linux

package subprocess

import (
	"os/exec"
	"syscall"
)

// bind gives the command a process group of its own, so that cancelling reaches its children, too.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroupOnCancel(cmd)
}

func start(cmd *exec.Cmd) error { return cmd.Start() }
