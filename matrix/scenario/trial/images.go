package trial

import (
	"context"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// Tags of the runtime image.
const (
	tagFrom  = "1.27.0"
	tagTo    = "1.30.0"
	tagThird = "1.29.1"
)

// Images are the runtime images that scenarios roll between.
type Images struct {
	// From, To and Third are good images.
	From, To, Third artifact.Artifact
	// NeverReady starts and does not become ready.
	NeverReady artifact.Artifact
}

// Resolve resolves the images.
func Resolve(ctx context.Context, builder *artifact.Builder) (Images, error) {
	var images Images
	for _, wanted := range []struct {
		into    *artifact.Artifact
		tag     string
		variant artifact.Variant
	}{
		{&images.From, tagFrom, artifact.VariantNone},
		{&images.To, tagTo, artifact.VariantNone},
		{&images.Third, tagThird, artifact.VariantNone},
		{&images.NeverReady, tagTo, artifact.VariantNeverReady},
	} {
		resolved, err := builder.Runtime(ctx, wanted.tag, wanted.variant)
		if err != nil {
			return Images{}, err
		}
		*wanted.into = resolved
	}
	return images, nil
}

func (i Images) artifacts() []artifact.Artifact {
	return []artifact.Artifact{i.From, i.To, i.Third, i.NeverReady}
}

// values name the images to the scenarios.
func (i Images) values() scenario.Values {
	return scenario.Values{
		From: tagFrom, To: tagTo, Third: tagThird,
		NeverReady: tagTo + "-" + string(artifact.VariantNeverReady),
		Digest:     i.To.Digest,
	}
}
