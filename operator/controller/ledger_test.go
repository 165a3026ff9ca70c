package controller_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// mostWrites are what a scenario may cost at most, whatever the golden file says.
var mostWrites = map[string]int{"create": 9, "image change": 6, "delete": 0}

// The ledger holds every write request that a scenario costs until all is at rest.
func TestLedgerOfWrites(t *testing.T) {
	scenarios := scenarios()
	var names []string
	for _, scenario := range scenarios {
		names = append(names, scenario.name)
	}
	pages := make([]string, len(scenarios))
	together(t, names, func(t *testing.T, i int) {
		r, outcome := scenarios[i].play(t)
		t.Logf("%d more status writes were refused, from a view that was too old", r.wire.inVain())
		pages[i] = page(names[i], outcome.writes)
		if most, bounded := mostWrites[names[i]]; bounded && len(outcome.writes) > most {
			t.Errorf("%d writes, want at most %d: %v", len(outcome.writes), most, outcome.writes)
		}
	})
	ledger := strings.Join(pages, "\n")
	t.Logf("writes:\n%s", ledger)

	golden := filepath.Join("testdata", "ledger.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(ledger), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), ledger); diff != "" {
		t.Errorf("the ledger differs; if it should, run the test with -update (-want +got):\n%s", diff)
	}
}

// page is the ledger of one scenario.
func page(name string, writes []write) string {
	counts := map[string]int{}
	for _, write := range writes {
		counts[write.String()]++
	}
	lines := []string{fmt.Sprintf("%s: %d", name, len(writes))}
	for _, entry := range slices.Sorted(maps.Keys(counts)) {
		lines = append(lines, fmt.Sprintf("  %s: %d", entry, counts[entry]))
	}
	return strings.Join(lines, "\n") + "\n"
}

// Runtimes that nobody changes cost nothing, whatever wakes the operator.
func TestRuntimesAtRestCostNothing(t *testing.T) {
	const count = 30
	namespace := newNamespace(t)
	r := &run{namespace: namespace, wire: &wire{namespace: namespace}}
	r.operator = startOperator(t, namespace, r.wire.connect)
	name := func(i int) string { return fmt.Sprintf("rt-%d", i) }
	for i := range count {
		runtime := minimal(namespace, name(i))
		if i%3 == 1 {
			runtime.Spec.Autoscaling = autoscaled(2, 6)
		}
		if i%3 == 2 {
			runtime.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Enabled: true, Ingress: []v1alpha1.NetworkPolicyPeer{{}}}
		}
		create(t, runtime)
	}
	for i := range count {
		completeRollout(t, namespace, name(i))
		waitCondition(t, namespace, name(i), v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	}
	r.rest(t)

	costsNothing := func(what string, act func()) {
		t.Helper()
		r.wire.forget()
		r.operator.forget()
		act()
		r.rest(t)
		if writes := r.wire.written(); len(writes) > 0 {
			t.Errorf("%s cost %d writes: %v", what, len(writes), writes)
		}
		if requests := r.operator.seen(); len(requests) > 0 {
			t.Errorf("%s cost requests: %v", what, requests)
		}
	}
	costsNothing("time", func() {
		operatortest.Eventually(t, "some time has passed", func() error {
			if silence, _, _ := r.wire.look(); silence < 4*quiet && len(r.wire.written()) == 0 {
				return errorf("silent for %s", silence)
			}
			return nil
		})
	})
	costsNothing("a restart", func() { r.restart(t) })
	costsNothing("labels and annotations of the runtimes", func() {
		for i := range count {
			change(t, minimal(namespace, name(i)), func(runtime *v1alpha1.TrussiumRuntime) {
				runtime.Labels = map[string]string{"example.com/touched": "yes"}
				runtime.Annotations = map[string]string{"example.com/touched": "yes"}
			})
		}
	})
	costsNothing("annotations of the Deployments", func() {
		for i := range count {
			change(t, deployment(t, namespace, name(i)), func(deployment *appsv1.Deployment) {
				deployment.Annotations = map[string]string{"example.com/touched": "yes"}
			})
		}
	})
	// Annotations count in a Deployment's generation, so that its controller looks again.
	costsNothing("what Kubernetes makes of the annotations", func() {
		for i := range count {
			completeRollout(t, namespace, name(i))
		}
	})
}
