package image

import (
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
)

const digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestMirrorsResolve(t *testing.T) {
	mirrors := Mirrors{
		"ghcr.io":          "http://127.0.0.1:5001",
		"docker.io":        "https://mirror.example.com/hub/",
		"localhost:5000":   "http://127.0.0.1:5002/a/b",
		"broken.example.x": "http://%zz",
	}
	tests := []struct{ reference, want, scheme string }{
		{"ghcr.io/trussiumhq/trussium:1.0", "127.0.0.1:5001/trussiumhq/trussium:1.0", "http"},
		{"ghcr.io/trussiumhq/trussium", "127.0.0.1:5001/trussiumhq/trussium:latest", "http"},
		{"ghcr.io/trussiumhq/trussium@" + digest, "127.0.0.1:5001/trussiumhq/trussium@" + digest, "http"},
		{"busybox:1", "mirror.example.com/hub/library/busybox:1", "https"},
		{"docker.io/library/busybox:1", "mirror.example.com/hub/library/busybox:1", "https"},
		{"localhost:5000/xx:1", "127.0.0.1:5002/a/b/xx:1", "http"},
		{"quay.io/x/y:1", "quay.io/x/y:1", "https"},
	}
	for _, test := range tests {
		ref, err := name.ParseReference(test.reference)
		if err != nil {
			t.Fatal(err)
		}
		got, err := mirrors.Resolve(ref)
		if err != nil {
			t.Errorf("%s: %v", test.reference, err)
			continue
		}
		if got.Name() != test.want || got.Context().Scheme() != test.scheme {
			t.Errorf("%s: got %s by %s, want %s by %s", test.reference, got.Name(), got.Context().Scheme(), test.want, test.scheme)
		}
	}
	broken, _ := name.ParseReference("broken.example.x/yy")
	if got, err := mirrors.Resolve(broken); err == nil {
		t.Errorf("a mirror that is no URL gave %s", got)
	}
}

func TestDisplayNames(t *testing.T) {
	ref, err := name.ParseReference("busybox")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := displayName(ref), "docker.io/library/busybox:latest"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := displayDigest(ref, digest), "docker.io/library/busybox@"+digest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
