package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Image is an unpacked image.
type Image struct {
	// ID is the digest of the image's configuration.
	ID string
	// Tags and Digests are the full references it was pulled by, and those of its manifest.
	Tags, Digests []string
	// Root is the folder with the image's files, which nobody may change.
	Root string
	// Size is the size of its compressed layers in bytes.
	Size uint64
	// Config is how its author wants it run.
	Config v1.Config
}

// Store pulls images and keeps them unpacked, one folder for each image, named by content.
type Store struct {
	dir       string
	mirrors   Mirrors
	transport http.RoundTripper

	// unpacking lets one image be unpacked at a time: two references can be one image.
	unpacking sync.Mutex
	mu        sync.Mutex
	images    map[string]*Image // by ID
	names     map[string]string // full reference, by tag or digest, to ID
}

// NewStore keeps images in the folder dir. All connections are made by transport.
func NewStore(dir string, mirrors Mirrors, transport http.RoundTripper) *Store {
	return &Store{
		dir:       dir,
		mirrors:   mirrors,
		transport: transport,
		images:    map[string]*Image{},
		names:     map[string]string{},
	}
}

// Pull fetches the manifest that reference names now, unpacks the image unless it is there
// already, and returns its ID.
func (s *Store) Pull(ctx context.Context, reference string, auth authn.Authenticator) (string, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return "", fmt.Errorf("pull %q: %w", reference, err)
	}
	source, err := s.mirrors.Resolve(ref)
	if err != nil {
		return "", fmt.Errorf("pull %q: %w", reference, err)
	}
	id, err := s.pull(ctx, ref, source, auth)
	if err != nil && source != ref {
		return "", fmt.Errorf("pull %q from its mirror as %s: %w", reference, source, err)
	}
	if err != nil {
		return "", fmt.Errorf("pull %q: %w", reference, err)
	}
	return id, nil
}

func (s *Store) pull(ctx context.Context, ref, source name.Reference, auth authn.Authenticator) (string, error) {
	descriptor, err := remote.Get(source,
		remote.WithContext(ctx),
		remote.WithTransport(s.transport),
		remote.WithAuth(auth),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return "", err
	}
	pulled, err := descriptor.Image()
	if err != nil {
		return "", err
	}
	id, err := pulled.ConfigName()
	if err != nil {
		return "", err
	}
	s.unpacking.Lock()
	defer s.unpacking.Unlock()
	if !s.has(id.String()) {
		image, err := s.unpack(id, pulled)
		if err != nil {
			return "", err
		}
		s.mu.Lock()
		s.images[image.ID] = image
		s.mu.Unlock()
	}
	s.addNames(id.String(), ref, descriptor.Digest)
	return id.String(), nil
}

func (s *Store) has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.images[id] != nil
}

// unpack writes the layers into a folder that gets its final name when it is complete.
func (s *Store) unpack(id v1.Hash, pulled v1.Image) (*Image, error) {
	config, err := pulled.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := pulled.Layers()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	partial, err := os.MkdirTemp(s.dir, "partial-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(partial)
	if err := os.Chmod(partial, 0o755); err != nil { // it becomes the container's /
		return nil, err
	}
	image := &Image{ID: id.String(), Root: filepath.Join(s.dir, id.Algorithm+"-"+id.Hex), Config: config.Config}
	for _, layer := range layers {
		size, err := unpackLayer(partial, layer)
		if err != nil {
			return nil, err
		}
		image.Size += uint64(size)
	}
	// The kubelet takes an image of size 0 for a broken one.
	image.Size = max(image.Size, 1)
	if err := os.Rename(partial, image.Root); err != nil {
		return nil, err
	}
	return image, nil
}

func unpackLayer(root string, layer v1.Layer) (size int64, err error) {
	digest, err := layer.Digest()
	if err != nil {
		return 0, err
	}
	if size, err = layer.Size(); err != nil {
		return 0, err
	}
	content, err := layer.Uncompressed()
	if err != nil {
		return 0, fmt.Errorf("layer %s: %w", digest, err)
	}
	if err := errors.Join(Unpack(root, content), content.Close()); err != nil {
		return 0, fmt.Errorf("layer %s: %w", digest, err)
	}
	return size, nil
}

// addNames gives an image the reference it was pulled by and that of its manifest. A tag
// that named another image moves.
func (s *Store) addNames(id string, ref name.Reference, manifest v1.Hash) {
	s.mu.Lock()
	defer s.mu.Unlock()
	image := s.images[id]
	digest := displayDigest(ref, manifest.String())
	if !slices.Contains(image.Digests, digest) {
		image.Digests = append(slices.Clone(image.Digests), digest)
	}
	s.names[digest] = id
	if _, byDigest := ref.(name.Digest); byDigest {
		return
	}
	tag := displayName(ref)
	if old := s.images[s.names[tag]]; old != nil && old != image {
		old.Tags = slices.DeleteFunc(slices.Clone(old.Tags), func(t string) bool { return t == tag })
	}
	if !slices.Contains(image.Tags, tag) {
		image.Tags = append(slices.Clone(image.Tags), tag)
	}
	s.names[tag] = id
}

// Find returns the image by ID or by a reference that it was pulled by.
func (s *Store) Find(reference string) (Image, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if image := s.images[reference]; image != nil {
		return *image, true
	}
	ref, err := name.ParseReference(reference)
	if err != nil {
		return Image{}, false
	}
	image := s.images[s.names[displayName(ref)]]
	if image == nil {
		return Image{}, false
	}
	return *image, true
}

// List returns all images, ordered by ID.
func (s *Store) List() []Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	var images []Image
	for _, image := range s.images {
		images = append(images, *image)
	}
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.ID, b.ID) })
	return images
}

// Remove deletes an image by ID or reference; one that is not there is no error.
func (s *Store) Remove(reference string) error {
	image, ok := s.Find(reference)
	if !ok {
		return nil
	}
	s.mu.Lock()
	delete(s.images, image.ID)
	for name, id := range s.names {
		if id == image.ID {
			delete(s.names, name)
		}
	}
	s.mu.Unlock()
	if err := os.RemoveAll(image.Root); err != nil {
		return fmt.Errorf("remove image %s: %w", image.ID, err)
	}
	return nil
}
