package e2e

import (
	"errors"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// has waits until an object of the runtime's name exists, or no longer does.
func (s *subject) has(object client.Object, want bool) {
	s.t.Helper()
	operatortest.Eventually(s.t, fmt.Sprintf("%T exists: %v", object, want), func() error {
		err := api.Get(s.t.Context(), s.ObjectKey, object)
		switch {
		case want || err != nil && !apierrors.IsNotFound(err):
			return err
		case err == nil:
			return errors.New("it does")
		}
		return nil
	})
}

func TestAutoscalingOnAndOff(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}
	})
	s.change(func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Autoscaling = &v1alpha1.AutoscalingSpec{Enabled: true, MinReplicas: 2, MaxReplicas: 3, TargetCPUUtilizationPercentage: 80}
	})
	s.has(&autoscalingv2.HorizontalPodAutoscaler{}, true)
	settled := stage{
		conditions: complete, upgrading: "False NoUpgrade", message: "No upgrade is active.", desired: tagA, last: tagA,
		events: []string{"RuntimeProgressing", "RuntimeReady"},
	}
	s.reaches("the least number of pods runs", settled)
	s.runs(tagA, 2)

	s.change(func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Autoscaling.Enabled = false })
	s.has(&autoscalingv2.HorizontalPodAutoscaler{}, false)
	s.reaches("the spec's number of pods runs", settled)
	s.runs(tagA, 1)
}

func TestNetworkPolicyOnAndOff(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, nil)
	pod := s.pods()[0].UID
	unchanged := stage{
		conditions: complete, upgrading: "False NoUpgrade", message: "No upgrade is active.", desired: tagA, last: tagA,
	}
	s.change(func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{
			Enabled: true,
			Ingress: []v1alpha1.NetworkPolicyPeer{{NamespaceSelector: metav1.LabelSelector{}}},
		}
	})
	s.has(&networkingv1.NetworkPolicy{}, true)
	s.reaches("the policy is in force", unchanged)

	s.change(func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.NetworkPolicy.Enabled = false })
	s.has(&networkingv1.NetworkPolicy{}, false)
	s.reaches("the policy is gone", unchanged)
	s.runs(tagA, 1)
	if s.pods()[0].UID != pod {
		t.Error("the pod was replaced")
	}
}
