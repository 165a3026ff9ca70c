package main

import (
	"context"
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/oci"
	"github.com/trussiumhq/trussium-operator/tools/release/internal/sbom"
)

// architectures are those that images are built for, all of them on Linux.
var architectures = []string{"amd64", "arm64"}

// product is a program that is released as an image.
type product struct {
	// title is what readers call it; name begins the names of its files.
	title, name string
	repository  string
	build       func(*artifact.Builder, context.Context, artifact.Provenance) (artifact.PlatformImage, error)
}

var products = []product{
	{"Operator image", artifact.OperatorTitle, artifact.OperatorRepository, (*artifact.Builder).ReleasedOperator},
	{"Runtime simulator image", artifact.SimulatorTitle, artifact.SimulatorRepository, (*artifact.Builder).ReleasedSimulator},
}

// image is the image of a product, with the documents about it.
type image struct {
	product
	artifact oci.Artifact
	sboms    []oci.Document
}

type images []image

// archiveName is the name of the file with the image.
func (i image) archiveName(version string) string {
	return fmt.Sprintf("%s-%s-image.tar", i.name, version)
}

// artifacts are what is pushed of the images.
func (list images) artifacts() []oci.Artifact {
	var artifacts []oci.Artifact
	for _, image := range list {
		artifacts = append(artifacts, image.artifact)
	}
	return artifacts
}

// digest is that of the image of a product.
func (list images) digest(name string) (string, error) {
	for _, image := range list {
		if image.name == name {
			return image.artifact.Digest()
		}
	}
	return "", fmt.Errorf("no image of %s was built", name)
}

// build builds the images of all products.
func build(ctx context.Context, places checkout.Places, provenance artifact.Provenance, screen *console) (images, error) {
	var built images
	for _, product := range products {
		next := image{product: product}
		var platforms []oci.Platform
		for _, arch := range architectures {
			builder := &artifact.Builder{Repository: places.Repository, CacheDir: places.CacheDir, Arch: arch}
			if err := screen.step(fmt.Sprintf("%s for linux/%s", product.name, arch), func(progress func(string)) error {
				builder.Progress = progress
				platform, err := product.platform(ctx, builder, provenance)
				platforms = append(platforms, platform)
				next.sboms = append(next.sboms, platform.SBOM)
				return err
			}); err != nil {
				return nil, err
			}
		}
		var err error
		if next.artifact, err = oci.Image(product.repository+":"+provenance.Version, provenance.Annotations(product.name), platforms); err != nil {
			return nil, err
		}
		built = append(built, next)
	}
	return built, nil
}

// platform builds the image of a product for one platform and describes its program.
func (p product) platform(ctx context.Context, builder *artifact.Builder, provenance artifact.Provenance) (oci.Platform, error) {
	image, err := p.build(builder, ctx, provenance)
	if err != nil {
		return oci.Platform{}, err
	}
	content, err := sbom.CycloneDX(image.Program, sbom.Subject{Name: p.name, Version: provenance.Version, Created: provenance.Created})
	if err != nil {
		return oci.Platform{}, err
	}
	name := fmt.Sprintf("%s-%s-linux-%s.cdx.json", p.name, provenance.Version, image.Platform.Architecture)
	return oci.Platform{PlatformImage: image, SBOM: oci.Document{Name: name, MediaType: sbom.MediaType, Content: content}}, nil
}
