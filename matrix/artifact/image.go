package artifact

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/stream"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trussiumhq/trussium-operator/matrix/archive"
	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

// epoch is the time of everything that has no time of its own: the one of the build would change the digest.
var epoch = time.Unix(0, 0).UTC()

// imageSpec describes an image of one static binary in an otherwise empty root.
type imageSpec struct {
	// Path is the absolute path of the binary in the image. It is the entrypoint.
	Path string
	// Cmd are the default arguments.
	Cmd []string
	// User is the numeric UID:GID that the binary runs as.
	User string
	// Port is the exposed port; 0 for none.
	Port int
	// Arch is the architecture of the binary.
	Arch string
	// Labels are the labels of the image.
	Labels map[string]string
	// Created is the time that the image says it was made at. Default: the epoch.
	Created time.Time `json:",omitzero"`
}

// build is the image with the binary that the file holds. Its layer is compressed while it is
// written to a layout, so it can be written only once.
func (s imageSpec) build(file string) (v1.Image, error) {
	config := v1.Config{
		Entrypoint: []string{s.Path},
		Cmd:        s.Cmd,
		User:       s.User,
		Labels:     s.Labels,
	}
	if s.Port != 0 {
		config.ExposedPorts = map[string]struct{}{fmt.Sprintf("%d/tcp", s.Port): {}}
	}
	created := v1.Time{Time: epoch}
	if !s.Created.IsZero() {
		created = v1.Time{Time: s.Created.UTC()}
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{
		Created:      created,
		OS:           "linux",
		Architecture: s.Arch,
		Config:       config,
		RootFS:       v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer:   stream.NewLayer(s.layer(file), stream.WithMediaType(types.OCILayer)),
		History: v1.History{Created: created, CreatedBy: "matrix", Comment: "static binary " + s.Path},
	})
}

// layer is a tar archive of the binary: owned by root, executable by everyone, without a time.
func (s imageSpec) layer(file string) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		writer.CloseWithError(s.writeLayer(writer, file))
	}()
	return reader
}

func (s imageSpec) writeLayer(w io.Writer, file string) error {
	layer := tar.NewWriter(w)
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     strings.TrimPrefix(s.Path, "/"),
		Mode:     0o755,
		ModTime:  epoch,
	}
	return errors.Join(archive.WriteFile(layer, header, file), layer.Close())
}

// recipe changes when the same inputs give another artifact than before: it invalidates what
// is in the cache.
const recipe = "1"

// imageKey is the content key of the image of the binary that the file holds.
func imageKey(spec imageSpec, file string) (string, error) {
	digest, err := fileDigest(file)
	if err != nil {
		return "", infrastructure(fmt.Errorf("hash the binary %s: %w", file, err))
	}
	description, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	return contentkey.Of(map[string]string{"recipe": recipe, "binary": digest, "image": string(description)}), nil
}

// imageOf is the image of the binary that the file holds, from the cache if it is there.
func (b *Builder) imageOf(spec imageSpec, file string) (entry, error) {
	key, err := imageKey(spec, file)
	if err != nil {
		return entry{}, err
	}
	return b.store().putImage(key, spec, file)
}

// putImage keeps the image of the binary that the file holds.
func (s store) putImage(key string, spec imageSpec, file string) (entry, error) {
	return s.put(key, func(path layout.Path) error {
		image, err := spec.build(file)
		if err == nil {
			err = path.AppendImage(image)
		}
		if err != nil {
			return infrastructure(fmt.Errorf("build the image of %s: %w", file, err))
		}
		return nil
	})
}

func fileDigest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	digest, _, err := v1.SHA256(f)
	return digest.String(), err
}
