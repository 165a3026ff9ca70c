package kind

import (
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// A layout has every image by its tag and its digest, and digests are those of the registry.
func TestAddImage(t *testing.T) {
	image, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	images, err := layout.Write(t.TempDir(), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"ghcr.io/trussiumhq/trussium:1.30.0", "ghcr.io/trussiumhq/trussium:1.27.0", "localhost:5000/a/b"} {
		if err := addImage(images, ref, image); err != nil {
			t.Fatal(err)
		}
	}
	index, err := images.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range manifest.Manifests {
		if entry.Digest != digest {
			t.Errorf("%s has the digest %s, want %s", entry.Annotations[containerdName], entry.Digest, digest)
		}
		names = append(names, entry.Annotations[containerdName])
	}
	want := "ghcr.io/trussiumhq/trussium:1.30.0 ghcr.io/trussiumhq/trussium@D ghcr.io/trussiumhq/trussium:1.27.0 ghcr.io/trussiumhq/trussium@D localhost:5000/a/b localhost:5000/a/b@D"
	if got := strings.Join(names, " "); got != strings.ReplaceAll(want, "@D", "@"+digest.String()) {
		t.Errorf("got the names %s", got)
	}
}
