//go:build kind

package matrix

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/kind"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// row is the row that has been run on both providers.
var row = flag.String("row", "1.0.4", "a row of compatibility.yaml with evidence from both providers")

// TestSameVerdicts compares what every step of a row says on both providers, by the evidence in the checkout.
func TestSameVerdicts(t *testing.T) {
	found, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	documents, err := evidence.Store{Dir: filepath.Join(found.Repository, EvidenceDir)}.All()
	if err != nil {
		t.Fatal(err)
	}
	on := func(provider string) *evidence.Cell {
		t.Helper()
		i := slices.IndexFunc(documents, func(d *evidence.Cell) bool { return d.Upgrade.Row == *row && d.Cluster.Provider == provider })
		if i < 0 {
			t.Fatalf("there is no evidence of the row %[1]s on %[2]s: go run ./tools/matrix run --row %[1]s --provider %[2]s", *row, provider)
		}
		return documents[i]
	}
	light, real := on(embedded.ProviderName), on(kind.ProviderName)
	if light.To.Image.Digest != real.To.Image.Digest || light.To.Chart.Digest != real.To.Chart.Digest {
		t.Fatalf("the evidence is of two operators, %s and %s: run the row on both providers", light.To.Image.Digest, real.To.Image.Digest)
	}
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
