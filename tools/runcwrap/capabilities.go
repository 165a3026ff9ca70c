package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// capabilities are the names in the order of their numbers, see capabilities(7).
var capabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER",
	"CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE",
	"CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP",
	"CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
}

// boundingSet tells, from the text of /proc/self/status, which capabilities this process and its
// children can have. One that is not known here is left to runc.
func boundingSet(status string) (allowed func(capability string) bool, err error) {
	for line := range strings.Lines(status) {
		text, found := strings.CutPrefix(line, "CapBnd:")
		if !found {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("read the capabilities of this process: %w", err)
		}
		return func(capability string) bool {
			number := slices.Index(capabilities, capability)
			return number < 0 || set&(1<<number) != 0
		}, nil
	}
	return nil, errNoSet
}
