//go:build linux

package node

import "golang.org/x/sys/unix"

// osImage is what the node says its operating system is.
const osImage = "embedded cluster: containers are processes"

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
