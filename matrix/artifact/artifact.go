package artifact

import (
	"errors"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Repositories of the published artifacts.
const (
	OperatorRepository = "ghcr.io/trussiumhq/trussium-operator"
	RuntimeRepository  = "ghcr.io/trussiumhq/trussium"
	ChartRepository    = "ghcr.io/trussiumhq/charts/trussium-operator"
	// SimulatorRepository is that of the runtime's simulator under its own name.
	SimulatorRepository = "ghcr.io/trussiumhq/trussium-runtimesim"
)

// Artifact is an image or a chart in the cache.
type Artifact struct {
	// Ref is the reference under which it is published: HOST/REPOSITORY:TAG.
	Ref string `json:"ref"`
	// Digest is the digest of its manifest, or of its index if it has several platforms.
	Digest string `json:"digest"`
	// Simulated says that a simulator stands in for the published image.
	Simulated bool `json:"simulated,omitempty"`

	entry entry
}

// Image is the content of the artifact for the platform that it was resolved for.
func (a Artifact) Image() (v1.Image, error) {
	image, err := a.entry.image()
	if err != nil {
		return nil, infrastructure(fmt.Errorf("read %s from the cache: %w", a.Ref, err))
	}
	return image, nil
}

// Source is where a release comes from.
type Source string

// The sources of a release.
const (
	// SourcePublished is a registry.
	SourcePublished Source = "published"
	// SourceCommit is the commit of this repository that the release was cut from.
	SourceCommit Source = "source"
	// SourceCheckout is the working tree.
	SourceCheckout Source = "checkout"
)

// Release is a version of the operator that can be installed.
type Release struct {
	// Version is the version of the chart.
	Version string `json:"version"`
	// Source is where chart and image come from.
	Source Source `json:"source"`
	// Commit is the commit that it was built from, or the one that is checked out; empty if
	// it is published.
	Commit string `json:"commit,omitempty"`
	// Dirty says that the checkout differs from its commit.
	Dirty bool `json:"dirty,omitempty"`
	// Chart is the Helm chart, Image the operator image that it names by default.
	Chart Artifact `json:"chart"`
	Image Artifact `json:"image"`
}

// Errors of this package that have one of these causes match it with errors.Is.
var (
	// ErrInput is a mistake in what was given: a version that its commit does not have, a chart
	// that can't be loaded, a folder that is no checkout.
	ErrInput = errors.New("bad input")
	// ErrBuild is a program that can't be built: it does not compile, or a module can't be downloaded.
	ErrBuild = errors.New("build failed")
	// ErrInfrastructure is a fault of the machine, the network or a registry.
	ErrInfrastructure = errors.New("infrastructure")
	// ErrNotPublished is an artifact that its registry does not have.
	ErrNotPublished = errors.New("not published")
)

// causedError adds a cause to an error and leaves its text as it is.
type causedError struct {
	err   error
	cause error
}

func (e *causedError) Error() string   { return e.err.Error() }
func (e *causedError) Unwrap() []error { return []error{e.err, e.cause} }

func badInput(err error) error       { return &causedError{err, ErrInput} }
func buildFailed(err error) error    { return &causedError{err, ErrBuild} }
func infrastructure(err error) error { return &causedError{err, ErrInfrastructure} }
