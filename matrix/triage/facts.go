package triage

import (
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Release is a release of the runtime as its repository lists it.
type Release struct {
	// Version is its tag.
	Version string
	// Created is the time of its commit, Published when the release became visible; a draft has none.
	Created    time.Time
	Published  time.Time
	Draft      bool
	Prerelease bool
	// Notes and URL are what its author wrote, and its page.
	Notes string
	URL   string
}

// ImageState says what is known about an image.
type ImageState string

// The states of an image.
const (
	// ImagePresent is an image that the registry has.
	ImagePresent ImageState = "present"
	// ImageMissing is an image that the registry says it does not have.
	ImageMissing ImageState = "missing"
	// ImageUnknown is an image that the registry could not be asked about.
	ImageUnknown ImageState = "unknown"
)

// Image is what a registry says about the image of a release.
type Image struct {
	State ImageState
	// Problem says why the state is unknown.
	Problem string
	// Digest is that of the tag: of the index if there are several platforms.
	Digest string
	// Platforms are the images behind the digest, without attestations.
	Platforms []Platform
}

// Platform is an image for one platform.
type Platform struct {
	// Name is os/architecture[/variant].
	Name   string
	Config Config
}

// Config is the part of an image's configuration that the runtime contract speaks of.
type Config struct {
	User        string
	StopSignal  string
	Ports       []string
	Entrypoint  []string
	Cmd         []string
	Healthcheck []string
	Env         map[string]string
	Labels      map[string]string
}

// Label is a label of the repository that holds the proposals.
type Label struct {
	Name        string
	Description string
}

// Author is who wrote an issue or a comment.
type Author struct {
	Login string
	// Bot is a GitHub App: it acts in a repository only if the owner installed it.
	Bot bool
	// Association is how GitHub says that the author belongs to the repository, as in MEMBER.
	Association string
}

// trusted tells whether somebody without rights could not have written it.
func (a Author) trusted() bool {
	return a.Bot || slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, a.Association)
}

// Issue is an issue of the repository that holds the proposals.
type Issue struct {
	Number int
	Open   bool
	// Reopened says that a person opened it again after it was closed.
	Reopened bool
	Title    string
	Body     string
	Labels   []string
	Author   Author
}

// Comment is a comment on an issue.
type Comment struct {
	ID     int64
	Body   string
	Author Author
}

// parseVersion reads the name of a runtime release: vX.Y.Z.
func parseVersion(name string) (*semver.Version, bool) {
	bare, hasV := strings.CutPrefix(name, "v")
	version, err := semver.StrictNewVersion(bare)
	if !hasV || err != nil || version.Metadata() != "" || len(name) > maxVersion {
		return nil, false
	}
	return version, true
}

// maxVersion bounds the names of releases, which are part of titles and file names.
const maxVersion = 64

// compareVersions orders the names of runtime releases; those that are none come first.
func compareVersions(a, b string) int {
	first, okFirst := parseVersion(a)
	second, okSecond := parseVersion(b)
	switch {
	case okFirst && okSecond:
		return first.Compare(second)
	case okFirst:
		return 1
	case okSecond:
		return -1
	default:
		return strings.Compare(a, b)
	}
}

// imageTag is the tag of the image of a release: its name without v.
func imageTag(version string) string { return strings.TrimPrefix(version, "v") }
