//go:build linux

package node

import "golang.org/x/sys/unix"

// ownerCalls are the system calls that change a file's owner.
var ownerCalls = []uint32{unix.SYS_CHOWN, unix.SYS_FCHOWN, unix.SYS_LCHOWN, unix.SYS_FCHOWNAT}
