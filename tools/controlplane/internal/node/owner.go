//go:build linux

package node

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ignoreOwnerChanges lets every change of a file's owner succeed without any effect, in
// this process and all it starts. In a user namespace of one id there is no other owner
// that a file could have, and the kubelet does not start a pod whose volumes it could not
// give to the pod's user. The container's process, which that one id is shown as its own,
// owns the files anyhow.
func ignoreOwnerChanges() error {
	const succeed = unix.SECCOMP_RET_ERRNO // with error number 0
	program := []bpf.Instruction{bpf.LoadAbsolute{Off: 0, Size: 4}}
	for _, number := range ownerCalls {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1},
			bpf.RetConstant{Val: succeed})
	}
	program = append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	raw, err := bpf.Assemble(program)
	if err != nil {
		return fmt.Errorf("ignore changes of owner: %w", err)
	}
	filters := make([]unix.SockFilter, len(raw))
	for i, instruction := range raw {
		filters[i] = unix.SockFilter{Code: instruction.Op, Jt: instruction.Jt, Jf: instruction.Jf, K: instruction.K}
	}
	filter := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return fmt.Errorf("ignore changes of owner: %w", errno)
	}
	return nil
}
