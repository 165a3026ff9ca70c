package artifact

import (
	"context"
	"fmt"
	"maps"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Provenance ties an image to the commit that it was built from.
type Provenance struct {
	// Version is the version of the release.
	Version string
	// Revision is the full hash of the commit.
	Revision string
	// Created is the time of the commit. The time of the build would make every build another image.
	Created time.Time
}

// Annotations are the provenance as annotations of an index, with the title of the image.
func (p Provenance) Annotations(title string) map[string]string {
	annotations := labels(title, p.Version)
	annotations["org.opencontainers.image.revision"] = p.Revision
	annotations["org.opencontainers.image.created"] = p.Created.UTC().Format(time.RFC3339)
	return annotations
}

// PlatformImage is what an image that is released has for one platform.
type PlatformImage struct {
	Platform v1.Platform
	Image    v1.Image
	// Program is the file, in the cache, with the program that the image holds.
	Program string
}

// Titles of the images that are released.
const (
	OperatorTitle  = "trussium-operator"
	SimulatorTitle = "trussium-runtimesim"
)

// ReleasedOperator is the operator image of a release, for the builder's platform. Its layer is that of the
// checkout's image, which the matrix runs; only the labels say more.
func (b *Builder) ReleasedOperator(ctx context.Context, p Provenance) (PlatformImage, error) {
	program, err := b.operatorProgram(ctx, p.Version)
	if err != nil {
		return PlatformImage{}, err
	}
	return b.released(b.operatorImage(p.Version, ""), OperatorTitle, p, program)
}

// ReleasedSimulator is the image of the runtime's simulator under its own name, for the builder's platform. It
// behaves as the newest runtime does.
func (b *Builder) ReleasedSimulator(ctx context.Context, p Provenance) (PlatformImage, error) {
	program, err := b.simulatorProgram(ctx, simulatorPackage)
	if err != nil {
		return PlatformImage{}, err
	}
	spec := b.simulatorImage(SimulatorTitle, "trussium", p.Version, []string{"--version=latest"})
	return b.released(spec, SimulatorTitle, p, program)
}

// released is the image of a spec with its provenance.
func (b *Builder) released(spec imageSpec, title string, p Provenance, program string) (PlatformImage, error) {
	maps.Copy(spec.Labels, p.Annotations(title))
	spec.Created = p.Created
	found, err := b.imageOf(spec, program)
	if err != nil {
		return PlatformImage{}, err
	}
	image, err := found.image()
	if err != nil {
		return PlatformImage{}, infrastructure(fmt.Errorf("read the image of %s from the cache: %w", title, err))
	}
	return PlatformImage{Platform: v1.Platform{OS: "linux", Architecture: b.arch()}, Image: image, Program: program}, nil
}
