// Package image pulls container images from registries and unpacks them into folders.
package image

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// dockerHub is how the library calls the default registry; people call it docker.io.
const dockerHub = "index.docker.io"

// Mirrors maps a registry host to the base URL that serves it instead.
type Mirrors map[string]string

// Resolve returns the reference to pull instead of ref: the same repository and tag or
// digest below the mirror's base URL, or ref itself if its registry has no mirror.
func (m Mirrors) Resolve(ref name.Reference) (name.Reference, error) {
	base, ok := m[registryHost(ref)]
	if !ok {
		return ref, nil
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", registryHost(ref), err)
	}
	var options []name.Option
	if u.Scheme == "http" {
		options = append(options, name.Insecure)
	}
	repository := u.Host + strings.TrimSuffix(u.Path, "/") + "/" + ref.Context().RepositoryStr()
	separator := ":"
	if _, ok := ref.(name.Digest); ok {
		separator = "@"
	}
	mirrored, err := name.ParseReference(repository+separator+ref.Identifier(), options...)
	if err != nil {
		return nil, fmt.Errorf("mirror of %s: %w", registryHost(ref), err)
	}
	return mirrored, nil
}

func registryHost(ref name.Reference) string {
	host := ref.Context().RegistryStr()
	if host == dockerHub {
		return "docker.io"
	}
	return host
}

// displayName is a reference in full, as container runtimes report it.
func displayName(ref name.Reference) string {
	return strings.Replace(ref.Name(), dockerHub, "docker.io", 1)
}

// displayDigest is the reference of a manifest by digest, as container runtimes report it.
func displayDigest(ref name.Reference, digest string) string {
	return strings.Replace(ref.Context().Name(), dockerHub, "docker.io", 1) + "@" + digest
}
