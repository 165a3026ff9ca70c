package cell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/cluster"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// quietObserver is told, and does nothing.
type quietObserver struct{}

func (quietObserver) StepStarted(string, evidence.Step)          {}
func (quietObserver) StepProgress(string, evidence.Step, string) {}
func (quietObserver) StepEnded(string, evidence.Step)            {}

var errNone = errors.New("there is none")

// nowhere is an environment without a registry, where no cluster starts.
func nowhere(t *testing.T, dir string) Environment {
	t.Helper()
	return Environment{
		Dir: filepath.Join(dir, "cell"), Provider: noClusters{},
		Attach:  func(context.Context, string) (cluster.Cluster, error) { return nil, errNone },
		Local:   func(ref string) string { return "127.0.0.1:1/" + ref },
		Store:   evidence.Store{Dir: filepath.Join(dir, "evidence")},
		Observe: quietObserver{},
	}
}

type noClusters struct{}

func (noClusters) Name() string { return "none" }
func (noClusters) Start(context.Context, cluster.Spec) (cluster.Cluster, error) {
	return nil, errNone
}

func spec() Spec {
	s := chartRow()
	s.ID, s.Key = "a--b", "k"
	s.From.Chart.Ref, s.To.Chart.Ref = "charts/operator:0.3.1", "charts/operator:1.0.5"
	return s
}

// Where neither registry nor cluster can be had, the verdict is about them, never about the
// product, and every step says why it was not run.
func TestNothingCanBeHad(t *testing.T) {
	env := nowhere(t, t.TempDir())
	got, err := Run(t.Context(), spec(), env)
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict != evidence.Infrastructure || got.Finished == nil {
		t.Errorf("the verdict is %s %q, want infrastructure", got.Verdict, got.Reason)
	}
	kept, err := env.Store.Load("a--b")
	if err != nil || kept.Verdict != got.Verdict || len(kept.Steps) != len(steps(spec())) {
		t.Errorf("kept is %+v, %v", kept, err)
	}
}

// Whatever an earlier run left, a cell that can't go on starts at its beginning.
func TestLeftoversOfAnEarlierRun(t *testing.T) {
	finished := upTo(steps(spec()), stepUpgrade)
	finished.APIVersion, finished.Kind, finished.ID = evidence.APIVersion, evidence.Kind, "a--b"
	for name, leave := range map[string]func(env Environment) error{
		"evidence without a cluster": func(env Environment) error { return env.Store.Save(finished) },
		"evidence that is cut off": func(env Environment) error {
			content, err := evidence.Marshal(finished)
			return errors.Join(err, os.MkdirAll(env.Store.Dir, 0o755), os.WriteFile(env.Store.Path("a--b"), content[:len(content)/2], 0o600))
		},
		"a state that is cut off": func(env Environment) error {
			return errors.Join(os.MkdirAll(env.Dir, 0o755), os.WriteFile(filepath.Join(env.Dir, stateFile), []byte(`{"begun":"upgr`), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := nowhere(t, t.TempDir())
			if err := leave(env); err != nil {
				t.Fatal(err)
			}
			got, err := Run(t.Context(), spec(), env)
			if err != nil {
				t.Fatal(err)
			}
			if got.Verdict != evidence.Infrastructure || got.Steps[0].Outcome == evidence.Passed {
				t.Errorf("the verdict is %s %q, and %s %s", got.Verdict, got.Reason, got.Steps[0].ID, got.Steps[0].Outcome)
			}
		})
	}
}

// Evidence must not promise what the state does not hold: a run that is killed between the two
// goes on with what is there.
func TestStateIsKeptBeforeEvidence(t *testing.T) {
	env := nowhere(t, t.TempDir())
	if err := os.MkdirAll(filepath.Join(env.Dir, stateFile), 0o755); err != nil { // a folder is in its place
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), spec(), env); err == nil {
		t.Error("a state that can't be kept is no error")
	}
	if _, err := env.Store.Load("a--b"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the evidence was kept without the state: %v", err)
	}
}
