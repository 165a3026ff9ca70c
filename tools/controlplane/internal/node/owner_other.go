//go:build linux && !amd64

package node

import "golang.org/x/sys/unix"

// ownerCalls are the system calls that change a file's owner; newer ports of Linux lack the
// older two.
var ownerCalls = []uint32{unix.SYS_FCHOWN, unix.SYS_FCHOWNAT}
