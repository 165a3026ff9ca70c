package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/authn/github"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
)

// TakenError says that a reference stands for something else already.
type TakenError struct {
	// Ref is the reference; Have what it stands for, Want what it would.
	Ref, Have, Want string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("%s is %s already, not %s", e.Ref, e.Have, e.Want)
}

// Registry is where artifacts are pushed to, as HOST[:PORT][/PREFIX]: the host of their references is replaced by
// it. Registries on loopback are spoken to by plain HTTP. Credentials are those of docker login, and for ghcr.io
// the environment's GITHUB_TOKEN.
type Registry struct {
	mirror artifact.Mirror
}

// PublishedHost is the host of the references that releases are published under.
const PublishedHost = "ghcr.io"

// ParseRegistry reads HOST[:PORT][/PREFIX].
func ParseRegistry(text string) (Registry, error) {
	mirror, err := artifact.ParseMirror(PublishedHost + "=" + text)
	return Registry{mirror: mirror}, err
}

// Location is where an artifact with that reference is pushed to.
func (r Registry) Location(ref string) string {
	return r.mirror.Rewrite(ref)
}

// Free checks that none of the references stands for something else. The error is then a *TakenError.
func (r Registry) Free(ctx context.Context, artifacts ...Artifact) error {
	for _, artifact := range artifacts {
		tag, digest, err := r.target(artifact)
		if err != nil {
			return err
		}
		have, err := remote.Head(tag, options(ctx)...)
		switch {
		case notFound(err):
		case err != nil:
			return fmt.Errorf("look for %s: %w", tag, err)
		case have.Digest.String() != digest:
			return &TakenError{Ref: tag.String(), Have: have.Digest.String(), Want: digest}
		}
	}
	return nil
}

// Push pushes the artifacts, one after the other: a chart is the last, after the images that it names. A tag
// appears when all that belongs to it is there. What the registry has already is not sent again.
func (r Registry) Push(ctx context.Context, artifacts ...Artifact) error {
	for _, artifact := range artifacts {
		tag, digest, err := r.target(artifact)
		if err != nil {
			return err
		}
		if err := remote.Push(tag.Context().Digest(digest), artifact.Content, options(ctx)...); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		for _, referrer := range artifact.Referrers {
			attached, err := referrer.Digest()
			if err == nil {
				err = remote.Push(tag.Context().Digest(attached.String()), referrer, options(ctx)...)
			}
			if err != nil {
				return fmt.Errorf("push what is attached to %s: %w", tag, err)
			}
		}
		if err := remote.Tag(tag, artifact.Content, options(ctx)...); err != nil {
			return fmt.Errorf("tag %s: %w", tag, err)
		}
	}
	return nil
}

// target is the tag that an artifact is pushed to, and the digest that the tag then stands for.
func (r Registry) target(a Artifact) (name.Tag, string, error) {
	tag, err := name.NewTag(r.Location(a.Ref), name.StrictValidation)
	if err != nil {
		return name.Tag{}, "", fmt.Errorf("push %s: %w", a.Ref, err)
	}
	digest, err := a.Digest()
	return tag, digest, err
}

func options(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx),
		remote.WithTransport(artifact.Transport()),
		remote.WithAuthFromKeychain(authn.NewMultiKeychain(authn.DefaultKeychain, github.Keychain)),
	}
}

func notFound(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
