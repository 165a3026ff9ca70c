package kind

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// loadImages loads the images into the nodes, for this machine's platform alone. Those without a
// mirror are left to the nodes, which pull them.
func loadImages(ctx context.Context, into []nodes.Node, refs []string, mirrors map[string]string) error {
	archive := imageArchive{}
	for _, ref := range refs {
		host, path, _ := strings.Cut(ref, "/")
		base, mirrored := mirrors[host]
		if !mirrored {
			continue
		}
		image, err := fetch(ctx, strings.TrimPrefix(base, "http://")+"/"+path)
		if err != nil {
			return fmt.Errorf("fetch the image %s: %w", ref, err)
		}
		if err := archive.add(ref, image); err != nil {
			return fmt.Errorf("read the image %s: %w", ref, err)
		}
	}
	if len(archive.images) == 0 {
		return nil
	}
	for _, node := range into {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(archive.write(writer)) }()
		err := nodeutils.LoadImageArchive(node, reader)
		reader.CloseWithError(errors.New("the node reads no more"))
		if err != nil {
			return fmt.Errorf("load images into the node %s: %w", node, err)
		}
	}
	return nil
}

func fetch(ctx context.Context, ref string) (v1.Image, error) {
	parsed, err := name.ParseReference(ref, name.StrictValidation, name.Insecure)
	if err != nil {
		return nil, err
	}
	return remote.Image(parsed, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
}

// imageArchive is an OCI layout in a tar file, in which containerd finds images under full names. A
// layout keeps the digests, unlike the archives of engines.
type imageArchive struct {
	images  []v1.Image
	entries []v1.Descriptor
}

// containerdName is containerd's annotation for the name of an image in a layout.
const containerdName = "io.containerd.image.name"

// add adds an image under its tag, and under its digest, by which a pod may name it, too.
func (a *imageArchive) add(ref string, image v1.Image) error {
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	mediaType, err := image.MediaType()
	if err != nil {
		return err
	}
	repository, _, _ := strings.Cut(ref, "@")
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository = repository[:i]
	}
	a.images = append(a.images, image)
	for _, name := range []string{ref, repository + "@" + digest.String()} {
		a.entries = append(a.entries, v1.Descriptor{
			MediaType: mediaType, Digest: digest, Size: int64(len(manifest)),
			Annotations: map[string]string{containerdName: name},
		})
	}
	return nil
}

// write writes each blob once.
func (a *imageArchive) write(out io.Writer) error {
	w := layoutWriter{tar: tar.NewWriter(out), written: map[v1.Hash]bool{}}
	for _, image := range a.images {
		if err := w.image(image); err != nil {
			return err
		}
	}
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: a.entries})
	if err != nil {
		return err
	}
	return errors.Join(
		w.file("index.json", int64(len(index)), bytes.NewReader(index)),
		w.file("oci-layout", int64(len(layoutVersion)), strings.NewReader(layoutVersion)),
		w.tar.Close())
}

const layoutVersion = `{"imageLayoutVersion":"1.0.0"}`

type layoutWriter struct {
	tar     *tar.Writer
	written map[v1.Hash]bool
}

func (w layoutWriter) image(image v1.Image) error {
	manifest, err := image.RawManifest()
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	configDigest, err := image.ConfigName()
	if err != nil {
		return err
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	if err := errors.Join(w.blob(digest, int64(len(manifest)), bytes.NewReader(manifest)), w.blob(configDigest, int64(len(config)), bytes.NewReader(config))); err != nil {
		return err
	}
	for _, layer := range layers {
		if err := w.layer(layer); err != nil {
			return err
		}
	}
	return nil
}

func (w layoutWriter) layer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil || w.written[digest] {
		return err
	}
	size, err := layer.Size()
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	return w.blob(digest, size, content)
}

func (w layoutWriter) blob(digest v1.Hash, size int64, content io.Reader) error {
	if w.written[digest] {
		return nil
	}
	w.written[digest] = true
	return w.file("blobs/"+digest.Algorithm+"/"+digest.Hex, size, content)
}

func (w layoutWriter) file(name string, size int64, content io.Reader) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: time.Unix(0, 0)}); err != nil {
		return err
	}
	_, err := io.Copy(w.tar, content)
	return err
}
