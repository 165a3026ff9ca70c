// Package subprocess runs programs that do not outlive this one: they end when the run is
// cancelled, with all that they started, and on Linux also when this process is killed.
package subprocess

import (
	"bytes"
	"os/exec"
)

// Start is cmd.Start for a command that is bound to this process. A command made with a context
// is killed together with its children when that ends.
func Start(cmd *exec.Cmd) error {
	bind(cmd)
	return start(cmd)
}

// YieldCPU lets a started command, and what it starts from now on, work only when no other process
// wants the processor.
func YieldCPU(cmd *exec.Cmd) error { return yieldCPU(cmd) }

// Run is cmd.Run for a command that is bound to this process; see Start.
func Run(cmd *exec.Cmd) error {
	if err := Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// Output is Run, and returns what the command printed.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	err := Run(cmd)
	return stdout.Bytes(), err
}
