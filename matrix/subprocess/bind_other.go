//go:build !unix

package subprocess

import "os/exec"

// bind has nothing to do where there are no process groups: the process alone is killed.
func bind(*exec.Cmd) {}

func start(cmd *exec.Cmd) error { return cmd.Start() }

// yieldCPU has no means to do what it should.
func yieldCPU(*exec.Cmd) error { return nil }
