package artifact

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var testSpec = imageSpec{
	Path:   "/trussium",
	Cmd:    []string{"--version=1.30.0"},
	User:   "10001:10001",
	Port:   9000,
	Arch:   "arm64",
	Labels: map[string]string{"title": "test"},
}

// TestImageIsReproducible builds the same image from two files that differ in name, time and mode.
func TestImageIsReproducible(t *testing.T) {
	first := binaryFile(t, "program")
	second := binaryFile(t, "program")
	if err := os.Chtimes(second, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(second, 0o600); err != nil {
		t.Fatal(err)
	}
	other := binaryFile(t, "another program")
	digests := map[string]string{}
	for name, file := range map[string]string{"first": first, "second": second, "other": other} {
		image, err := store{dir: t.TempDir()}.putImage("key", testSpec, file)
		if err != nil {
			t.Fatal(err)
		}
		digests[name] = image.root.Digest.String()
	}
	if digests["first"] != digests["second"] || digests["first"] == digests["other"] {
		t.Errorf("got %v, want the first two equal and the other different", digests)
	}
}

func TestImageContent(t *testing.T) {
	found, err := store{dir: t.TempDir()}.putImage("key", testSpec, binaryFile(t, "program"))
	if err != nil {
		t.Fatal(err)
	}
	image, err := found.artifact(RuntimeRepository + ":1.30.0").Image()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != "arm64" || !config.Created.Equal(epoch) {
		t.Errorf("platform and time: got %s/%s %s", config.OS, config.Architecture, config.Created)
	}
	want := v1.Config{
		Entrypoint:   []string{"/trussium"},
		Cmd:          []string{"--version=1.30.0"},
		User:         "10001:10001",
		ExposedPorts: map[string]struct{}{"9000/tcp": {}},
		Labels:       map[string]string{"title": "test"},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("got %d layers, %v, want one", len(layers), err)
	}
	root := mutate.Extract(image)
	defer root.Close()
	archive := tar.NewReader(root)
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "trussium" || header.Mode != 0o755 || header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(epoch) {
		t.Errorf("file: got %+v", header)
	}
	if content, err := io.ReadAll(archive); err != nil || string(content) != "program" {
		t.Errorf("content: got %q, %v", content, err)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the file: got %v, want the end", err)
	}
}

func TestImageKey(t *testing.T) {
	file := binaryFile(t, "program")
	base, err := imageKey(testSpec, file)
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec
	spec.Cmd = []string{"--version=1.30.1"}
	otherSpec, err := imageKey(spec, file)
	if err != nil {
		t.Fatal(err)
	}
	otherBinary, err := imageKey(testSpec, binaryFile(t, "another program"))
	if err != nil {
		t.Fatal(err)
	}
	if base == otherSpec || base == otherBinary {
		t.Errorf("got %s, %s, %s, want three keys", base, otherSpec, otherBinary)
	}
	if _, err := imageKey(testSpec, file+"-missing"); !errors.Is(err, ErrInfrastructure) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing binary: got %v", err)
	}
}
