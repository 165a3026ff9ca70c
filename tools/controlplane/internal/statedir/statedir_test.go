package statedir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCreateRefusesAFolderInUse(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Dir(folder).Create(); err == nil {
		t.Error("a folder with a file of someone else became a state folder")
	}
}

func TestCreateAndClear(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "state"))
	for range 2 { // the second time it is known as a state folder
		if err := dir.Create(); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(string(dir))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v, want 0700", info.Mode(), err)
	}
	if err := dir.Clear(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(string(dir)); err != nil || len(entries) != 0 {
		t.Errorf("cleared, the folder holds %v, %v", entries, err)
	}
}
