package artifact

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/trussiumhq/trussium-operator/matrix/contentkey"
)

func TestPutWritesOnce(t *testing.T) {
	s := store{dir: filepath.Join(t.TempDir(), "oci")}
	first := testImage(t, s, OperatorRepository+":1", "program")
	second, err := s.put(contentkey.Of(map[string]string{"content": "program"}), func(layout.Path) error {
		return errors.New("written again")
	})
	if err != nil || second.root.Digest.String() != first.Digest {
		t.Errorf("got %v, %v, want %s", second.root.Digest, err, first.Digest)
	}
}

func TestPutKeepsNothingOfAFailure(t *testing.T) {
	s := store{dir: t.TempDir()}
	failure := errors.New("disk full")
	if _, err := s.put("key", func(layout.Path) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 0 {
		t.Errorf("the store holds %v, %v, want nothing", entries, err)
	}
}

// TestDamagedEntry checks that a damaged entry is noticed and made anew, whatever is damaged.
func TestDamagedEntry(t *testing.T) {
	damages := map[string]func(t *testing.T, path string){
		"truncated": func(t *testing.T, path string) {
			if err := os.Truncate(path, 10); err != nil {
				t.Fatal(err)
			}
		},
		"missing": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"changed": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)/2] ^= 1
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
		},
	}
	entryKey := contentkey.Of(map[string]string{"content": "program"})
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			s := store{dir: t.TempDir()}
			whole := testImage(t, s, OperatorRepository+":1", "program")
			files, err := filepath.Glob(filepath.Join(s.path(entryKey), "blobs/sha256/*"))
			if err != nil || len(files) != 3 {
				t.Fatalf("got the blobs %v, %v, want manifest, config and layer", files, err)
			}
			if name != "changed" {
				// One changed byte of index.json need not change what it says.
				files = append(files, filepath.Join(s.path(entryKey), "index.json"))
			}
			for _, file := range files {
				damage(t, file)
				if _, found, err := s.get(entryKey); found || err != nil {
					t.Errorf("%s damaged: got found %v, %v, want it missing", filepath.Base(file), found, err)
				}
				if again := testImage(t, s, OperatorRepository+":1", "program"); again.Digest != whole.Digest {
					t.Errorf("%s damaged: got %s, want %s", filepath.Base(file), again.Digest, whole.Digest)
				}
			}
		})
	}
}

func TestPutConcurrently(t *testing.T) {
	s := store{dir: t.TempDir()}
	var group sync.WaitGroup
	digests := make([]string, 8)
	for i := range digests {
		group.Go(func() { digests[i] = testImage(t, s, OperatorRepository+":1", "program").Digest })
	}
	group.Wait()
	for _, digest := range digests {
		if digest == "" || digest != digests[0] {
			t.Errorf("got the digests %q, want them equal", digests)
		}
	}
	if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 1 {
		t.Errorf("the store holds %v, %v, want one entry", entries, err)
	}
}

func TestRemoveAbandoned(t *testing.T) {
	s := store{dir: t.TempDir()}
	recent := filepath.Join(s.dir, temporaryPrefix+"recent")
	old := filepath.Join(s.dir, temporaryPrefix+"old")
	for _, dir := range []string{recent, old} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * abandonedAfter)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	testImage(t, s, OperatorRepository+":1", "program")
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the abandoned entry: got %v, want it gone", err)
	}
	if _, err := os.Stat(recent); err != nil {
		t.Errorf("the entry that is being written: got %v, want it kept", err)
	}
}
