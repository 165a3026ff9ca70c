package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/trussiumhq/trussium-operator/matrix/otheroperator"
)

// publish pushes an image of any content into the registry at host and returns its digest.
func publish(t *testing.T, host, path string) string {
	t.Helper()
	tag, err := name.NewTag(host + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	image, err := random.Image(512, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// What a mirror has is taken from there, with its digest; what it does not have is built.
func TestMirror(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles an operator")
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	digest := publish(t, host, "copy/fair/kiosk:1.0.0")
	repository := otheroperator.Repository(t)
	bundle := func() (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), []string{
			"bundle", "-o", filepath.Join(t.TempDir(), "bundle.tar"), "--repository", repository, "--mirror", "registry.example.com=" + host + "/copy",
		}, &stdout, &stderr)
		return code, stdout.String() + stderr.String()
	}
	code, told := bundle()
	if code != exitGreen {
		t.Fatalf("exit code %d: %s", code, told)
	}
	if !strings.Contains(told, "registry.example.com/fair/kiosk:1.0.0@"+digest) {
		t.Errorf("the published image %s is not in the bundle:\n%s", digest, told)
	}
	for _, ref := range []string{"fair/kiosk:1.1.0@sha256:", "fair/kiosk-operator:0.1.0@sha256:", "fair/charts/kiosk-operator:0.1.0@sha256:"} {
		if !strings.Contains(told, "registry.example.com/"+ref) {
			t.Errorf("%s, which is not published, was not built:\n%s", ref, told)
		}
	}
	// A decision about an image is not one about another image under its tag.
	otheroperator.Replace(t, repository, "compatibility.yaml", `imageTag: "1.0.0"`, `imageTag: "1.0.0"`+"\n    digest: sha256:"+strings.Repeat("0", 64))
	if code, told := bundle(); code != exitInput || !strings.Contains(told, "registry.example.com/fair/kiosk:1.0.0 is "+digest+", and the decision in") {
		t.Errorf("another digest: exit code %d: %s", code, told)
	}
	// Anyone on the way could change what comes over plain HTTP.
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), []string{
		"bundle", "-o", filepath.Join(t.TempDir(), "bundle.tar"), "--repository", repository, "--mirror", "registry.example.com=http://mirror.example.com",
	}, &stdout, &stderr)
	if code != exitInput || !strings.Contains(stderr.String(), "leave the scheme out") {
		t.Errorf("a mirror with a scheme: exit code %d: %s", code, stderr.String())
	}
}
