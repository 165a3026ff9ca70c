package static

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// ImagesExist is the check that the newer chart can be pulled for.
var ImagesExist = check.Check{
	ID:    "images-exist",
	Claim: "The registry has every image that the newer chart's pods and hooks name, as its digest shows.",
}

// JudgeImages judges ImagesExist by asking the registry for the manifest of each image.
func JudgeImages(ctx context.Context, e Edge) (check.Result, error) {
	rendered, err := e.renderUpgrade(ctx, e.Values, nil)
	if err != nil {
		return refused(err)
	}
	objects, err := objectsOf(rendered.after)
	if err != nil {
		return refused(err)
	}
	var found []image
	for _, ref := range imagesOf(objects) {
		image, err := head(ctx, ref, e.Local(ref))
		if err != nil {
			return check.Result{}, err
		}
		found = append(found, image)
	}
	return judgeImages(found), nil
}

// image is what the registry says of an image.
type image struct {
	// ref is the reference in the chart.
	ref string
	// digest is that of its manifest or index; empty if there is none.
	digest string
	// refusal says why there can't be one.
	refusal string
}

// imagesOf are the images that pods of the objects run, each once.
func imagesOf(objects []object) []string {
	var refs []string
	for _, o := range objects {
		spec, ok := podSpec(o)
		if !ok {
			continue
		}
		for _, list := range []string{"initContainers", "containers"} {
			containers, _ := spec[list].([]any)
			for _, container := range containers {
				fields, _ := container.(map[string]any)
				ref, _ := fields["image"].(string)
				if !slices.Contains(refs, ref) {
					refs = append(refs, ref)
				}
			}
		}
	}
	return refs
}

// head asks for the manifest of a reference at the place where it is served.
func head(ctx context.Context, ref, local string) (image, error) {
	found := image{ref: ref}
	where, err := name.ParseReference(local)
	if err != nil {
		found.refusal = err.Error()
		return found, nil
	}
	descriptor, err := remote.Head(where, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithTransport(artifact.Transport()))
	var answer *transport.Error
	switch {
	case err == nil:
		found.digest = descriptor.Digest.String()
		return found, nil
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		found.refusal = "the registry does not have it"
		return found, nil
	default:
		return found, fmt.Errorf("ask the registry for %s: %w", local, err)
	}
}

func judgeImages(images []image) check.Result {
	var r check.Result
	for _, image := range images {
		if image.digest == "" {
			r.Fail("image %q can't be pulled: %s", image.ref, image.refusal)
			continue
		}
		r.See("image %s is %s", image.ref, image.digest)
	}
	return r
}
