package oci

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
)

// The references of the artifacts under test.
const (
	imageRef = "ghcr.io/trussiumhq/trussium-operator:1.2.3"
	chartRef = "ghcr.io/trussiumhq/charts/trussium-operator:1.2.3"
)

// testImage is an image for one platform.
func testImage(t *testing.T, arch, content string) v1.Image {
	t.Helper()
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := crane.Layer(map[string][]byte{"program": []byte(content)})
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.AppendLayers(image, layer)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// testArtifacts are an image for two platforms and what stands for the chart that names it.
func testArtifacts(t *testing.T, content string) []Artifact {
	t.Helper()
	var platforms []Platform
	for _, arch := range []string{"amd64", "arm64"} {
		platforms = append(platforms, Platform{
			PlatformImage: artifact.PlatformImage{Platform: v1.Platform{OS: "linux", Architecture: arch}, Image: testImage(t, arch, content+" for "+arch)},
			SBOM:          Document{Name: arch + ".json", MediaType: "application/vnd.test+json", Content: []byte("about " + arch)},
		})
	}
	image, err := Image(imageRef, map[string]string{"org.opencontainers.image.version": "1.2.3"}, platforms)
	if err != nil {
		t.Fatal(err)
	}
	return []Artifact{image, {Ref: chartRef, Content: testImage(t, "", "chart of "+content)}}
}

// testRegistry is a registry that keeps the requests which change it, in their order. It refuses those that refuse
// is true for.
type testRegistry struct {
	Registry
	addr string

	mu      sync.Mutex
	writes  []string
	refuse  func(*http.Request) bool
	handler http.Handler
}

func newRegistry(t *testing.T, options ...registry.Option) *testRegistry {
	t.Helper()
	options = append(options, registry.Logger(log.New(io.Discard, "", 0)))
	served := &testRegistry{handler: registry.New(options...), refuse: func(*http.Request) bool { return false }}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	served.addr = strings.TrimPrefix(server.URL, "http://")
	var err error
	if served.Registry, err = ParseRegistry(served.addr + "/mirror/"); err != nil {
		t.Fatal(err)
	}
	return served
}

func (r *testRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.refuse(request) {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if request.Method == http.MethodPut {
		r.mu.Lock()
		r.writes = append(r.writes, request.URL.Path)
		r.mu.Unlock()
	}
	r.handler.ServeHTTP(w, request)
}

// get pulls what the reference stands for at the registry.
func (r *testRegistry) get(t *testing.T, ref string) *remote.Descriptor {
	t.Helper()
	parsed, err := name.ParseReference(r.Location(ref))
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Get(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func digestOf(t *testing.T, content Content) string {
	t.Helper()
	digest, err := content.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// attached are the documents attached to the subject at the registry, as NAME: CONTENT.
func (r *testRegistry) attached(t *testing.T, subject string) []string {
	t.Helper()
	repository, _, _ := strings.Cut(r.Location(imageRef), ":1.2.3")
	digest, err := name.NewDigest(repository + "@" + subject)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Referrers(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, descriptor := range manifest.Manifests {
		image, err := remote.Image(digest.Context().Digest(descriptor.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		attached, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if attached.Subject == nil || attached.Subject.Digest.String() != subject || attached.ArtifactType != "application/vnd.test+json" {
			t.Errorf("attached to %s: got the subject %+v and the type %s", subject, attached.Subject, attached.ArtifactType)
		}
		for _, layer := range attached.Layers {
			content, err := remote.Layer(digest.Context().Digest(layer.Digest.String()))
			if err != nil {
				t.Fatal(err)
			}
			reader, err := content.Compressed()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, layer.Annotations["org.opencontainers.image.title"]+": "+string(text))
		}
	}
	slices.Sort(documents)
	return documents
}

// TestPush pushes to a registry that knows what is attached to an image, and to one that has to be told by a tag.
func TestPush(t *testing.T) {
	for name, options := range map[string][]registry.Option{
		"referrers API": {registry.WithReferrersSupport(true)},
		"referrers tag": nil,
	} {
		t.Run(name, func(t *testing.T) {
			served := newRegistry(t, options...)
			artifacts := testArtifacts(t, "program")
			if err := served.Push(t.Context(), artifacts...); err != nil {
				t.Fatal(err)
			}
			for _, pushed := range artifacts {
				if got, want := served.get(t, pushed.Ref).Digest.String(), digestOf(t, pushed.Content); got != want {
					t.Errorf("%s: got %s, want %s", pushed.Ref, got, want)
				}
			}
			index, err := served.get(t, imageRef).ImageIndex()
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Index(index); err != nil {
				t.Errorf("the index is not valid: %v", err)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			if manifest.MediaType != types.OCIImageIndex || manifest.Annotations["org.opencontainers.image.version"] != "1.2.3" {
				t.Errorf("got the media type %s and the annotations %v", manifest.MediaType, manifest.Annotations)
			}
			var platforms []string
			for _, child := range manifest.Manifests {
				platforms = append(platforms, child.Platform.String())
				if child.ArtifactType != "" {
					t.Errorf("%s has the artifact type %s, want none", child.Platform, child.ArtifactType)
				}
				if got, want := served.attached(t, child.Digest.String()), []string{child.Platform.Architecture + ".json: about " + child.Platform.Architecture}; !slices.Equal(got, want) {
					t.Errorf("%s: got the documents %q, want %q", child.Platform, got, want)
				}
			}
			if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
				t.Errorf("got the platforms %q, want %q", platforms, want)
			}
			if got, want := served.attached(t, digestOf(t, index)), []string{"amd64.json: about amd64", "arm64.json: about arm64"}; !slices.Equal(got, want) {
				t.Errorf("got the documents %q, want %q", got, want)
			}
		})
	}
}

// TestPushOrder checks that a tag appears after all that belongs to it, and the chart's after the image's.
func TestPushOrder(t *testing.T) {
	served := newRegistry(t, registry.WithReferrersSupport(true))
	if err := served.Push(t.Context(), testArtifacts(t, "program")...); err != nil {
		t.Fatal(err)
	}
	image := slices.Index(served.writes, "/v2/mirror/trussiumhq/trussium-operator/manifests/1.2.3")
	chart := slices.Index(served.writes, "/v2/mirror/trussiumhq/charts/trussium-operator/manifests/1.2.3")
	if image < 0 || chart != len(served.writes)-1 {
		t.Fatalf("the chart's tag is not the last write, or the image has none: %q", served.writes)
	}
	for _, write := range served.writes[image+1:] {
		if !strings.Contains(write, "/charts/") {
			t.Errorf("written after the tag of the image: %s", write)
		}
	}
	if manifests := slices.DeleteFunc(slices.Clone(served.writes[:image]), func(path string) bool { return !strings.Contains(path, "/manifests/") }); len(manifests) != 6 {
		t.Errorf("before the image's tag: got the manifests %q, want the index, two images and three of documents", manifests)
	}
}

// TestNoChartWithoutItsImage breaks the registry for the image alone.
func TestNoChartWithoutItsImage(t *testing.T) {
	served := newRegistry(t, registry.WithReferrersSupport(true))
	served.refuse = func(request *http.Request) bool {
		return request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/trussium-operator/manifests/") && !strings.Contains(request.URL.Path, "/charts/")
	}
	err := served.Push(t.Context(), testArtifacts(t, "program")...)
	if err == nil || !strings.Contains(err.Error(), "/mirror/trussiumhq/trussium-operator:1.2.3") {
		t.Errorf("got %v, want an error that names the image", err)
	}
	for _, write := range served.writes {
		if strings.Contains(write, "/charts/") {
			t.Errorf("written though the image is not there: %s", write)
		}
	}
}

func TestFree(t *testing.T) {
	served := newRegistry(t, registry.WithReferrersSupport(true))
	first, second := testArtifacts(t, "program"), testArtifacts(t, "another program")
	if err := served.Free(t.Context(), first...); err != nil {
		t.Errorf("an empty registry: got %v", err)
	}
	if err := served.Push(t.Context(), first...); err != nil {
		t.Fatal(err)
	}
	if err := served.Free(t.Context(), first...); err != nil {
		t.Errorf("pushed already: got %v", err)
	}
	if err := served.Push(t.Context(), first...); err != nil {
		t.Errorf("pushed again: got %v", err)
	}
	var taken *TakenError
	err := served.Free(t.Context(), second...)
	if !errors.As(err, &taken) {
		t.Fatalf("another program: got %v, want that the tag is taken", err)
	}
	if taken.Ref != served.addr+"/mirror/trussiumhq/trussium-operator:1.2.3" || taken.Have != digestOf(t, first[0].Content) || taken.Want != digestOf(t, second[0].Content) {
		t.Errorf("got %+v", taken)
	}
	served.refuse = func(*http.Request) bool { return true }
	if err := served.Free(t.Context(), first...); err == nil || errors.As(err, &taken) {
		t.Errorf("a registry that refuses to tell: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := served.Push(ctx, first...); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestParseRegistry(t *testing.T) {
	for text, want := range map[string]string{
		"ghcr.io":                  imageRef,
		"127.0.0.1:5000":           "127.0.0.1:5000/trussiumhq/trussium-operator:1.2.3",
		"registry.example.com/a/b": "registry.example.com/a/b/trussiumhq/trussium-operator:1.2.3",
	} {
		parsed, err := ParseRegistry(text)
		if err != nil || parsed.Location(imageRef) != want {
			t.Errorf("%s: got %s, %v, want %s", text, parsed.Location(imageRef), err, want)
		}
	}
	for _, text := range []string{"", "https://ghcr.io", "UPPER/case"} {
		if _, err := ParseRegistry(text); !errors.Is(err, artifact.ErrInput) {
			t.Errorf("%q: got %v, want bad input", text, err)
		}
	}
}

// TestArchive unpacks an archive and reads the layout in it as any other tool does.
func TestArchive(t *testing.T) {
	artifacts := testArtifacts(t, "program")
	var written [][]byte
	for range 2 {
		file := filepath.Join(t.TempDir(), "archive.tar")
		if err := WriteArchive(file, artifacts[0]); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, content)
		if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
			t.Errorf("beside the archive: got %v, %v", left, err)
		}
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("written again, the archive differs")
	}
	path, err := layout.FromPath(unpack(t, written[0]))
	if err != nil {
		t.Fatal(err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 {
		t.Fatalf("got %d entries, want the image alone: %+v", len(manifest.Manifests), manifest.Manifests)
	}
	entry := manifest.Manifests[0]
	if want := digestOf(t, artifacts[0].Content); entry.Digest.String() != want {
		t.Errorf("got %s, want the image, %s", entry.Digest, want)
	}
	for _, annotation := range []string{"org.opencontainers.image.ref.name", "io.containerd.image.name"} {
		if got := entry.Annotations[annotation]; got != imageRef {
			t.Errorf("got the %s %q, want %s", annotation, got, imageRef)
		}
	}
	if err := WriteArchive(filepath.Join(t.TempDir(), "missing", "archive.tar"), artifacts[0]); err == nil {
		t.Error("a folder that is not there: got no error")
	}
	if err := WriteArchive(filepath.Join(t.TempDir(), "archive.tar"), artifacts[1]); err == nil || !strings.Contains(err.Error(), chartRef) {
		t.Errorf("a chart: got %v, want an error that names it", err)
	}
}

// unpack unpacks an archive whose files have no times and owners.
func unpack(t *testing.T, content []byte) string {
	t.Helper()
	dir := t.TempDir()
	reader := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) || header.Uid != 0 || header.Gid != 0 || header.Uname != "" {
			t.Errorf("%s: got the time %s and the owner %d:%d %s", header.Name, header.ModTime, header.Uid, header.Gid, header.Uname)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		file, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
