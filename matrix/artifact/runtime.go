package artifact

import (
	"context"
	"errors"
	"fmt"
	"path"
)

// Variant is a way in which a runtime image can fail. Only simulated images have variants.
type Variant string

// The variants of a runtime image. Each is a tag of its own: the release's tag, a dash, and
// the variant.
const (
	// VariantNone is the runtime as it should be.
	VariantNone Variant = ""
	// VariantNeverReady starts but never becomes ready.
	VariantNeverReady Variant = "never-ready"
	// VariantExits ends at once with exit code 2, as with invalid settings.
	VariantExits Variant = "exits"
	// VariantSlowDrain takes 20 seconds to finish its work when it is told to stop.
	VariantSlowDrain Variant = "slow-drain"
)

// flags are the simulator's flags for the variant.
func (v Variant) flags() ([]string, error) {
	switch v {
	case VariantNone:
		return nil, nil
	case VariantNeverReady:
		return []string{"--never-ready"}, nil
	case VariantExits:
		return []string{"--exit-code=2"}, nil
	case VariantSlowDrain:
		return []string{"--drain=20"}, nil
	default:
		return nil, badInput(fmt.Errorf("unknown variant %q of the runtime image", v))
	}
}

// simulatedLabel marks an image that is not the published one.
const simulatedLabel = "io.trussium.simulated"

// Runtime resolves the runtime image of a tag: as it is published, if Published is set and has
// it, else simulated. Variants are always simulated.
func (b *Builder) Runtime(ctx context.Context, tag string, variant Variant) (Artifact, error) {
	if b.Bundle != nil {
		if variant != VariantNone {
			tag += "-" + string(variant)
		}
		return b.Bundle.runtime(b.operator().Runtime.Image + ":" + tag)
	}
	if b.Published != nil && variant == VariantNone {
		artifact, err := b.pull(ctx, b.operator().Runtime.Image+":"+tag)
		if !errors.Is(err, ErrNotPublished) {
			return artifact, err
		}
		b.progress(fmt.Sprintf("runtime %s is not published: simulating it", tag))
	}
	return b.simulate(ctx, tag, variant)
}

// simulate builds the image of the contract simulator under a tag of the runtime.
func (b *Builder) simulate(ctx context.Context, tag string, variant Variant) (Artifact, error) {
	flags, err := variant.flags()
	if err != nil {
		return Artifact{}, err
	}
	runtime := b.operator().Runtime
	if runtime.Package == "" {
		return Artifact{}, badInput(fmt.Errorf("runtime %s can't be pulled, and operator.runtime.package of the compatibility file names no program that stands in for it: name one, or give --mirror or --published", tag))
	}
	if variant != VariantNone {
		tag += "-" + string(variant)
	}
	binary, err := b.simulatorProgram(ctx, runtime.Package)
	if err != nil {
		return Artifact{}, err
	}
	title := path.Base(runtime.Image)
	image, err := b.imageOf(b.simulatorImage(title, title, tag, append([]string{"--version=" + tag}, flags...)), binary)
	if err != nil {
		return Artifact{}, err
	}
	artifact := image.artifact(runtime.Image + ":" + tag)
	artifact.Simulated = true
	return artifact, nil
}

// simulatorImage describes an image of a runtime's stand-in with the arguments.
func (b *Builder) simulatorImage(title, program, version string, args []string) imageSpec {
	labels := b.labels(title, version)
	labels[simulatedLabel] = "true"
	return imageSpec{Path: "/" + program, Cmd: args, User: "10001:10001", Port: 9000, Arch: b.arch(), Labels: labels}
}
