package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// first is how every first rollout goes, and begun how every upgrade begins.
var (
	first = []string{"RuntimeNotReady NoUpgrade", "RuntimeReady NoUpgrade"}
	begun = append(slices.Clone(first), "RuntimeNotReady UpgradeInProgress", "RuntimeReady UpgradeInProgress")
)

func upgraded(from, to string) string {
	return fmt.Sprintf("Upgrade from %s to %s is complete.", image(from), image(to))
}

func abandoned(from, to string) string {
	return fmt.Sprintf("Upgrade from %s to %s was abandoned", image(from), image(to))
}

func inProgress(from, to string) string {
	return fmt.Sprintf("Upgrade from %s to %s is in progress.", image(from), image(to))
}

func TestAnUpgradeIsCompleteWhenThePodsRunIt(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Replicas = new(int32(2)) })
	s.setTag(tagB)
	operatortest.WaitCondition(t, api, s.ObjectKey, v1alpha1.ConditionUpgrading, "False", "UpgradeComplete")
	s.runs(tagB, 2)
	s.reaches("the upgrade is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeUpgradeCompleted"},
	})

	// The way back is an upgrade like any other.
	s.setTag(tagA)
	s.reaches("the upgrade back is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagB, tagA), desired: tagA, last: tagA,
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeUpgradeCompleted"},
	})
	s.runs(tagA, 2)
	s.wentThrough(append(slices.Clone(begun),
		"RuntimeReady UpgradeComplete",
		"RuntimeNotReady UpgradeInProgress", "RuntimeReady UpgradeInProgress", "RuntimeReady UpgradeComplete")...)
}

func TestARolloutOfConfigurationKeepsTheUpgrade(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, nil)
	s.setTag(tagB)
	s.reaches("the upgrade is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeUpgradeCompleted"},
	})
	before := s.pods()[0].UID

	s.change(func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Runtime = &v1alpha1.RuntimeSettings{ShutdownDrainTimeoutSeconds: new(int32(7))}
	})
	s.reaches("the configuration is rolled out", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeProgressing", "RuntimeReady"},
	})
	s.runs(tagB, 1)
	pod := s.pods()[0]
	if pod.UID == before {
		t.Error("the pod was not replaced")
	}
	log, err := clientset.CoreV1().Pods(s.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), `"graceful_shutdown_seconds":7`) {
		t.Errorf("the runtime did not take the setting: %v\n%s", err, log)
	}
	s.wentThrough(append(slices.Clone(begun),
		"RuntimeReady UpgradeComplete", "RuntimeNotReady UpgradeComplete", "RuntimeReady UpgradeComplete")...)
}

func TestAnUpgradeRevertedInFlight(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Replicas = new(int32(3)) })
	s.setTag(tagB)
	s.podOf(tagB, "is ready", isReady)
	s.setTag(tagA)
	s.reaches("the first image is back", stage{
		conditions: complete, upgrading: "False NoUpgrade", message: abandoned(tagA, tagB), desired: tagA, last: tagA,
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeReady"},
	})
	s.runs(tagA, 3)
	s.wentThrough(slices.Concat(begun, first)...)
}

func TestAnUpgradeThatChangesItsTarget(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Replicas = new(int32(3)) })
	s.setTag(tagB)
	s.podOf(tagB, "is ready", isReady)
	s.setTag(tagC)
	s.reaches("the last target runs", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagC), desired: tagC, last: tagC,
		events: []string{
			"RuntimeUpgradeStarted", "RuntimeReady",
			"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeUpgradeCompleted",
		},
	})
	s.runs(tagC, 3)
	s.wentThrough(append(slices.Clone(begun),
		"RuntimeNotReady UpgradeInProgress", "RuntimeReady UpgradeInProgress", "RuntimeReady UpgradeComplete")...)

	started := []string{
		fmt.Sprintf("Upgrade from %s to %s has started.", image(tagA), image(tagB)),
		fmt.Sprintf("Upgrade from %s to %s has started.", image(tagA), image(tagC)),
	}
	if got := s.notes("RuntimeUpgradeStarted"); !slices.Equal(got, started) {
		t.Errorf("the upgrades that started are %q, want %q", got, started)
	}
	if got := s.notes("RuntimeUpgradeCompleted"); !slices.Equal(got, []string{upgraded(tagA, tagC)}) {
		t.Errorf("the upgrades that completed are %q, want the last one", got)
	}
}

func TestAnImageSetAtZeroReplicasHasNotRun(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, nil)
	s.setReplicas(0)
	s.reaches("the runtime is scaled to zero", stage{
		conditions: scaledToZero, upgrading: "False NoUpgrade", message: "No upgrade is active.", desired: tagA, last: tagA,
		// The last pod serves until its end.
		events: []string{"RuntimeProgressing", "RuntimeReady?", "RuntimeScaledToZero"},
	})
	s.setTag(tagB)
	s.reaches("the image is recorded", stage{
		conditions: scaledToZero, upgrading: "False UpgradeComplete",
		message: upgraded(tagA, tagB) + " It was recorded at 0 replicas and has not run.", desired: tagB, last: tagB,
		events: []string{"RuntimeUpgradeStarted", "RuntimeScaledToZero", "RuntimeUpgradeCompleted"},
	})
	s.runs(tagB, 0)

	s.setReplicas(1)
	s.reaches("the image runs", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeProgressing", "RuntimeReady"},
	})
	s.runs(tagB, 1)
	condition := operatortest.WaitCondition(t, api, s.ObjectKey, v1alpha1.ConditionUpgrading, "False", "UpgradeComplete")
	if condition.Message != upgraded(tagA, tagB) {
		t.Errorf("the message %q says more than that the upgrade is complete", condition.Message)
	}
	s.wentThrough(append(slices.Clone(first),
		"RuntimeNotReady NoUpgrade", "RuntimeReady NoUpgrade?", "ScaledToZero NoUpgrade",
		"RuntimeNotReady UpgradeInProgress", "ScaledToZero UpgradeComplete",
		"RuntimeNotReady UpgradeComplete", "RuntimeReady UpgradeComplete")...)
}
