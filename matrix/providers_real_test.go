//go:build kind

package matrix

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// row is the row that both providers run.
var row = flag.String("row", "1.0.4", "the row of compatibility.yaml to run on both providers")

// TestSameVerdicts runs a row on both providers, each on the file's Kubernetes version for it, and compares what every
// step says. A result that is still valid is not made again.
func TestSameVerdicts(t *testing.T) {
	found, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	run := func(provider string) *evidence.Cell {
		t.Helper()
		results, err := Run(t.Context(), Options{
			Repository: found.Repository, CacheDir: found.CacheDir, File: filepath.Join(found.Repository, compatibilityFile),
			Provider: provider, Rows: []string{*row}, Jobs: 1, Observer: logged{},
		})
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %d results, %v", provider, len(results), err)
		}
		return results[0]
	}
	real, light := run(kind.ProviderName), run(embedded.ProviderName)
	for _, difference := range differences(light, real) {
		t.Error(difference)
	}
	if light.Verdict != evidence.Proven {
		t.Errorf("both providers say %s: %s", light.Verdict, light.Reason)
	}
}

// onlyReal are the steps that a cluster without real containers leaves out.
var onlyReal = []string{"container-confined", "memory-limited", "drains-on-term", "missing-image-told"}

// differences are the steps about which two cells say something else, apart from those that one of them leaves out.
func differences(light, real *evidence.Cell) []string {
	var found []string
	if light.Verdict != real.Verdict {
		found = append(found, fmt.Sprintf("the verdict is %s on %s and %s on %s: %s%s", light.Verdict, light.Cluster.Provider, real.Verdict, real.Cluster.Provider, light.Reason, real.Reason))
	}
	if len(light.Steps) != len(real.Steps) {
		found = append(found, fmt.Sprintf("%s has %d steps, %s %d", light.Cluster.Provider, len(light.Steps), real.Cluster.Provider, len(real.Steps)))
	}
	for _, step := range light.Steps {
		other := real.Step(step.ID)
		switch {
		case other == nil:
			found = append(found, fmt.Sprintf("%s is missing on %s", step.ID, real.Cluster.Provider))
		case slices.Contains(onlyReal, step.ID):
			if step.Outcome != evidence.Skipped || other.Outcome != evidence.Passed {
				found = append(found, fmt.Sprintf("%s is %s and %s (%s)", step.ID, step.Outcome, other.Outcome, other.Reason))
			}
		case step.Outcome != other.Outcome:
			found = append(found, fmt.Sprintf("%s is %s (%s) and %s (%s)", step.ID, step.Outcome, step.Reason, other.Outcome, other.Reason))
		}
	}
	return found
}

// logged tells what happens on the standard error, for a person who waits.
type logged struct{}

func (logged) StepStarted(cell string, step evidence.Step)               {}
func (logged) StepProgress(cell string, step evidence.Step, text string) {}
func (logged) StepEnded(cell string, step evidence.Step) {
	fmt.Fprintf(os.Stderr, "%s: %s %s %s\n", cell, step.ID, step.Outcome, step.Reason)
}
func (logged) TaskStarted(task string)        {}
func (logged) TaskProgress(task, text string) { fmt.Fprintln(os.Stderr, task+":", text) }
func (logged) TaskEnded(task string, took time.Duration, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, task+":", err)
	}
}
func (logged) CellEnded(cell *evidence.Cell, reused bool) {
	fmt.Fprintf(os.Stderr, "%s: %s, reused %t\n", cell.ID, cell.Verdict, reused)
}
