package gobuild

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/fulldisk"
)

// A program that does not fit into the cache is an error, and not there: half of it would be taken
// for the whole by the next run.
func TestBuildOnAFullDisk(t *testing.T) {
	dir := module(t, hello)
	fulldisk.Run(t, 1<<20, func(t *testing.T, cache string) {
		program := Program{Dir: dir}
		free := fulldisk.Fill(t, cache, 0)
		if path, err := program.Cached(t.Context(), cache, nil); err == nil || !strings.Contains(err.Error(), "no space left on device") {
			t.Errorf("got %s, %v, want that there is no space", path, err)
		}
		free()
		entries, err := os.ReadDir(filepath.Join(cache, "bin"))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if !strings.HasSuffix(entry.Name(), ".lock") {
				t.Errorf("it left %s", entry.Name())
			}
		}
	})
}
