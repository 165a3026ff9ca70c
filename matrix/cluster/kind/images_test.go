package kind

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
)

// An archive has every blob once and every image by its tag and its digest, and digests are those of the registry.
func TestImageArchive(t *testing.T) {
	image, err := random.Image(64, 2)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	var archive imageArchive
	for _, ref := range []string{"ghcr.io/trussiumhq/trussium:1.30.0", "ghcr.io/trussiumhq/trussium:1.27.0", "localhost:5000/a/b"} {
		if err := archive.add(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	var content bytes.Buffer
	if err := archive.write(&content); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(&content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
	if len(files) != 6 { // index.json, oci-layout, manifest, config, two layers
		t.Errorf("the archive has %d files", len(files))
	}
	var index v1.IndexManifest
	if err := json.Unmarshal(files["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range index.Manifests {
		if entry.Digest != digest || files["blobs/sha256/"+entry.Digest.Hex] == nil {
			t.Errorf("%s has the digest %s, want %s", entry.Annotations[containerdName], entry.Digest, digest)
		}
		names = append(names, entry.Annotations[containerdName])
	}
	want := "ghcr.io/trussiumhq/trussium:1.30.0 ghcr.io/trussiumhq/trussium@D ghcr.io/trussiumhq/trussium:1.27.0 ghcr.io/trussiumhq/trussium@D localhost:5000/a/b localhost:5000/a/b@D"
	if got := strings.Join(names, " "); got != strings.ReplaceAll(want, "@D", "@"+digest.String()) {
		t.Errorf("got the names %s", got)
	}
}
