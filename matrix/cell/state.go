package cell

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// state is what later steps need from earlier ones, kept in the cell's folder so that an
// interrupted cell can go on.
type state struct {
	// Begun is the id of the step that was begun last. If the evidence lacks it, the run was
	// killed in the middle of it.
	Begun string `json:"begun,omitempty"`
	// Installed is the release as it was first installed.
	Installed helm.Release `json:"installed"`
	// Before is the snapshot before the operator upgrade, BeforeRollback the one before the
	// chart rollback.
	Before         *check.Snapshot `json:"before,omitempty"`
	BeforeRollback *check.Snapshot `json:"beforeRollback,omitempty"`
	// After is the snapshot after the operator upgrade.
	After *check.Snapshot `json:"after,omitempty"`
	// EarlierFeatures and CandidateFeatures are those of the two releases, see check.FeaturesOf.
	EarlierFeatures   []string `json:"earlierFeatures,omitempty"`
	CandidateFeatures []string `json:"candidateFeatures,omitempty"`
	// Upgraded are the objects of the upgraded release.
	Upgraded []unstructured.Unstructured `json:"upgraded,omitempty"`
	// RolledBack is when the chart had been rolled back.
	RolledBack time.Time `json:"rolledBack,omitzero"`
	// BeforeRoll is the snapshot before the roll during which the operator is upgraded again.
	BeforeRoll *check.Snapshot `json:"beforeRoll,omitempty"`
	// RollBegan is when that roll had begun.
	RollBegan time.Time `json:"rollBegan,omitzero"`
}

const stateFile = "state.json"

func (s *state) save(dir string) error {
	content, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save the state of the cell: %w", err)
	}
	file := filepath.Join(dir, stateFile)
	if err := os.WriteFile(file+".tmp", content, 0o600); err != nil {
		return fmt.Errorf("save the state of the cell: %w", err)
	}
	if err := os.Rename(file+".tmp", file); err != nil {
		return fmt.Errorf("save the state of the cell: %w", err)
	}
	return nil
}

func (s *state) load(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return fmt.Errorf("load the state of the cell: %w", err)
	}
	if err := json.Unmarshal(content, s); err != nil {
		return fmt.Errorf("load the state of the cell: %w", err)
	}
	return nil
}
