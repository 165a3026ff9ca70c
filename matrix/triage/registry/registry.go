// Package registry is the edge of triage to the registry of the runtime's images. It reads
// manifests and configurations, never layers.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/triage"
)

const (
	// imageTimeout bounds how long one image is looked at.
	imageTimeout = time.Minute
	// maxPlatforms bounds how many platforms of an image are read.
	maxPlatforms = 16
)

// Client implements triage.Registry.
type Client struct {
	// mirrors stand in for registries. The first one for a host counts.
	mirrors []artifact.Mirror
	puller  *remote.Puller
}

// New returns a client that asks the registry, or the mirror that stands in for it, with the
// credentials of the user's container tools, if there are any.
func New(mirrors []artifact.Mirror) (*Client, error) {
	puller, err := remote.NewPuller(
		remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(artifact.Transport()),
		remote.WithUserAgent("trussium-matrix"),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the access to registries: %w", err)
	}
	return &Client{mirrors: mirrors, puller: puller}, nil
}

// CheckRepository returns an error unless images can be in that repository: HOST/PATH.
func CheckRepository(repository string) error {
	if _, err := name.NewRepository(repository, name.StrictValidation); err != nil {
		return fmt.Errorf("the repository of the images %q: write HOST/PATH, as in %s: %w", repository, artifact.RuntimeRepository, err)
	}
	return nil
}

// Image implements triage.Registry. ref is HOST/REPOSITORY:TAG.
func (c *Client) Image(ctx context.Context, ref string) triage.Image {
	ctx, cancel := context.WithTimeout(ctx, imageTimeout)
	defer cancel()
	image, err := c.image(ctx, ref)
	var answer *transport.Error
	switch {
	case err == nil:
		return image
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return triage.Image{State: triage.ImageMissing}
	default:
		return triage.Image{State: triage.ImageUnknown, Problem: err.Error()}
	}
}

// location is where a published reference is read from.
func (c *Client) location(ref string) string {
	for _, mirror := range c.mirrors {
		if rewritten := mirror.Rewrite(ref); rewritten != ref {
			return rewritten
		}
	}
	return ref
}

func (c *Client) image(ctx context.Context, ref string) (triage.Image, error) {
	tag, err := name.NewTag(c.location(ref), name.StrictValidation)
	if err != nil {
		return triage.Image{}, err
	}
	descriptor, err := c.puller.Get(ctx, tag)
	if err != nil {
		return triage.Image{}, err
	}
	found := triage.Image{State: triage.ImagePresent, Digest: descriptor.Digest.String()}
	if !descriptor.MediaType.IsIndex() {
		image, err := descriptor.Image()
		if err != nil {
			return triage.Image{}, partial(err)
		}
		platform, err := read(image, nil)
		found.Platforms = append(found.Platforms, platform)
		return found, partial(err)
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return triage.Image{}, partial(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return triage.Image{}, partial(err)
	}
	for _, child := range manifest.Manifests {
		// Attestations are listed as images for a platform that does not exist.
		if !child.MediaType.IsImage() || child.Platform != nil && child.Platform.OS == "unknown" {
			continue
		}
		if len(found.Platforms) == maxPlatforms {
			return triage.Image{}, fmt.Errorf("it has more than %d platforms", maxPlatforms)
		}
		part, err := c.puller.Get(ctx, tag.Context().Digest(child.Digest.String()))
		if err != nil {
			return triage.Image{}, partial(err)
		}
		image, err := part.Image()
		if err != nil {
			return triage.Image{}, partial(err)
		}
		platform, err := read(image, child.Platform)
		if err != nil {
			return triage.Image{}, partial(err)
		}
		found.Platforms = append(found.Platforms, platform)
	}
	return found, nil
}

// partial is the error of an image of which only a part is there: it is not missing.
func partial(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("a part of it can't be read: %s", err.Error())
}

// read takes what the contract speaks of from the configuration of an image.
func read(image v1.Image, platform *v1.Platform) (triage.Platform, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return triage.Platform{}, err
	}
	if platform == nil {
		platform = file.Platform()
	}
	name := platform.OS + "/" + platform.Architecture
	if platform.Variant != "" {
		name += "/" + platform.Variant
	}
	config := file.Config
	out := triage.Config{
		User: config.User, StopSignal: config.StopSignal,
		Entrypoint: config.Entrypoint, Cmd: config.Cmd, Env: map[string]string{}, Labels: config.Labels,
	}
	if config.Healthcheck != nil {
		out.Healthcheck = config.Healthcheck.Test
	}
	for port := range config.ExposedPorts {
		out.Ports = append(out.Ports, port)
	}
	slices.Sort(out.Ports)
	for _, variable := range config.Env {
		key, value, _ := strings.Cut(variable, "=")
		out.Env[key] = value
	}
	return triage.Platform{Name: name, Config: out}, nil
}
