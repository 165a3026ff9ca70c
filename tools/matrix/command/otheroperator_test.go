package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/check/static"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/otheroperator"
)

// judgeOther runs the matrix on the repository of another operator and returns its exit code, its output and the
// evidence of its only cell.
func judgeOther(t *testing.T, repository string) (int, string, *evidence.Cell) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"run", "--repository", repository}, &stdout, &stderr)
	told := stdout.String() + stderr.String()
	cells, err := (evidence.Store{Dir: filepath.Join(repository, "evidence")}).All()
	if err != nil || len(cells) != 1 {
		t.Fatalf("exit code %d with the evidence of %d cells: %v\n%s", code, len(cells), err, told)
	}
	return code, told, cells[0]
}

// outcome is how a step of the cell ended, and why.
func outcome(t *testing.T, cell *evidence.Cell, id string) (evidence.Outcome, string) {
	t.Helper()
	step := cell.Step(id)
	if step == nil {
		t.Fatalf("the cell has no step %s", id)
	}
	return step.Outcome, step.Reason
}

// The matrix judges an operator that is not ours by its compatibility file and its scenarios alone.
func TestAnotherOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	repository := otheroperator.Repository(t)
	code, told, cell := judgeOther(t, repository)
	if code != exitGreen || cell.Verdict != evidence.Proven {
		t.Fatalf("exit code %d, verdict %s: %s\n%s", code, cell.Verdict, cell.Reason, told)
	}
	// What this operator does not have is not said to be proven.
	var skipped []string
	for _, step := range cell.Steps {
		if step.Outcome == evidence.Skipped {
			if !strings.Contains(step.Reason, "a cluster of the provider") { // which has no say in the operator
				skipped = append(skipped, step.ID)
			}
			if !strings.HasPrefix(step.Reason, "not applicable: ") {
				t.Errorf("%s is left out, because it is %s", step.ID, step.Reason)
			}
		}
	}
	if want := []string{static.TemplateGolden.ID, check.UpgradeInFlight.ID}; !slices.Equal(skipped, want) {
		t.Errorf("left out are %q, want %q", skipped, want)
	}
	report, err := os.ReadFile(filepath.Join(repository, "UPGRADE-MATRIX.md"))
	if err != nil || !strings.Contains(string(report), "What upgrades of `kiosk-operator`") || strings.Contains(strings.ToLower(string(report)), "trussium") {
		t.Errorf("the report is not about kiosks (%v):\n%s", err, report)
	}
	if _, err := os.Stat(filepath.Join(repository, "docs")); err == nil {
		t.Error("docs of this repository were written into that one")
	}
}

// A right that the chart lacks makes the checks red that judge rights, and the operator never takes over.
func TestAnotherOperatorWithoutARight(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	repository := otheroperator.Repository(t)
	otheroperator.Replace(t, repository, "charts/kiosk-operator/templates/role.yaml", "resources: [deployments]", "resources: [replicasets]")
	code, told, cell := judgeOther(t, repository)
	if code != exitRed || cell.Verdict != evidence.Refuted {
		t.Fatalf("exit code %d, verdict %s: %s\n%s", code, cell.Verdict, cell.Reason, told)
	}
	for id, says := range map[string]string{
		static.RBACCoversCode.ID: "deployments.apps in all namespaces is needed by manager",
		check.LiveRBAC.ID:        "may not get, list, watch, create, update, patch, delete deployments.apps",
		check.Handover.ID:        "there are 2 operator pods, 1 is wanted", // the new one never becomes Ready, and the old one stays
	} {
		if ended, reason := outcome(t, cell, id); ended != evidence.Failed || !strings.Contains(reason, says) {
			t.Errorf("%s is %s: %s", id, ended, reason)
		}
	}
	for _, id := range []string{check.BaselineAlive.ID, static.CRDCompatible.ID} {
		if ended, reason := outcome(t, cell, id); ended != evidence.Passed {
			t.Errorf("%s is %s: %s", id, ended, reason)
		}
	}
}
