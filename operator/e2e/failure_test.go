package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// Two images that never become ready, for reasons that only a kubelet can show.
func TestAnUpgradeThatHangsIsRolledBack(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		tag   string
		hangs func(s *subject)
	}{
		"the readiness probe fails": {tagBroken, func(s *subject) {
			pod := s.podOf(tagBroken, "has started", func(_ corev1.Pod, status corev1.ContainerStatus) error {
				if status.Started == nil || !*status.Started {
					return fmt.Errorf("not started: %+v", status.State)
				}
				return nil
			})
			operatortest.Eventually(s.t, "the kubelet has seen the probe fail", func() error {
				for _, event := range s.eventsAbout("Pod", pod.Name) {
					if event.Reason == "Unhealthy" && strings.Contains(event.Note, "Readiness probe failed") {
						return nil
					}
				}
				return errors.New("there is no such event")
			})
		}},
		"the image is missing": {tagMissing, func(s *subject) {
			s.podOf(tagMissing, "can't pull", func(_ corev1.Pod, status corev1.ContainerStatus) error {
				if waiting := status.State.Waiting; waiting == nil || waiting.Reason != "ImagePullBackOff" {
					return fmt.Errorf("state %+v", status.State)
				}
				return nil
			})
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tagA, nil)
			old := s.pods()[0]
			s.setTag(test.tag)
			test.hangs(s)
			s.reaches("the upgrade is in progress", stage{
				conditions: serving, upgrading: "True UpgradeInProgress", message: inProgress(tagA, test.tag), desired: test.tag, last: tagA,
				events: []string{"RuntimeUpgradeStarted", "RuntimeReady"},
			})
			s.serves()

			s.setTag(tagA)
			s.reaches("the first image is back", stage{
				conditions: complete, upgrading: "False NoUpgrade", message: abandoned(tagA, test.tag), desired: tagA, last: tagA,
				events: []string{"RuntimeReady"},
			})
			s.runs(tagA, 1)
			if pod := s.pods()[0]; pod.UID != old.UID || pod.Status.ContainerStatuses[0].RestartCount > 0 {
				t.Errorf("pod %s did not run all the time: now it is %s", old.Name, pod.Name)
			}
			s.wentThrough(slices.Concat(begun, first)...)
		})
	}
}

// forbidMorePods sets a quota that the runtime's pods use up, and returns when it is enforced.
func (s *subject) forbidMorePods() *corev1.ResourceQuota {
	s.t.Helper()
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse(fmt.Sprint(len(s.pods())))}},
	}
	if err := api.Create(s.t.Context(), quota); err != nil {
		s.t.Fatal(err)
	}
	operatortest.Eventually(s.t, "the quota is enforced", func() error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "one-more"},
			Spec: corev1.PodSpec{
				ServiceAccountName: s.Name,
				Containers:         []corev1.Container{{Name: "one-more", Image: image(tagA)}},
			},
		}
		err := api.Create(s.t.Context(), pod, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("one more pod gives %w", err)
		}
		return nil
	})
	return quota
}

// failUpgrade begins an upgrade to tagB whose pods a quota forbids.
func failUpgrade(t *testing.T) (*subject, *corev1.ResourceQuota) {
	t.Helper()
	s := start(t, tagA, nil)
	quota := s.forbidMorePods()
	s.setTag(tagB)
	s.reaches("the upgrade has failed", stage{
		conditions: refused, upgrading: "False UpgradeFailed",
		message: fmt.Sprintf("Upgrade from %s to %s failed with ReplicaFailure: ", image(tagA), image(tagB)), desired: tagB, last: tagA,
		// The failure may be there before the operator sees that the old pod serves.
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady?", "RuntimeDegraded", "RuntimeUpgradeFailed"},
	})
	s.serves()
	return s, quota
}

var failed = append(slices.Clone(first),
	"RuntimeNotReady UpgradeInProgress", "RuntimeReady UpgradeInProgress?", "DeploymentFailed UpgradeFailed ReplicaFailure")

func TestAFailedUpgradeCompletesWhenItsCauseIsGone(t *testing.T) {
	t.Parallel()
	s, quota := failUpgrade(t)
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	s.reaches("the upgrade is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeRecovered", "RuntimeProgressing", "RuntimeReady", "RuntimeUpgradeCompleted"},
	})
	s.runs(tagB, 1)
	s.wentThrough(append(slices.Clone(failed), "RuntimeReady UpgradeInProgress", "RuntimeReady UpgradeComplete")...)
}

func TestAFailedUpgradeIsRolledBack(t *testing.T) {
	t.Parallel()
	s, _ := failUpgrade(t)
	s.setTag(tagA)
	s.reaches("the first image is back", stage{
		conditions: complete, upgrading: "False NoUpgrade", message: abandoned(tagA, tagB), desired: tagA, last: tagA,
		events: []string{"RuntimeRecovered", "RuntimeProgressing", "RuntimeReady"},
	})
	s.runs(tagA, 1)
	s.wentThrough(slices.Concat(failed, first)...)
}

func TestARuntimeWaitsForItsSecret(t *testing.T) {
	t.Parallel()
	s := create(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Provider.Type = v1alpha1.ProviderOpenAI
		runtime.Spec.Provider.CredentialsSecretRef = &v1alpha1.SecretKeyReference{Name: "provider", Key: "key"}
	})
	s.reaches("the Secret is missed", stage{
		conditions: secretMissing, upgrading: "False NoUpgrade", desired: tagA, blocked: true,
		events: []string{"ConfigurationInvalid"},
	})
	condition := operatortest.WaitCondition(t, api, s.ObjectKey, v1alpha1.ConditionConfigurationValid, "False", "SecretNotFound")
	if !strings.Contains(condition.Message, "provider") {
		t.Errorf("the message %q does not name the Secret", condition.Message)
	}
	s.runs(tagA, 0)

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "provider"},
		StringData: map[string]string{"key": "secret-value"},
	}
	if err := api.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	s.reaches("the runtime runs", stage{
		conditions: complete, upgrading: "False NoUpgrade", message: "No upgrade is active.", desired: tagA, last: tagA,
		events: []string{"RuntimeRecovered", "RuntimeProgressing", "RuntimeReady"},
	})
	s.runs(tagA, 1)
	s.wentThrough("ConfigurationInvalid NoUpgrade ConfigurationInvalid", "RuntimeNotReady NoUpgrade", "RuntimeReady NoUpgrade")
}
