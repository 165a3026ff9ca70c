package image

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// newRegistry returns a store whose ghcr.io is a registry on loopback, and a function that
// pushes an image of one file there and returns its digest.
func newRegistry(t *testing.T) (*Store, func(tag, content string) string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	store := NewStore(filepath.Join(t.TempDir(), "images"), Mirrors{"ghcr.io": server.URL}, http.DefaultTransport)
	return store, func(tag, content string) string {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(archive(t, entry("file", content))), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		image, err := mutate.AppendLayers(empty.Image, layer)
		if err != nil {
			t.Fatal(err)
		}
		if image, err = mutate.Config(image, v1.Config{User: "65532"}); err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://") + "/x/y:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
}

func pull(t *testing.T, store *Store, reference string) string {
	t.Helper()
	id, err := store.Pull(t.Context(), reference, authn.Anonymous)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestPullByTagAndDigest(t *testing.T) {
	store, push := newRegistry(t)
	digest := push("1", "one")
	id := pull(t, store, "ghcr.io/x/y:1")
	image, ok := store.Find("ghcr.io/x/y:1")
	if !ok || image.ID != id {
		t.Fatalf("the pulled image is not found: %+v", image)
	}
	if image.Config.User != "65532" || image.Size == 0 {
		t.Errorf("the image has user %q and size %d", image.Config.User, image.Size)
	}
	if content, err := os.ReadFile(filepath.Join(image.Root, "file")); err != nil || string(content) != "one" {
		t.Errorf("the image's file is %q, %v", content, err)
	}
	byDigest := "ghcr.io/x/y@" + digest
	if !slices.Contains(image.Digests, byDigest) {
		t.Errorf("the image's digests %q lack %s", image.Digests, byDigest)
	}
	if again := pull(t, store, byDigest); again != id {
		t.Errorf("pulled by digest it is %s, by tag %s", again, id)
	}
	for _, reference := range []string{id, byDigest} {
		if found, ok := store.Find(reference); !ok || found.ID != id {
			t.Errorf("not found as %s", reference)
		}
	}
	if len(store.List()) != 1 {
		t.Errorf("one image is listed as %d", len(store.List()))
	}
}

func TestPullFollowsAMovedTag(t *testing.T) {
	store, push := newRegistry(t)
	push("moving", "old")
	before := pull(t, store, "ghcr.io/x/y:moving")
	push("moving", "new")
	after := pull(t, store, "ghcr.io/x/y:moving")
	if before == after {
		t.Fatal("the tag still names the old image")
	}
	if image, _ := store.Find("ghcr.io/x/y:moving"); image.ID != after {
		t.Errorf("the tag is found as %s, want %s", image.ID, after)
	}
	if old, ok := store.Find(before); !ok || len(old.Tags) != 0 {
		t.Errorf("the old image is kept: %v, with the tags %q; want it without", ok, old.Tags)
	}
}

func TestPullOfAMissingImageNamesIt(t *testing.T) {
	store, push := newRegistry(t)
	push("1", "one")
	_, err := store.Pull(t.Context(), "ghcr.io/x/y:2", authn.Anonymous)
	if err == nil {
		t.Fatal("a missing image was pulled")
	}
	for _, want := range []string{"ghcr.io/x/y:2", "127.0.0.1", "MANIFEST_UNKNOWN"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if _, ok := store.Find("ghcr.io/x/y:2"); ok {
		t.Error("a missing image is found")
	}
}

func TestRemoveDeletesTheFiles(t *testing.T) {
	store, push := newRegistry(t)
	push("1", "one")
	pull(t, store, "ghcr.io/x/y:1")
	image, _ := store.Find("ghcr.io/x/y:1")
	for range 2 { // the second time it is gone already
		if err := store.Remove("ghcr.io/x/y:1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(image.Root); err == nil {
		t.Error("the files are still there")
	}
	if len(store.List()) != 0 {
		t.Errorf("still listed: %+v", store.List())
	}
	if pull(t, store, "ghcr.io/x/y:1") != image.ID {
		t.Error("pulled again it is another image")
	}
}
