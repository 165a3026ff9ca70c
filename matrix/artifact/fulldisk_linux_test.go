package artifact

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/fulldisk"
)

// An image that does not fit is a fault of the machine, and nothing of it is kept or in the way.
func TestPutOnAFullDisk(t *testing.T) {
	fulldisk.Run(t, 4<<20, func(t *testing.T, dir string) {
		s := store{dir: filepath.Join(dir, "oci")}
		first := testImage(t, s, OperatorRepository+":1", "program")
		content := make([]byte, 1<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(content) // so that it does not compress
		program := binaryFile(t, string(content))
		spec := imageSpec{Path: "/program", User: "1:1", Arch: "amd64"}
		free := fulldisk.Fill(t, dir, 64<<10)
		if _, err := s.putImage("key", spec, program); !errors.Is(err, ErrInfrastructure) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v, want infrastructure, because there is no space", err)
		}
		if _, found, err := s.get("key"); found || err != nil {
			t.Errorf("the image is there: %v, %v", found, err)
		}
		free()
		if entries, err := os.ReadDir(s.dir); err != nil || len(entries) != 1 {
			t.Errorf("the store holds %v, %v, want the first image alone", entries, err)
		}
		if again := testImage(t, s, OperatorRepository+":1", "program"); again.Digest != first.Digest {
			t.Errorf("the first image is %s, was %s", again.Digest, first.Digest)
		}
		if _, err := s.putImage("key", spec, program); err != nil {
			t.Errorf("with space: %v", err)
		}
	})
}
