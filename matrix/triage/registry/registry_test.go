package registry

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	server "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/triage"
)

const published = "ghcr.io/trussiumhq/trussium"

// serve starts a registry that counts the blobs that are read from it.
func serve(t *testing.T) (address string, read func() []string) {
	t.Helper()
	inner := server.New(server.Logger(log.New(io.Discard, "", 0)))
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path != "/v2/" {
			paths = append(paths, r.URL.Path)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), func() []string { out := paths; paths = nil; return out }
}

func client(t *testing.T, address string) *Client {
	t.Helper()
	mirror, err := artifact.ParseMirror("ghcr.io=" + address + "/mirror")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New([]artifact.Mirror{mirror})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// push publishes an image or an index, and returns its digest.
func push(t *testing.T, address, tag string, what remote.Taggable) string {
	t.Helper()
	ref, err := name.NewTag(address + "/mirror/trussiumhq/trussium:" + tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Push(ref, what); err != nil {
		t.Fatal(err)
	}
	descriptor, err := remote.Head(ref)
	if err != nil {
		t.Fatal(err)
	}
	return descriptor.Digest.String()
}

// runtime is an image with a layer of random content.
func runtime(t *testing.T, architecture string, config v1.Config) v1.Image {
	t.Helper()
	image, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: architecture, Config: config, RootFS: must(image.ConfigFile()).RootFS})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var full = v1.Config{
	User: "10001:10001", StopSignal: "SIGTERM", Entrypoint: []string{"/app/trussium"}, Cmd: []string{"serve"},
	ExposedPorts: map[string]struct{}{"9000/tcp": {}, "8080/tcp": {}}, Env: []string{"TRUSSIUM_RUNTIME__HOST=0.0.0.0", "EMPTY"},
	Labels:      map[string]string{"org.opencontainers.image.version": "1.31.0"},
	Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "curl", "/health/live"}},
}

var wanted = triage.Config{
	User: "10001:10001", StopSignal: "SIGTERM", Entrypoint: []string{"/app/trussium"}, Cmd: []string{"serve"},
	Ports: []string{"8080/tcp", "9000/tcp"}, Env: map[string]string{"TRUSSIUM_RUNTIME__HOST": "0.0.0.0", "EMPTY": ""},
	Labels: map[string]string{"org.opencontainers.image.version": "1.31.0"}, Healthcheck: []string{"CMD", "curl", "/health/live"},
}

func TestImage(t *testing.T) {
	address, read := serve(t)
	single := push(t, address, "1.31.0", runtime(t, "amd64", full))
	attestation := runtime(t, "amd64", v1.Config{})
	arm := v1.Platform{OS: "linux", Architecture: "arm64", Variant: "v8"}
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: runtime(t, "amd64", full), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}},
		mutate.IndexAddendum{Add: runtime(t, "arm64", v1.Config{User: "0"}), Descriptor: v1.Descriptor{Platform: &arm}},
		mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}}},
	)
	multiple := push(t, address, "1.32.0", index)
	read()
	c := client(t, address)
	for tag, want := range map[string]triage.Image{
		"1.31.0": {State: triage.ImagePresent, Digest: single, Platforms: []triage.Platform{{Name: "linux/amd64", Config: wanted}}},
		"1.32.0": {State: triage.ImagePresent, Digest: multiple, Platforms: []triage.Platform{
			{Name: "linux/amd64", Config: wanted}, {Name: "linux/arm64/v8", Config: triage.Config{User: "0", Env: map[string]string{}}},
		}},
		"1.33.0": {State: triage.ImageMissing},
	} {
		if diff := cmp.Diff(want, c.Image(t.Context(), published+":"+tag)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tag, diff)
		}
	}
	// Of three images, the configurations are read and nothing else.
	blobs := 0
	for _, path := range read() {
		if strings.Contains(path, "/blobs/") {
			blobs++
		}
	}
	if blobs != 3 {
		t.Errorf("%d blobs were read, want 3", blobs)
	}
}

// TestUnknown checks that an image that could not be looked at is not taken for one that is missing.
func TestUnknown(t *testing.T) {
	address, _ := serve(t)
	broken := push(t, address, "1.31.0", mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: runtime(t, "amd64", full), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}}))
	var many []mutate.IndexAddendum
	for i := range maxPlatforms + 1 {
		many = append(many, mutate.IndexAddendum{Add: runtime(t, "amd64", full), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: fmt.Sprint("a", i)}}})
	}
	push(t, address, "1.32.0", mutate.AppendManifests(empty.Index, many...))
	// A registry that has the index, but not what it lists.
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasSuffix(r.URL.Path, "/manifests/1.31.0"):
			response, err := http.Get("http://" + address + r.URL.Path)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			w.Header().Set("Content-Type", response.Header.Get("Content-Type"))
			w.Header().Set("Docker-Content-Digest", broken)
			_, _ = io.Copy(w, response.Body)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer half.Close()
	denies := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer denies.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, test := range map[string]struct{ url, tag, want string }{
		"a part is missing":  {half.URL, "1.31.0", "a part of it can't be read"},
		"it is not allowed":  {denies.URL, "1.31.0", "403"},
		"nobody answers":     {gone.URL, "1.31.0", "connection refused"},
		"too many platforms": {"http://" + address, "1.32.0", "more than 16 platforms"},
	} {
		got := client(t, strings.TrimPrefix(test.url, "http://")).Image(t.Context(), published+":"+test.tag)
		if got.State != triage.ImageUnknown || !strings.Contains(got.Problem, test.want) {
			t.Errorf("%s: got %+v, want %q", name, got, test.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := client(t, address).Image(ctx, published+":1.31.0"); got.State != triage.ImageUnknown {
		t.Errorf("after the end: got %+v", got)
	}
}
