//go:build linux

package container

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// capabilityNumbers are the kernel's capabilities by the names that pods use.
var capabilityNumbers = map[string]int{
	"CHOWN": unix.CAP_CHOWN, "DAC_OVERRIDE": unix.CAP_DAC_OVERRIDE, "DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	"FOWNER": unix.CAP_FOWNER, "FSETID": unix.CAP_FSETID, "KILL": unix.CAP_KILL, "SETGID": unix.CAP_SETGID,
	"SETUID": unix.CAP_SETUID, "SETPCAP": unix.CAP_SETPCAP, "LINUX_IMMUTABLE": unix.CAP_LINUX_IMMUTABLE,
	"NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE, "NET_BROADCAST": unix.CAP_NET_BROADCAST, "NET_ADMIN": unix.CAP_NET_ADMIN,
	"NET_RAW": unix.CAP_NET_RAW, "IPC_LOCK": unix.CAP_IPC_LOCK, "IPC_OWNER": unix.CAP_IPC_OWNER,
	"SYS_MODULE": unix.CAP_SYS_MODULE, "SYS_RAWIO": unix.CAP_SYS_RAWIO, "SYS_CHROOT": unix.CAP_SYS_CHROOT,
	"SYS_PTRACE": unix.CAP_SYS_PTRACE, "SYS_PACCT": unix.CAP_SYS_PACCT, "SYS_ADMIN": unix.CAP_SYS_ADMIN,
	"SYS_BOOT": unix.CAP_SYS_BOOT, "SYS_NICE": unix.CAP_SYS_NICE, "SYS_RESOURCE": unix.CAP_SYS_RESOURCE,
	"SYS_TIME": unix.CAP_SYS_TIME, "SYS_TTY_CONFIG": unix.CAP_SYS_TTY_CONFIG, "MKNOD": unix.CAP_MKNOD,
	"LEASE": unix.CAP_LEASE, "AUDIT_WRITE": unix.CAP_AUDIT_WRITE, "AUDIT_CONTROL": unix.CAP_AUDIT_CONTROL,
	"SETFCAP": unix.CAP_SETFCAP, "MAC_OVERRIDE": unix.CAP_MAC_OVERRIDE, "MAC_ADMIN": unix.CAP_MAC_ADMIN,
	"SYSLOG": unix.CAP_SYSLOG, "WAKE_ALARM": unix.CAP_WAKE_ALARM, "BLOCK_SUSPEND": unix.CAP_BLOCK_SUSPEND,
	"AUDIT_READ": unix.CAP_AUDIT_READ, "PERFMON": unix.CAP_PERFMON, "BPF": unix.CAP_BPF,
	"CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE,
}

// defaultCapabilities are those of a container that asks for none, as with containerd.
var defaultCapabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
	"NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
}

// Capabilities computes what a container may ever have, from what its pod adds and drops.
// Added ones win over dropped ones, unless "ALL" is added and then some are dropped.
func Capabilities(add, drop []string) ([]int, error) {
	allowed := map[int]bool{}
	set := func(names []string, value bool) error {
		for _, name := range names {
			number, ok := capabilityNumbers[strings.TrimPrefix(strings.ToUpper(name), "CAP_")]
			if !ok {
				return fmt.Errorf("unknown capability %q", name)
			}
			allowed[number] = value
		}
		return nil
	}
	add, addAll := withoutAll(add)
	drop, dropAll := withoutAll(drop)
	switch {
	case addAll:
		for _, number := range capabilityNumbers {
			allowed[number] = true
		}
	case !dropAll:
		if err := set(defaultCapabilities, true); err != nil {
			return nil, err
		}
	}
	if err := set(drop, false); err != nil {
		return nil, err
	}
	if err := set(add, true); err != nil {
		return nil, err
	}
	var numbers []int
	for number, ok := range allowed {
		if ok {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

func withoutAll(names []string) (rest []string, all bool) {
	for _, name := range names {
		if strings.EqualFold(name, "ALL") {
			all = true
			continue
		}
		rest = append(rest, name)
	}
	return rest, all
}

// limitCapabilities takes all others out of reach of this thread and what it executes.
func limitCapabilities(allowed []int) error {
	for number := 0; number <= unix.CAP_LAST_CAP; number++ {
		if slices.Contains(allowed, number) {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(number), 0, 0, 0)
		if err != nil && err != unix.EINVAL { // EINVAL: this kernel doesn't know it
			return fmt.Errorf("drop capability %d: %w", number, err)
		}
	}
	return nil
}

// setCapabilities gives this thread exactly these capabilities, none of them inheritable.
func setCapabilities(numbers []int) error {
	var data [2]unix.CapUserData
	for _, number := range numbers {
		data[number/32].Effective |= 1 << (number % 32)
		data[number/32].Permitted |= 1 << (number % 32)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear the ambient capabilities: %w", err)
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("set the capabilities: %w", err)
	}
	return nil
}
