package evidence

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Cell {
	finished := time.Date(2026, 11, 29, 20, 3, 4, 0, time.UTC)
	return &Cell{
		APIVersion: APIVersion, Kind: Kind, ID: "a--b", Key: "k",
		From:    Release{Version: "0.3.1", Source: "source", Commit: "abc", Chart: Artifact{Ref: "chart", Digest: "sha256:1"}},
		Runtime: RuntimeImages{Baseline: Artifact{Ref: "r:1", Digest: "sha256:2", Simulated: true}},
		Cluster: Cluster{Provider: "embedded", Kubernetes: "v1.34.4", Limits: []string{"<none>"}},
		Started: time.Date(2026, 11, 29, 20, 0, 0, 0, time.UTC), Finished: &finished,
		Verdict: Proven,
		Steps:   []Step{{ID: "quiet", Outcome: Passed, Check: true, Claim: "nothing moves"}},
	}
}

func TestStoreKeepsEverything(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	want := sample()
	for range 2 { // the second save replaces the first
		if err := store.Save(want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.Load(want.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	all, err := store.All()
	if err != nil || len(all) != 1 {
		t.Errorf("the store lists %d documents (%v), want 1", len(all), err)
	}
	entries, _ := os.ReadDir(store.Dir)
	if len(entries) != 1 {
		t.Errorf("the folder holds %v, want the document alone", entries)
	}
	if _, err := store.Load("other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading what is not there: %v", err)
	}
}

func TestAllRefusesAMisnamedDocument(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	if err := store.Save(sample()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(store.Path("a--b"), store.Path("c--d")); err != nil {
		t.Fatal(err)
	}
	if _, err := store.All(); err == nil {
		t.Error("a document under another cell's name was accepted")
	}
}

// A broken document is in the way of all, unless it is about to be written anew.
func TestAllLeavesOutWhatIsExcepted(t *testing.T) {
	store := Store{Dir: t.TempDir()}
	if err := store.Save(sample()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(store.Path("c--d"), []byte(`{"kind": `), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.All("a--b"); err == nil {
		t.Error("a broken document was accepted")
	}
	if all, err := store.All("c--d"); err != nil || len(all) != 1 {
		t.Errorf("without it the store lists %d documents, %v, want 1", len(all), err)
	}
}

func TestRecordReplacesAnEarlierResult(t *testing.T) {
	cell := sample()
	cell.Record(Step{ID: "quiet", Outcome: Failed})
	cell.Record(Step{ID: "traffic", Outcome: Passed})
	if len(cell.Steps) != 2 || cell.Step("quiet").Outcome != Failed || cell.Step("traffic") == nil {
		t.Errorf("steps are %+v", cell.Steps)
	}
}

func TestDisruptionIsKeptByItsStep(t *testing.T) {
	cell := sample()
	cell.Disruption("upgrade").FailedRequests = new(1)
	cell.Disruption("rollback").PodsReplaced = new(2)
	cell.Disruption("upgrade").Requests = new(3)
	want := []Disruption{{Step: "upgrade", FailedRequests: new(1), Requests: new(3)}, {Step: "rollback", PodsReplaced: new(2)}}
	if diff := cmp.Diff(want, cell.Disruptions); diff != "" {
		t.Error(diff)
	}
}
