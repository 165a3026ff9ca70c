package check

import (
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func TestJudgeRollback(t *testing.T) {
	good := RolledBack{FirstManifest: "a: 1\n", Manifest: "a: 1\n", Status: "deployed", ChartVersion: "0.3.1", WantChart: "0.3.1"}
	if r := JudgeRollback(good); r.Outcome() != evidence.Passed {
		t.Errorf("a clean rollback: %v", r.Failures)
	}
	for says, mutate := range map[string]func(*RolledBack){
		"manifest differs":       func(s *RolledBack) { s.Manifest = "a: 2\n" },
		"release is pending":     func(s *RolledBack) { s.Status = "pending-rollback" },
		"has chart version 0.5.": func(s *RolledBack) { s.ChartVersion = "0.5.0" },
	} {
		state := good
		mutate(&state)
		fails(t, HelmRollback, says, JudgeRollback(state), says)
	}
}
