package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

// Published are the registries that releases are published in.
type Published struct {
	// Mirrors stand in for registries. The first one for a host counts.
	Mirrors []Mirror
}

// location is where a published reference is pulled from.
func (p *Published) location(ref string) string {
	for _, mirror := range p.Mirrors {
		if rewritten := mirror.Rewrite(ref); rewritten != ref {
			return rewritten
		}
	}
	return ref
}

// published pulls the chart of a release and the operator image that the chart names.
func (b *Builder) published(ctx context.Context, version string) (Release, error) {
	chart, err := b.pull(ctx, b.operator().Chart.Repository+":"+version)
	if err != nil {
		return Release{}, err
	}
	content, err := chart.Image()
	if err != nil {
		return Release{}, err
	}
	metadata, err := chartMetadata(content)
	if err != nil {
		return Release{}, infrastructure(fmt.Errorf("read the published chart %s: %w", chart.Ref, err))
	}
	image, err := b.pull(ctx, b.operator().Image.Repository+":"+imageTag(metadata))
	if err != nil {
		return Release{}, err
	}
	return Release{Version: version, Source: SourcePublished, Chart: chart, Image: image}, nil
}

// pull brings a published artifact into the cache. What the tag points to is looked up each
// time; only its content is taken from the cache.
func (b *Builder) pull(ctx context.Context, ref string) (Artifact, error) {
	location := b.Published.location(ref)
	tag, err := name.NewTag(location, name.StrictValidation)
	if err != nil {
		return Artifact{}, badInput(fmt.Errorf("pull %s: %w", ref, err))
	}
	b.progress("looking for " + location)
	platform := v1.Platform{OS: "linux", Architecture: b.arch()}
	options := []remote.Option{
		remote.WithContext(ctx),
		remote.WithPlatform(platform),
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(Transport()),
	}
	descriptor, err := remote.Get(tag, options...)
	if err != nil {
		return Artifact{}, pullError(ctx, location, err)
	}
	found, err := b.store().put(contentkey.Of(map[string]string{
		"recipe":    recipe,
		"published": descriptor.Digest.String(),
		"arch":      b.arch(),
	}), func(path layout.Path) error {
		b.progress("pulling " + location)
		return pullError(ctx, location, download(path, tag.Context(), descriptor, platform, options))
	})
	if err != nil {
		return Artifact{}, err
	}
	return found.artifact(ref), nil
}

// download writes what the descriptor points to into a layout: of an index, the layers of one
// platform and the manifests of all, so that the digest of the index stays valid.
func download(path layout.Path, repository name.Repository, descriptor *remote.Descriptor, platform v1.Platform, options []remote.Option) error {
	if !descriptor.MediaType.IsIndex() {
		image, err := descriptor.Image()
		if err != nil {
			return err
		}
		return path.AppendImage(image)
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return err
	}
	matching, err := partial.FindManifests(index, match.Platforms(platform))
	if err != nil {
		return err
	}
	if len(matching) == 0 {
		return &causedError{fmt.Errorf("there is no image for %s", platform), ErrNotPublished}
	}
	children, err := index.IndexManifest()
	if err != nil {
		return err
	}
	for _, child := range children.Manifests {
		manifest, err := remote.Get(repository.Digest(child.Digest.String()), options...)
		if err != nil {
			return err
		}
		if err := path.WriteBlob(child.Digest, io.NopCloser(bytes.NewReader(manifest.Manifest))); err != nil {
			return err
		}
	}
	if err := path.WriteBlob(descriptor.Digest, io.NopCloser(bytes.NewReader(descriptor.Manifest))); err != nil {
		return err
	}
	if err := path.AppendDescriptor(descriptor.Descriptor); err != nil {
		return err
	}
	image, err := descriptor.Image()
	if err != nil {
		return err
	}
	return path.AppendImage(image)
}

// pullError tells what is not there from what can't be reached.
func pullError(ctx context.Context, location string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("pull %s: %w", location, err)
	var answer *transport.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("pull %s: %w", location, ctx.Err())
	case errors.Is(err, ErrNotPublished):
		return wrapped
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return &causedError{wrapped, ErrNotPublished}
	default:
		return infrastructure(wrapped)
	}
}
