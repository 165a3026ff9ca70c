package oci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/trussiumhq/trussium-operator/matrix/archive"
)

// Annotations of an entry in the index of a layout with the reference that it has elsewhere. By the second one
// containerd names the image that it imports.
const (
	refAnnotation       = "org.opencontainers.image.ref.name"
	imageNameAnnotation = "io.containerd.image.name"
)

// WriteArchive writes an OCI image layout with an image into a tar archive. The same image gives the same bytes. What
// is attached to the image does not belong there: containerd takes all that it finds for images, and fails.
func WriteArchive(file string, image Artifact) error {
	dir, err := os.MkdirTemp(filepath.Dir(file), ".layout-")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := appendImage(path, image); err != nil {
		return fmt.Errorf("write %s to %s: %w", image.Ref, file, err)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := errors.Join(archive.Write(out, dir), out.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func appendImage(path layout.Path, image Artifact) error {
	index, ok := image.Content.(v1.ImageIndex)
	if !ok {
		return errors.New("it is not an index of images")
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{refAnnotation: image.Ref, imageNameAnnotation: image.Ref}))
}
