//go:build unix

package subprocess

import (
	"os/exec"
	"syscall"
)

// background is the niceness of a command that gives way to everything else.
const background = 19

func yieldCPU(cmd *exec.Cmd) error {
	return syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, background)
}

// killGroupOnCancel replaces what a command with a context does when that ends; one without has
// nothing to do then.
func killGroupOnCancel(cmd *exec.Cmd) {
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}
