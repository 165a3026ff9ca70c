package trial

import (
	"context"
	"slices"
	"strings"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
)

// Tags are those of the runtime images that scenarios roll between.
type Tags struct {
	From, To string
	// Third is another one; empty if there is none.
	Third string
	// NeverReady asks for an image that does not become ready, which only the runtime's simulator has.
	NeverReady bool
}

// Usual are the tags for the scenarios of this repository.
var Usual = Tags{From: "1.27.0", To: "1.30.0", Third: "1.29.1", NeverReady: true}

// Images are the runtime images that scenarios roll between. One that was not asked for is empty.
type Images struct {
	// Tags are what was asked for.
	Tags Tags
	// From, To and Third are good images.
	From, To, Third artifact.Artifact
	// NeverReady starts and does not become ready.
	NeverReady artifact.Artifact
}

// Resolve resolves the images.
func Resolve(ctx context.Context, builder *artifact.Builder, tags Tags) (Images, error) {
	images := Images{Tags: tags}
	for _, wanted := range []struct {
		into    *artifact.Artifact
		asked   bool
		tag     string
		variant artifact.Variant
	}{
		{&images.From, true, tags.From, artifact.VariantNone},
		{&images.To, true, tags.To, artifact.VariantNone},
		{&images.Third, tags.Third != "", tags.Third, artifact.VariantNone},
		{&images.NeverReady, tags.NeverReady, tags.To, artifact.VariantNeverReady},
	} {
		if !wanted.asked {
			continue
		}
		resolved, err := builder.Runtime(ctx, wanted.tag, wanted.variant)
		if err != nil {
			return Images{}, err
		}
		*wanted.into = resolved
	}
	return images, nil
}

// Artifacts are the images that were asked for.
func (i Images) Artifacts() []artifact.Artifact {
	return slices.DeleteFunc([]artifact.Artifact{i.From, i.To, i.Third, i.NeverReady}, func(a artifact.Artifact) bool { return a.Ref == "" })
}

// values name the images to the scenarios.
func (i Images) values() scenario.Values {
	repository, _, _ := strings.Cut(i.To.Ref, ":"+i.Tags.To)
	values := scenario.Values{Repository: repository, From: i.Tags.From, To: i.Tags.To, Third: i.Tags.Third, Digest: i.To.Digest}
	if i.Tags.NeverReady {
		values.NeverReady = i.Tags.To + "-" + string(artifact.VariantNeverReady)
	}
	return values
}
