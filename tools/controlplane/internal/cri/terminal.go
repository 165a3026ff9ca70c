//go:build linux

package cri

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/container"
)

// execTerminal runs a command on a new terminal, as kubectl exec -it wants it.
func execTerminal(ctx context.Context, running *container.Running, args []string, stdin io.Reader, stdout io.Writer, resize <-chan terminalSize) error {
	control, terminal, err := openTerminal()
	if err != nil {
		return fmt.Errorf("open a terminal: %w", err)
	}
	defer control.Close()
	cmd, err := running.Exec(args, container.ExecIO{Stdin: terminal, Stdout: terminal, Stderr: terminal, Terminal: true})
	terminal.Close()
	if err != nil {
		return err
	}
	go func() {
		for size := range resize {
			_ = unix.IoctlSetWinsize(int(control.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: size.Height, Col: size.Width})
		}
	}()
	if stdin != nil {
		go func() { _, _ = io.Copy(control, stdin) }()
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		if stdout != nil {
			_, _ = io.Copy(stdout, control) // ends when nobody has the terminal open any more
		}
	}()
	code, err := waitFor(ctx, cmd)
	<-written
	return exitError(code, err)
}

// openTerminal makes a pseudo-terminal: the side of this process and that of a program.
func openTerminal() (control, terminal *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		control.Close()
		return nil, nil, err
	}
	// By the open side: a name would have to be looked up in the right /dev/pts.
	number, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		control.Close()
		return nil, nil, errno
	}
	return control, os.NewFile(number, "terminal"), nil
}
