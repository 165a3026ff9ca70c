package triage

import (
	"fmt"
	"regexp"
)

// The markers are comments that GitHub does not show. They are what proposals and closing
// comments are known by; titles, labels and texts are free to be edited.

// noImage stands for the digest of an image that is not there.
const noImage = "none"

// identity is what a proposal is about: a release, and the image that it had.
type identity struct {
	version string
	// digest is noImage for a release without an image.
	digest string
}

func (i identity) marker() string {
	return fmt.Sprintf("<!-- trussium-triage proposal=%s digest=%s -->", i.version, i.digest)
}

var proposalMarker = regexp.MustCompile(`<!-- trussium-triage proposal=(v[0-9A-Za-z.-]+) digest=(none|sha256:[0-9a-f]{64}) -->`)

// identityOf reads the first marker in the body of an issue.
func identityOf(body string) (identity, bool) {
	match := proposalMarker.FindStringSubmatch(body)
	if match == nil {
		return identity{}, false
	}
	if _, ok := parseVersion(match[1]); !ok {
		return identity{}, false
	}
	return identity{version: match[1], digest: match[2]}, true
}
