package kind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/trussiumhq/trussium-operator/matrix/archive"
)

// loadImages loads the images into the nodes, for this machine's platform alone. Those without a
// mirror are left to the nodes, which pull them. A layout keeps the digests, unlike the archives of
// engines; it is in dir meanwhile.
func loadImages(ctx context.Context, dir string, into []nodes.Node, refs []string, mirrors map[string]string) error {
	defer os.RemoveAll(dir)
	images, err := layout.Write(dir, empty.Index)
	if err != nil {
		return fmt.Errorf("begin a layout of the images in %s: %w", dir, err)
	}
	found := false
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
		if err := addImage(images, ref, image); err != nil {
			return fmt.Errorf("read the image %s: %w", ref, err)
		}
		found = true
	}
	if !found {
		return nil
	}
	for _, node := range into {
		reader, writer := io.Pipe()
		go func() { writer.CloseWithError(archive.Write(writer, dir)) }()
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

// containerdName is containerd's annotation for the name of an image in a layout.
const containerdName = "io.containerd.image.name"

// addImage adds the image to a layout under its tag, and under its digest, by which a pod may name
// it, too.
func addImage(to layout.Path, ref string, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	repository, _, _ := strings.Cut(ref, "@")
	if i := strings.LastIndex(repository, ":"); i > strings.LastIndex(repository, "/") {
		repository = repository[:i]
	}
	for _, name := range []string{ref, repository + "@" + digest.String()} {
		err := to.AppendImage(image, layout.WithAnnotations(map[string]string{containerdName: name}))
		if err != nil {
			return err
		}
	}
	return nil
}
