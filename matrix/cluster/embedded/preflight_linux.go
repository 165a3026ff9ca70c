package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Preflight finds out before a long build whether the cluster can run here. Without a node
// it needs nothing of the system.
func Preflight(ctx context.Context, node bool) error {
	if !node {
		return nil
	}
	// Any program will do: the question is whether the kernel starts it in the namespaces.
	cmd := exec.CommandContext(ctx, "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	advice := "run it with CAP_SYS_ADMIN"
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		advice = "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, " +
			"kernel.unprivileged_userns_clone=1 on older Debian, user.max_user_namespaces above 0) or run it as root"
	}
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("the embedded cluster can't make the namespaces that its node needs: %w: %s", err, advice)
	}
	return nil
}
