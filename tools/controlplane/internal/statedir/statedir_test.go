package statedir

import (
	"errors"
	"io/fs"
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
	if err := dir.Clear(nil); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(string(dir)); err != nil || len(entries) != 0 {
		t.Errorf("cleared, the folder holds %v, %v", entries, err)
	}
}

// What a failed cluster logged stays, and its folder can be taken by the next one.
func TestEnd(t *testing.T) {
	dir := Dir(filepath.Join(t.TempDir(), "state"))
	if err := dir.Create(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir.Logs(), "kube-apiserver.log")
	if err := os.WriteFile(log, []byte("why\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.End(errors.New("the API server ended")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log); err != nil {
		t.Errorf("the log of a failed cluster: %v", err)
	}
	if _, err := os.Stat(dir.PKI()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the keys of a failed cluster are still there: %v", err)
	}
	if err := dir.Create(); err != nil {
		t.Errorf("the next cluster can't have the folder: %v", err)
	}
	if err := dir.End(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(string(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a cluster that was told to end: %v", err)
	}
}
