package cell

import (
	"errors"
	"syscall"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/fulldisk"
)

// fillingObserver fills the disk when the first step has ended.
type fillingObserver struct {
	quietObserver
	t     *testing.T
	dir   string
	ended int
}

func (o *fillingObserver) StepEnded(string, evidence.Step) {
	if o.ended++; o.ended == 1 {
		fulldisk.Fill(o.t, o.dir, 0)
	}
}

// A cell whose result can't be kept ends with an error: it has no verdict, and what was kept before
// is what it was.
func TestRunOnAFullDisk(t *testing.T) {
	fulldisk.Run(t, 1<<20, func(t *testing.T, dir string) {
		env := nowhere(t, dir)
		env.Observe = &fillingObserver{t: t, dir: dir}
		got, err := Run(t.Context(), spec(), env)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("the error is %v, want that there is no space", err)
		}
		if got.Verdict != evidence.Unfinished || got.Finished != nil {
			t.Errorf("the verdict is %s", got.Verdict)
		}
		kept, err := env.Store.Load("a--b")
		if err != nil || kept.Verdict != evidence.Unfinished || len(kept.Steps) != 1 {
			t.Errorf("kept is %+v, %v, want the first step", kept, err)
		}
	})
}
