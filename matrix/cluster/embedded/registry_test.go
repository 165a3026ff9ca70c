//go:build linux

package embedded

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
)

// podImage is the image of testdata/pod, in a registry that only the mirror serves.
const podImage = "registry.example.com/test/pod:1.0"

// testRegistry is a registry on loopback that holds podImage.
type testRegistry struct {
	url    string
	digest string
	server *http.Server
}

func startRegistry() (*testRegistry, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &testRegistry{
		url:    "http://" + listener.Addr().String(),
		server: &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))},
	}
	go func() { _ = r.server.Serve(listener) }()
	image, err := buildPodImage()
	if err != nil {
		return nil, err
	}
	ref, err := name.ParseReference(listener.Addr().String()+"/test/pod:1.0", name.Insecure)
	if err != nil {
		return nil, err
	}
	if err := remote.Write(ref, image); err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	r.digest = digest.String()
	return r, err
}

func (r *testRegistry) stop() { _ = r.server.Close() }

// buildPodImage puts the program in a first layer, with files that a second one changes.
func buildPodImage() (v1.Image, error) {
	dir, err := os.MkdirTemp("", "pod-image-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	binary := filepath.Join(dir, "pod")
	if err := (gobuild.Program{Dir: ".", Package: "./testdata/pod"}).Build(ctx, binary, nil); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	first, err := layer(
		file{"app/pod", string(program), 0o755},
		file{"data/file", "first", 0o644},
		file{"data/deleted", "first", 0o644},
		file{"etc/passwd", "root:x:0:0::/:/\napp:x:10001:10002::/:/\n", 0o644},
		file{"etc/group", "root:x:0:\nextra:x:10003:app\n", 0o644})
	if err != nil {
		return nil, err
	}
	second, err := layer(
		file{"data/file", "second", 0o644},
		file{"data/.wh.deleted", "", 0o644})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, first, second)
	if err != nil {
		return nil, err
	}
	return mutate.Config(image, v1.Config{
		Entrypoint: []string{"/app/pod"},
		Cmd:        []string{"serve"},
		Env:        []string{"FROM_IMAGE=image", "FROM_BOTH=image"},
		User:       "app",
		WorkingDir: "/data",
	})
}

type file struct {
	name, content string
	mode          int64
}

func layer(files ...file) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	content := archive.Bytes()
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make a layer: %w", err)
	}
	return l, nil
}
