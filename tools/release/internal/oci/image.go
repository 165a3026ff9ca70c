package oci

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
)

// Platform is an image for one platform, and the document about its program.
type Platform struct {
	artifact.PlatformImage
	SBOM Document
}

// Image is an image for several platforms under one reference. The document of each platform is attached to its
// image, and all of them to the index, which is what the reference stands for.
func Image(ref string, annotations map[string]string, platforms []Platform) (Artifact, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	result := Artifact{Ref: ref}
	var documents []Document
	for _, platform := range platforms {
		descriptor, err := partial.Descriptor(platform.Image)
		if err != nil {
			return Artifact{}, fmt.Errorf("put %s together: %w", ref, err)
		}
		referrer, err := attach(*descriptor, annotations, platform.SBOM)
		if err != nil {
			return Artifact{}, fmt.Errorf("attach %s to %s: %w", platform.SBOM.Name, ref, err)
		}
		result.Referrers = append(result.Referrers, referrer)
		documents = append(documents, platform.SBOM)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: container{platform.Image}, Descriptor: v1.Descriptor{Platform: &platform.Platform},
		})
	}
	index = mutate.Annotations(index, annotations).(v1.ImageIndex)
	descriptor, err := partial.Descriptor(index)
	if err != nil {
		return Artifact{}, fmt.Errorf("put %s together: %w", ref, err)
	}
	referrer, err := attach(*descriptor, annotations, documents...)
	if err != nil {
		return Artifact{}, fmt.Errorf("attach documents to %s: %w", ref, err)
	}
	result.Content = index
	result.Referrers = append(result.Referrers, referrer)
	return result, nil
}

// container is an image that is run. An index then lists it without an artifact type, which marks what is not run.
type container struct {
	v1.Image
}

func (container) ArtifactType() (string, error) { return "", nil }
