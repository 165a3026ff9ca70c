// Package oci makes what a release has for registries: images for several platforms, what is attached to them, and
// the chart; it writes them into an archive and pushes them.
package oci

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Artifact is what one reference stands for.
type Artifact struct {
	// Ref is the reference that it is published under: HOST/REPOSITORY:TAG.
	Ref string
	// Content is a v1.ImageIndex or a v1.Image.
	Content Content
	// Referrers are attached to the content, or to one of its platforms: each of them names its subject.
	Referrers []v1.Image
}

// Digest is the digest of the content.
func (a Artifact) Digest() (string, error) {
	digest, err := a.Content.Digest()
	if err != nil {
		return "", fmt.Errorf("compute the digest of %s: %w", a.Ref, err)
	}
	return digest.String(), nil
}

// Content is what images and indexes of images have in common.
type Content interface {
	partial.Describable
	partial.WithRawManifest
}

// Document is a file that is attached to an artifact.
type Document struct {
	// Name is the file name.
	Name      string
	MediaType string
	Content   []byte
}

// Media types and content of a config that there is none of, and the annotation with a file's name.
const (
	emptyMediaType  = "application/vnd.oci.empty.v1+json"
	emptyConfig     = "{}"
	titleAnnotation = "org.opencontainers.image.title"
)

// attach is a manifest of documents whose subject is the given one. They all have the media type of the first.
func attach(subject v1.Descriptor, annotations map[string]string, documents ...Document) (v1.Image, error) {
	config := static.NewLayer([]byte(emptyConfig), emptyMediaType)
	configDescriptor, err := partial.Descriptor(config)
	if err != nil {
		return nil, err
	}
	attached := attachment{layers: map[v1.Hash]v1.Layer{}}
	manifest := v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		ArtifactType:  documents[0].MediaType,
		Config:        *configDescriptor,
		Subject:       &v1.Descriptor{MediaType: subject.MediaType, Size: subject.Size, Digest: subject.Digest},
		Annotations:   annotations,
	}
	for _, document := range documents {
		layer := static.NewLayer(document.Content, types.MediaType(document.MediaType))
		descriptor, err := partial.Descriptor(layer)
		if err != nil {
			return nil, err
		}
		descriptor.Annotations = map[string]string{titleAnnotation: document.Name}
		manifest.Layers = append(manifest.Layers, *descriptor)
		attached.layers[descriptor.Digest] = layer
	}
	if attached.manifest, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	return partial.CompressedToImage(attached)
}

// attachment is the part of an image that attached documents have.
type attachment struct {
	manifest []byte
	layers   map[v1.Hash]v1.Layer
}

func (a attachment) RawConfigFile() ([]byte, error)      { return []byte(emptyConfig), nil }
func (a attachment) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a attachment) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a attachment) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	layer, found := a.layers[digest]
	if !found {
		return nil, fmt.Errorf("there is no document %s", digest)
	}
	return layer, nil
}
