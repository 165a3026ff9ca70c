package artifact

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// temporaryPrefix starts the names of entries that are still being written.
const temporaryPrefix = ".writing-"

// abandonedAfter is the age at which an unfinished entry must belong to a process that was killed.
const abandonedAfter = 24 * time.Hour

// store keeps artifacts in a folder, one OCI layout per key. An entry appears when it is
// complete, and never changes; it can be deleted at any time that no registry serves it.
type store struct {
	dir string
}

// entry is an OCI layout in the store. Its index.json lists the artifact itself first; if
// that is an index of platforms, the image whose layers are there follows.
type entry struct {
	layout layout.Path
	root   v1.Descriptor
}

// get returns the entry of the key. A damaged entry is deleted and counts as missing.
func (s store) get(key string) (entry, bool, error) {
	dir := s.path(key)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return entry{}, false, nil
	}
	found, err := openEntry(dir)
	if err == nil {
		return found, true, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return entry{}, false, infrastructure(fmt.Errorf("delete the damaged cache entry %s: %w", dir, err))
	}
	return entry{}, false, nil
}

// put returns the entry of the key, writing it first if it is missing.
func (s store) put(key string, write func(layout.Path) error) (entry, error) {
	if found, ok, err := s.get(key); ok || err != nil {
		return found, err
	}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return entry{}, infrastructure(fmt.Errorf("create the artifact cache: %w", err))
	}
	s.removeAbandoned()
	temp, err := os.MkdirTemp(s.dir, temporaryPrefix)
	if err != nil {
		return entry{}, infrastructure(fmt.Errorf("write to the artifact cache: %w", err))
	}
	defer os.RemoveAll(temp)
	path, err := layout.Write(temp, empty.Index)
	if err != nil {
		return entry{}, infrastructure(fmt.Errorf("write to the artifact cache: %w", err))
	}
	if err := write(path); err != nil {
		return entry{}, err
	}
	// Another process may have been faster; its content is the same.
	renameErr := os.Rename(temp, s.path(key))
	found, err := openEntry(s.path(key))
	if err != nil {
		return entry{}, infrastructure(fmt.Errorf("keep an artifact in the cache: %w", cmp.Or(renameErr, err)))
	}
	return found, nil
}

func (s store) path(key string) string {
	return filepath.Join(s.dir, key)
}

// removeAbandoned deletes what killed processes left half written. It does what it can.
func (s store) removeAbandoned() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, item := range entries {
		info, err := item.Info()
		if err == nil && strings.HasPrefix(item.Name(), temporaryPrefix) && time.Since(info.ModTime()) > abandonedAfter {
			os.RemoveAll(filepath.Join(s.dir, item.Name()))
		}
	}
}

// openEntry opens and verifies an entry.
func openEntry(dir string) (entry, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return entry{}, err
	}
	manifest, err := indexOf(path)
	if err != nil {
		return entry{}, err
	}
	if len(manifest.Manifests) == 0 {
		return entry{}, errors.New("the layout lists no artifact")
	}
	for _, descriptor := range manifest.Manifests {
		if !descriptor.MediaType.IsImage() && !descriptor.MediaType.IsIndex() {
			return entry{}, fmt.Errorf("the layout lists something of type %q", descriptor.MediaType)
		}
		if err := verify(path, descriptor); err != nil {
			return entry{}, err
		}
	}
	return entry{layout: path, root: manifest.Manifests[0]}, nil
}

func indexOf(path layout.Path) (*v1.IndexManifest, error) {
	index, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	return index.IndexManifest()
}

// verify checks that all that the descriptor refers to is in the layout and undamaged. Of the
// images of an index only the manifests have to be.
func verify(path layout.Path, descriptor v1.Descriptor) error {
	if err := verifyBlob(path, descriptor.Digest); err != nil {
		return err
	}
	if descriptor.MediaType.IsIndex() {
		manifest, err := readIndex(path, descriptor.Digest)
		if err != nil {
			return err
		}
		for _, child := range manifest.Manifests {
			if err := verifyBlob(path, child.Digest); err != nil {
				return err
			}
		}
		return nil
	}
	manifest, err := readManifest(path, descriptor.Digest)
	if err != nil {
		return err
	}
	for _, blob := range append([]v1.Descriptor{manifest.Config}, manifest.Layers...) {
		if err := verifyBlob(path, blob.Digest); err != nil {
			return err
		}
	}
	return nil
}

func verifyBlob(path layout.Path, digest v1.Hash) error {
	blob, err := path.Blob(digest)
	if err != nil {
		return err
	}
	defer blob.Close()
	h := sha256.New()
	if _, err := io.Copy(h, blob); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != digest.Hex {
		return fmt.Errorf("blob %s has the content of sha256:%s", digest, got)
	}
	return nil
}

func readManifest(path layout.Path, digest v1.Hash) (*v1.Manifest, error) {
	blob, err := path.Blob(digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	return v1.ParseManifest(blob)
}

func readIndex(path layout.Path, digest v1.Hash) (*v1.IndexManifest, error) {
	blob, err := path.Blob(digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	return v1.ParseIndexManifest(blob)
}

// image is the image whose layers are in the entry.
func (e entry) image() (v1.Image, error) {
	manifest, err := indexOf(e.layout)
	if err != nil {
		return nil, err
	}
	for _, descriptor := range manifest.Manifests {
		if descriptor.MediaType.IsImage() {
			return e.layout.Image(descriptor.Digest)
		}
	}
	return nil, errors.New("the cache entry holds no image")
}

// artifact is the entry under a published reference.
func (e entry) artifact(ref string) Artifact {
	return Artifact{Ref: ref, Digest: e.root.Digest.String(), entry: e}
}
