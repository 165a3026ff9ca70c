package main

import (
	"encoding/json"
	"strconv"

	"golang.org/x/sys/unix"
)

// resources are the resource limits of the kernel by their names in a container's configuration.
var resources = map[string]int{
	"RLIMIT_AS": unix.RLIMIT_AS, "RLIMIT_CORE": unix.RLIMIT_CORE, "RLIMIT_CPU": unix.RLIMIT_CPU, "RLIMIT_DATA": unix.RLIMIT_DATA,
	"RLIMIT_FSIZE": unix.RLIMIT_FSIZE, "RLIMIT_LOCKS": unix.RLIMIT_LOCKS, "RLIMIT_MEMLOCK": unix.RLIMIT_MEMLOCK,
	"RLIMIT_MSGQUEUE": unix.RLIMIT_MSGQUEUE, "RLIMIT_NICE": unix.RLIMIT_NICE, "RLIMIT_NOFILE": unix.RLIMIT_NOFILE,
	"RLIMIT_NPROC": unix.RLIMIT_NPROC, "RLIMIT_RSS": unix.RLIMIT_RSS, "RLIMIT_RTPRIO": unix.RLIMIT_RTPRIO,
	"RLIMIT_RTTIME": unix.RLIMIT_RTTIME, "RLIMIT_SIGPENDING": unix.RLIMIT_SIGPENDING, "RLIMIT_STACK": unix.RLIMIT_STACK,
}

// hardLimit is this process's own, which it can't raise without CAP_SYS_RESOURCE.
func hardLimit(name string) (uint64, bool) {
	resource, known := resources[name]
	if !known {
		return 0, false
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(resource, &limit); err != nil {
		return 0, false
	}
	return limit.Max, true
}

// lowerLimits lowers what is above a hard limit to it.
func lowerLimits(process map[string]any, hard func(string) (uint64, bool)) {
	limits, _ := process["rlimits"].([]any)
	for _, entry := range limits {
		limit, _ := entry.(map[string]any)
		name, _ := limit["type"].(string)
		most, known := hard(name)
		if !known {
			continue
		}
		for _, bound := range []string{"hard", "soft"} {
			number, _ := limit[bound].(json.Number)
			if wanted, err := strconv.ParseUint(number.String(), 10, 64); err == nil && wanted > most {
				limit[bound] = most
			}
		}
	}
}
