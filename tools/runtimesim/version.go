package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Versions of the runtime that began something a client can see.
var (
	// projectedSettings honours every variable that the operator projects.
	projectedSettings = version{numbers: [3]int{0, 23, 0}}
	// capabilityAvailability serves /v1/capabilities/availability.
	capabilityAvailability = version{numbers: [3]int{0, 41, 0}}
)

// version is a runtime version as an image tag names it. A number that the tag leaves open
// ("1.28", "latest") counts as the newest there is.
type version struct {
	tag     string
	numbers [3]int
}

// parseVersion reads X.Y.Z, X.Y, X or latest, each optionally followed by a dash and the
// name of a variant, as in 1.28.0-never-ready.
func parseVersion(tag string) (version, error) {
	parsed := version{tag: tag, numbers: [3]int{math.MaxInt, math.MaxInt, math.MaxInt}}
	release, _, _ := strings.Cut(tag, "-")
	if release == "latest" {
		return parsed, nil
	}
	parts := strings.Split(release, ".")
	if len(parts) > len(parsed.numbers) {
		return version{}, fmt.Errorf("%q has more than three numbers", tag)
	}
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return version{}, fmt.Errorf("%q is not an image tag of the runtime: want 1.28.0, 1.28, 1 or latest, without a leading v", tag)
		}
		parsed.numbers[i] = int(number)
	}
	return parsed, nil
}

// String is the tag as it was given.
func (v version) String() string { return v.tag }

// atLeast tells whether v is other or newer.
func (v version) atLeast(other version) bool {
	for i, number := range v.numbers {
		if number != other.numbers[i] {
			return number > other.numbers[i]
		}
	}
	return true
}
