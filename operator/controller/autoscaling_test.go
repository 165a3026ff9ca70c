package controller_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// replicaHistory follows the numbers of Pods that a Deployment asks for.
type replicaHistory struct {
	mu      sync.Mutex
	numbers []int32
}

func (h *replicaHistory) seen() []int32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Compact(slices.Clone(h.numbers))
}

func followReplicas(t *testing.T, namespace string) *replicaHistory {
	t.Helper()
	history := &replicaHistory{}
	operatortest.Follow(t, restConfig, &appsv1.DeploymentList{}, namespace, func(deployment *appsv1.Deployment) {
		history.mu.Lock()
		defer history.mu.Unlock()
		history.numbers = append(history.numbers, *deployment.Spec.Replicas)
	})
	return history
}

// scale sets the number of Pods as an autoscaler does.
func scale(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	body := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	err := api.SubResource("scale").Update(t.Context(), deployment(t, namespace, name), client.WithSubResourceBody(body),
		client.FieldOwner("kube-controller-manager"))
	if err != nil {
		t.Fatalf("scale %s to %d: %v", name, replicas, err)
	}
}

func replicasBecome(t *testing.T, namespace string, want int32) {
	t.Helper()
	operatortest.Eventually(t, "the number of Pods changes", func() error {
		if got := *deployment(t, namespace, "rt").Spec.Replicas; got != want {
			return errorf("it is %d, want %d", got, want)
		}
		return nil
	})
}

func autoscaled(minimum, maximum int32) *v1alpha1.AutoscalingSpec {
	return &v1alpha1.AutoscalingSpec{Enabled: true, MinReplicas: minimum, MaxReplicas: maximum, TargetCPUUtilizationPercentage: 70}
}

func TestAutoscalingOnAndOff(t *testing.T) {
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	runtime := minimal(namespace, "rt")
	five := int32(5)
	runtime.Spec.Replicas = &five
	runtime.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	create(t, runtime)
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	history := followReplicas(t, namespace)
	operator.settle(t)

	// On: the autoscaler comes last and finds what is running.
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Autoscaling = autoscaled(2, 6) })
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
	operatortest.Eventually(t, "the autoscaler exists", func() error {
		return api.Get(t.Context(), client.ObjectKeyFromObject(runtime), autoscaler)
	})
	if !metav1.IsControlledBy(autoscaler, runtime) {
		t.Errorf("the autoscaler has the owners %v, want the runtime as its controller", autoscaler.OwnerReferences)
	}
	spec := autoscaler.Spec
	if *spec.MinReplicas != 2 || spec.MaxReplicas != 6 || spec.ScaleTargetRef.Kind != "Deployment" || spec.ScaleTargetRef.Name != "rt" ||
		len(spec.Metrics) != 1 || spec.Metrics[0].Resource.Name != corev1.ResourceCPU || *spec.Metrics[0].Resource.Target.AverageUtilization != 70 {
		t.Errorf("the autoscaler is %+v", spec)
	}
	operator.settle(t)
	if got := history.seen(); !slices.Equal(got, []int32{5}) {
		t.Errorf("switching on made the Pods %v, want 5 all the time", got)
	}

	// The autoscaler chooses, and a rollout leaves its choice alone.
	scale(t, namespace, "rt", 4)
	operator.settle(t)
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Image.Tag = "1.30.0" })
	operatortest.Eventually(t, "the image is rolled out", func() error {
		if image := deployment(t, namespace, "rt").Spec.Template.Spec.Containers[0].Image; !strings.HasSuffix(image, ":1.30.0") {
			return errorf("it is %s", image)
		}
		return nil
	})
	operator.settle(t)
	if got := history.seen(); !slices.Equal(got, []int32{5, 4}) {
		t.Errorf("the Pods were %v, want the autoscaler's 4 after 5", got)
	}

	// spec.replicas has no effect meanwhile.
	operator.forget()
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { *runtime.Spec.Replicas = 3 })
	operator.settle(t)
	if got := *deployment(t, namespace, "rt").Spec.Replicas; got != 4 {
		t.Errorf("spec.replicas made the Pods %d", got)
	}

	// No autoscaler works at 0.
	scale(t, namespace, "rt", 0)
	replicasBecome(t, namespace, 2)

	// Off: the autoscaler goes first.
	operator.settle(t)
	operator.forget()
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Autoscaling.Enabled = false })
	replicasBecome(t, namespace, 3)
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(runtime), autoscaler); !apierrors.IsNotFound(err) {
		t.Errorf("the autoscaler is still there: %v", err)
	}
	operator.settle(t)
	removed, restored := -1, -1
	for i, request := range operator.seen() {
		switch {
		case strings.HasPrefix(request, "DELETE ") && strings.Contains(request, "/horizontalpodautoscalers/"):
			removed = i
		case strings.HasPrefix(request, "PATCH ") && strings.Contains(request, "/deployments/") && restored < 0:
			restored = i
		}
	}
	if removed < 0 || restored < removed {
		t.Errorf("the autoscaler must go before the number of Pods is restored: %v", operator.seen())
	}
}

func TestAFreshRuntimeStartsAtTheAutoscalersMinimum(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	history := followReplicas(t, namespace)
	runtime := minimal(namespace, "rt")
	runtime.Spec.Autoscaling = autoscaled(3, 6)
	create(t, runtime)
	completeRollout(t, namespace, "rt")
	valid := waitCondition(t, namespace, "rt", v1alpha1.ConditionConfigurationValid, metav1.ConditionTrue, "ReferencesResolved")
	if !strings.Contains(valid.Message, "spec.resources.requests.cpu") {
		t.Errorf("the missing CPU request is not told: %s", valid.Message)
	}
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	if got := history.seen(); !slices.Equal(got, []int32{3}) {
		t.Errorf("the Pods were %v, want 3 from the start", got)
	}
}

// The autoscaler writes its status every 15 seconds.
func TestTheAutoscalersStatusCostsNothing(t *testing.T) {
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	runtime := minimal(namespace, "rt")
	runtime.Spec.Autoscaling = autoscaled(1, 6)
	create(t, runtime)
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	operator.settle(t)
	operator.forget()
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
	operatortest.Eventually(t, "the autoscaler's status is written", func() error {
		get(t, namespace, "rt", autoscaler)
		autoscaler.Status.CurrentReplicas++
		return api.Status().Update(t.Context(), autoscaler)
	})
	operator.settle(t)
	if requests := operator.seen(); len(requests) > 0 {
		t.Errorf("the autoscaler's status cost requests: %v", requests)
	}
	// Drift is repaired all the same, though autoscalers have no generation.
	change(t, autoscaler, func(object *autoscalingv2.HorizontalPodAutoscaler) { object.Spec.MaxReplicas = 99 })
	operatortest.Eventually(t, "the autoscaler is repaired", func() error {
		if got := get(t, namespace, "rt", autoscaler).Spec.MaxReplicas; got != 6 {
			return errorf("maxReplicas is %d", got)
		}
		return nil
	})
}
