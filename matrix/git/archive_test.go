package git

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// An archive that breaks off in the middle of a file is an error, not a shorter tree.
func TestUnpackCutArchive(t *testing.T) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	content := bytes.Repeat([]byte("x"), 2000)
	for _, name := range []string{"first", "second"} {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	whole := archive.Bytes()
	for _, length := range []int{100, 600, 2600, 3500, 4600} {
		if err := unpack(bytes.NewReader(whole[:length]), t.TempDir()); err == nil {
			t.Errorf("the first %d of %d bytes were unpacked as if they were all", length, len(whole))
		}
	}
	dir := t.TempDir()
	if err := unpack(bytes.NewReader(whole), dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "second")); err != nil || !bytes.Equal(got, content) {
		t.Errorf("the whole archive: got %d bytes, %v", len(got), err)
	}
}
