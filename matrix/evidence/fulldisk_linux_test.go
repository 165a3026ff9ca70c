package evidence

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/fulldisk"
)

// A document that does not fit is an error, and takes nothing from the one that is there.
func TestSaveOnAFullDisk(t *testing.T) {
	fulldisk.Run(t, 1<<20, func(t *testing.T, dir string) {
		store := Store{Dir: dir}
		want := sample()
		if err := store.Save(want); err != nil {
			t.Fatal(err)
		}
		free := fulldisk.Fill(t, dir, 0)
		next := sample()
		next.Verdict, next.Reason = Refuted, strings.Repeat("because ", 10_000)
		if err := store.Save(next); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "save the evidence of a--b") {
			t.Errorf("saving says %v, want that there is no space for the evidence of a--b", err)
		}
		got, err := store.Load(want.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the document that was there: %s", diff)
		}
		free()
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("the folder holds %v, want the document alone", entries)
		}
	})
}
