//go:build !unix

package scenario

import "os/exec"

// ownGroup has nothing to do: where there are no process groups, the process alone is
// killed. Scenarios start no children, since they may run no commands.
func ownGroup(*exec.Cmd) {}
