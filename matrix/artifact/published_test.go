package artifact

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

// mirror is a registry with published artifacts below the path /copy.
type mirror struct {
	host    string
	content http.Handler
	blobs   atomic.Int32
	// status, if not 0, is the answer to each request for a manifest, or to so many of them as
	// refusals says if that is not 0.
	status, refusals atomic.Int32
	// damage, if set, answers requests for blobs.
	damage atomic.Pointer[http.HandlerFunc]
}

// refuses tells that a request for a manifest is answered with the status.
func (m *mirror) refuses() bool {
	if m.status.Load() == 0 {
		return false
	}
	if m.refusals.Load() > 0 && m.refusals.Add(-1) == 0 {
		defer m.status.Store(0)
	}
	return true
}

func newMirror(t *testing.T) *mirror {
	t.Helper()
	m := &mirror{content: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if status := m.status.Load(); strings.Contains(request.URL.Path, "/manifests/") && m.refuses() {
			w.WriteHeader(int(status))
			return
		}
		if damage := m.damage.Load(); damage != nil && strings.Contains(request.URL.Path, "/blobs/") {
			(*damage)(w, request)
			return
		}
		if request.Method == http.MethodGet && strings.Contains(request.URL.Path, "/blobs/") {
			m.blobs.Add(1)
		}
		m.content.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	m.host = strings.TrimPrefix(server.URL, "http://")
	return m
}

func (m *mirror) tag(t *testing.T, ref string) name.Tag {
	t.Helper()
	tag, err := name.NewTag(m.host + "/copy/" + strings.TrimPrefix(ref, "ghcr.io/"))
	if err != nil {
		t.Fatal(err)
	}
	return tag
}

func (m *mirror) publish(t *testing.T, ref string, image v1.Image) string {
	t.Helper()
	if err := remote.Write(m.tag(t, ref), image); err != nil {
		t.Fatal(err)
	}
	return digestOf(t, image)
}

func digestOf(t *testing.T, artifact interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// platformImage is an image of random content for a platform.
func platformImage(t *testing.T, arch string) v1.Image {
	t.Helper()
	image, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.ConfigFile(image, withPlatform(t, image, arch))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func withPlatform(t *testing.T, image v1.Image, arch string) *v1.ConfigFile {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS = "linux"
	config.Architecture = arch
	return config
}

// publishedBuilder pulls from the mirror, and falls back to a repository with the release 0.3.1.
func publishedBuilder(t *testing.T, m *mirror) (*Builder, string) {
	t.Helper()
	dir, commit := newRepository(t, sourceFiles("0.3.1"))
	builder, _ := newBuilder(t, dir)
	builder.Arch = "arm64"
	standIn, err := ParseMirror("ghcr.io=" + m.host + "/copy")
	if err != nil {
		t.Fatal(err)
	}
	builder.Published = &Published{Mirrors: []Mirror{standIn}}
	return builder, commit
}

func publishedChart(t *testing.T) v1.Image {
	t.Helper()
	dir := t.TempDir()
	gittest.Write(t, dir, sourceFiles("0.3.1"))
	packaged, err := packageChart(filepath.Join(dir, ChartPath))
	if err != nil {
		t.Fatal(err)
	}
	image, err := packaged.image()
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestPublishedRelease pulls a chart and an image for several platforms, serves them again,
// and checks that the digest of the whole index stays valid.
func TestPublishedRelease(t *testing.T) {
	m := newMirror(t)
	chartDigest := m.publish(t, ChartRepository+":0.3.1", publishedChart(t))
	amd64, arm64 := platformImage(t, "amd64"), platformImage(t, "arm64")
	index := mutate.AppendManifests(empty.Index, addendum(t, amd64, "amd64"), addendum(t, arm64, "arm64"))
	if err := remote.WriteIndex(m.tag(t, OperatorRepository+":0.3.1"), index); err != nil {
		t.Fatal(err)
	}
	builder, commit := publishedBuilder(t, m)
	release, err := builder.Release(t.Context(), "0.3.1", commit)
	if err != nil {
		t.Fatal(err)
	}
	if release.Source != SourcePublished || release.Commit != "" || release.Chart.Digest != chartDigest || release.Image.Digest != digestOf(t, index) {
		t.Errorf("got %+v", release)
	}
	if release.Chart.Ref != ChartRepository+":0.3.1" || release.Image.Ref != OperatorRepository+":0.3.1" {
		t.Errorf("references: got %s and %s, want the published ones", release.Chart.Ref, release.Image.Ref)
	}
	served := serve(t, release.Chart, release.Image)
	tag, err := name.NewTag(served.Local(release.Image.Ref))
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "arm64"}))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := digestOf(t, image), digestOf(t, arm64); got != want {
		t.Errorf("served image: got %s, want %s", got, want)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("served image: %v", err)
	}
	if _, err := remote.Index(tag.Context().Digest(release.Image.Digest)); err != nil {
		t.Errorf("served index by digest: %v", err)
	}
	own, err := release.Image.Image()
	if err != nil || digestOf(t, own) != digestOf(t, arm64) {
		t.Errorf("image of the artifact: got %v, %v", own, err)
	}

	// What is there is not pulled again.
	before := m.blobs.Load()
	if _, err := builder.Release(t.Context(), "0.3.1", commit); err != nil {
		t.Fatal(err)
	}
	if after := m.blobs.Load(); before == 0 || after != before {
		t.Errorf("blobs pulled: got %d, then %d, want some and no more", before, after)
	}
}

func addendum(t *testing.T, image v1.Image, arch string) mutate.IndexAddendum {
	t.Helper()
	descriptor, err := partial.Descriptor(image)
	if err != nil {
		t.Fatal(err)
	}
	descriptor.Platform = &v1.Platform{OS: "linux", Architecture: arch}
	return mutate.IndexAddendum{Add: image, Descriptor: *descriptor}
}

func TestPublishedRuntime(t *testing.T) {
	m := newMirror(t)
	digest := m.publish(t, RuntimeRepository+":1.27.0", platformImage(t, "arm64"))
	builder, _ := publishedBuilder(t, m)
	real, err := builder.Runtime(t.Context(), "1.27.0", VariantNone)
	if err != nil || real.Digest != digest || real.Simulated {
		t.Errorf("a published tag: got %+v, %v, want %s, not simulated", real, err, digest)
	}
	for _, test := range []struct {
		tag     string
		variant Variant
	}{{"1.30.0", VariantNone}, {"1.27.0", VariantNeverReady}} {
		simulated, err := builder.Runtime(t.Context(), test.tag, test.variant)
		if err != nil || !simulated.Simulated {
			t.Errorf("%s %s: got %+v, %v, want it simulated", test.tag, test.variant, simulated, err)
		}
	}
}

// TestNotPublished checks that only what a registry does not have is built instead.
func TestNotPublished(t *testing.T) {
	m := newMirror(t)
	builder, commit := publishedBuilder(t, m)
	release, err := builder.Release(t.Context(), "0.3.1", commit)
	if err != nil || release.Source != SourceCommit {
		t.Errorf("an empty registry: got %+v, %v, want it built from the commit", release, err)
	}
	onlyAMD64 := mutate.AppendManifests(empty.Index, addendum(t, platformImage(t, "amd64"), "amd64"))
	m.publish(t, ChartRepository+":0.3.1", publishedChart(t))
	if err := remote.WriteIndex(m.tag(t, OperatorRepository+":0.3.1"), onlyAMD64); err != nil {
		t.Fatal(err)
	}
	if _, err := builder.published(t.Context(), "0.3.1"); !errors.Is(err, ErrNotPublished) || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("another platform: got %v, want that it is not published", err)
	}
	m.status.Store(http.StatusForbidden)
	if _, err := builder.Release(t.Context(), "0.3.1", commit); !errors.Is(err, ErrInfrastructure) || errors.Is(err, ErrNotPublished) {
		t.Errorf("a registry that refuses: got %v, want infrastructure", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := builder.Release(cancelled, "0.3.1", commit); !errors.Is(err, context.Canceled) || errors.Is(err, ErrInfrastructure) {
		t.Errorf("cancelled: got %v", err)
	}
	builder.Published.Mirrors[0].Base = "127.0.0.1:1"
	if _, err := builder.Release(t.Context(), "0.3.1", commit); !errors.Is(err, ErrInfrastructure) {
		t.Errorf("a registry that is not there: got %v, want infrastructure", err)
	}
}

func TestParseMirror(t *testing.T) {
	const ref = "ghcr.io/trussiumhq/trussium:1.30.0"
	for text, want := range map[string]string{
		"ghcr.io=127.0.0.1:5000":         "127.0.0.1:5000/trussiumhq/trussium:1.30.0",
		"ghcr.io=mirror.example/a/b/":    "mirror.example/a/b/trussiumhq/trussium:1.30.0",
		"docker.io=127.0.0.1:5000":       ref,
		"ghcr.io.example=127.0.0.1:5000": ref,
	} {
		mirror, err := ParseMirror(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := (&Published{Mirrors: []Mirror{mirror}}).location(ref); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "ghcr.io", "=127.0.0.1:5000", "ghcr.io=", "ghcr.io=http://127.0.0.1:5000", "ghcr.io/trussiumhq=127.0.0.1:5000", "ghcr.io=UPPER CASE"} {
		if mirror, err := ParseMirror(text); !errors.Is(err, ErrInput) {
			t.Errorf("%q: got %+v, %v, want bad input", text, mirror, err)
		}
	}
}

func TestPlainHTTPOnLoopbackOnly(t *testing.T) {
	m := newMirror(t)
	client := &http.Client{Transport: plainHTTPOnLoopback{http.DefaultTransport}}
	answer, err := client.Get("http://" + m.host + "/v2/")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("loopback: got %v, %v", answer, err)
	} else {
		answer.Body.Close()
	}
	// An address for documentation, to which nothing is sent.
	if _, err := client.Get("http://192.0.2.1/v2/"); err == nil || !strings.Contains(err.Error(), "plain HTTP to 192.0.2.1 is refused") {
		t.Errorf("another machine: got %v, want it refused", err)
	}
}
