package artifact

import "context"

// insideRepository is that of the matrix's own image. Nobody publishes it.
const insideRepository = "ghcr.io/trussiumhq/trussium-matrix-inside"

// insidePackage is its main package in a checkout.
const insidePackage = "./tools/inside"

// Inside builds the image of the program that the matrix runs in pods of its own.
func (b *Builder) Inside(ctx context.Context) (Artifact, error) {
	program, err := b.program(ctx, insidePackage)
	if err != nil {
		return Artifact{}, err
	}
	binary, err := b.cached(ctx, program)
	if err != nil {
		return Artifact{}, err
	}
	const tag, user = "checkout", "65532:65532"
	image, err := b.imageOf(imageSpec{Path: "/inside", User: user, Port: 8080, Arch: b.arch(), Labels: labels("trussium-matrix-inside", tag)}, binary)
	if err != nil {
		return Artifact{}, err
	}
	return image.artifact(insideRepository + ":" + tag), nil
}
