package artifact

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func serve(t *testing.T, artifacts ...Artifact) *Registry {
	t.Helper()
	registry, err := Serve(t.Context(), artifacts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	return registry
}

func TestServeImage(t *testing.T) {
	s := store{dir: t.TempDir()}
	first := testImage(t, s, RuntimeRepository+":1.27.0", "first")
	second := testImage(t, s, RuntimeRepository+":1.30.0", "second")
	registry := serve(t, first)
	if err := registry.Add(second, first); err != nil {
		t.Fatal(err)
	}
	for _, artifact := range []Artifact{first, second} {
		local := registry.Local(artifact.Ref)
		repository, _, _ := strings.Cut(local, ":1.")
		for _, text := range []string{local, repository + "@" + artifact.Digest} {
			ref, err := name.ParseReference(text, name.StrictValidation)
			if err != nil {
				t.Fatal(err)
			}
			image, err := remote.Image(ref, remote.WithContext(t.Context()))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate.Image(image); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			if digest, err := image.Digest(); err != nil || digest.String() != artifact.Digest {
				t.Errorf("%s: got %s, %v, want %s", text, digest, err, artifact.Digest)
			}
		}
	}
	if got, want := registry.Mirrors(), "http://"+registry.Addr(); len(got) != 1 || got["ghcr.io"] != want {
		t.Errorf("mirrors: got %v, want ghcr.io at %s", got, want)
	}
}

func TestServeUnknown(t *testing.T) {
	known := testImage(t, store{dir: t.TempDir()}, RuntimeRepository+":1.27.0", "known")
	registry := serve(t, known)
	for path, code := range map[string]string{
		"trussiumhq/trussium:1.28.0":                              "MANIFEST_UNKNOWN",
		"trussiumhq/trussium@sha256:" + strings.Repeat("0", 64):   "MANIFEST_UNKNOWN",
		"trussiumhq/another:1.27.0":                               "NAME_UNKNOWN",
		"trussiumhq/trussium-operator@sha256:" + known.Digest[7:]: "NAME_UNKNOWN",
	} {
		ref, err := name.ParseReference(registry.Addr()+"/"+path, name.StrictValidation)
		if err != nil {
			t.Fatal(err)
		}
		_, err = remote.Get(ref, remote.WithContext(t.Context()))
		var answer *transport.Error
		if !errors.As(err, &answer) || answer.StatusCode != http.StatusNotFound || len(answer.Errors) == 0 || string(answer.Errors[0].Code) != code {
			t.Errorf("%s: got %v, want 404 %s", path, err, code)
		}
	}
}

func TestServeIsReadOnly(t *testing.T) {
	artifact := testImage(t, store{dir: t.TempDir()}, RuntimeRepository+":1.27.0", "image")
	registry := serve(t, artifact)
	image, err := artifact.Image()
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(registry.Addr() + "/trussiumhq/trussium:2.0.0")
	if err != nil {
		t.Fatal(err)
	}
	var answer *transport.Error
	if err := remote.Write(tag, image); !errors.As(err, &answer) || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("pushing: got %v, want 405", err)
	}
	if err := remote.Delete(tag.Context().Tag("1.27.0")); !errors.As(err, &answer) || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("deleting: got %v, want 405", err)
	}
	if _, err := remote.Head(tag.Context().Tag("1.27.0")); err != nil {
		t.Errorf("afterwards: got %v, want it served", err)
	}
}

// TestServeConflict checks that one tag can't stand for two images: the checkout must not pass
// for a release.
// A cluster that was kept pulls from the address that it was started with.
func TestServeAtTheAddressOfAnEarlierRegistry(t *testing.T) {
	image := testImage(t, store{dir: t.TempDir()}, RuntimeRepository+":1.27.0", "image")
	first, err := Serve(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	address := first.Addr()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := ServeAt(t.Context(), address, image)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	if second.Addr() != address {
		t.Errorf("the address is %s, before it was %s", second.Addr(), address)
	}
	third, err := ServeAt(t.Context(), address, image)
	if err != nil {
		t.Fatalf("an address that is taken: %v", err)
	}
	t.Cleanup(func() { third.Close() })
	if third.Addr() == address {
		t.Error("two registries have one address")
	}
}

func TestServeConflict(t *testing.T) {
	s := store{dir: t.TempDir()}
	registry := serve(t, testImage(t, s, OperatorRepository+":0.3.1", "release"))
	err := registry.Add(testImage(t, s, OperatorRepository+":0.3.1", "checkout"))
	if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), OperatorRepository+":0.3.1") {
		t.Errorf("got %v, want bad input that names the reference", err)
	}
	if _, err := Serve(t.Context(), Artifact{Ref: OperatorRepository + ":1", Digest: "sha256:0"}); err == nil {
		t.Error("an artifact that was not resolved: got no error")
	}
}

func TestServeEnds(t *testing.T) {
	artifact := testImage(t, store{dir: t.TempDir()}, RuntimeRepository+":1.27.0", "image")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	registry, err := Serve(ctx, artifact)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + registry.Addr() + "/v2/"
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("before: got status %d, %v", answer.StatusCode, err)
	}
	cancel()
	select {
	case <-registry.done:
	case <-time.After(time.Minute):
		t.Fatal("it still serves a minute after its context ended")
	}
	if answer, err := http.Get(url); err == nil {
		answer.Body.Close()
		t.Errorf("after: got status %d, want no answer", answer.StatusCode)
	}
	if err := registry.Close(); err != nil {
		t.Errorf("closing it again: %v", err)
	}
}
