package kind

import "syscall"

// ownSession keeps a Ctrl-C in the terminal from a process: this one decides.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
