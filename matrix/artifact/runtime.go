package artifact

import (
	"context"
	"errors"
	"fmt"
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
	if b.Published != nil && variant == VariantNone {
		artifact, err := b.pull(ctx, RuntimeRepository+":"+tag)
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
	if variant != VariantNone {
		tag += "-" + string(variant)
	}
	binary, err := b.simulatorProgram(ctx)
	if err != nil {
		return Artifact{}, err
	}
	image, err := b.imageOf(simulatorImage("trussium", tag, append([]string{"--version=" + tag}, flags...), b.arch()), binary)
	if err != nil {
		return Artifact{}, err
	}
	artifact := image.artifact(RuntimeRepository + ":" + tag)
	artifact.Simulated = true
	return artifact, nil
}

// simulatorImage describes an image of the simulator with the arguments.
func simulatorImage(title, version string, args []string, arch string) imageSpec {
	labels := labels(title, version)
	labels[simulatedLabel] = "true"
	return imageSpec{Path: "/trussium", Cmd: args, User: "10001:10001", Port: 9000, Arch: arch, Labels: labels}
}
