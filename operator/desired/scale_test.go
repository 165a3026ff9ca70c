package desired_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// applied is what the API server notes about fields that the operator applied.
func applied(apiVersion, fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: desired.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}}
}

func TestReplicas(t *testing.T) {
	autoscaling := &v1alpha1.AutoscalingSpec{Enabled: true, MinReplicas: 2, MaxReplicas: 6}
	live := func(replicas *int32, owned bool) *appsv1.Deployment {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
		deployment.Spec.Replicas = replicas
		if owned {
			deployment.ManagedFields = applied("apps/v1", `{"f:spec":{"f:replicas":{}}}`)
		}
		return deployment
	}
	tests := []struct {
		name        string
		replicas    *int32
		autoscaling *v1alpha1.AutoscalingSpec
		live        *appsv1.Deployment
		want        *int32
		// guarded says that the write must fail if live has changed meanwhile.
		guarded bool
	}{
		{name: "of the spec", replicas: new(int32(5)), live: live(new(int32(3)), true), want: new(int32(5))},
		{name: "zero", replicas: new(int32(0)), want: new(int32(0))},
		{name: "one by default", want: new(int32(1))},
		{name: "autoscaling is there and off", replicas: new(int32(1)), autoscaling: &v1alpha1.AutoscalingSpec{MinReplicas: 2}, want: new(int32(1))},
		{name: "a new autoscaled one", replicas: new(int32(5)), autoscaling: autoscaling, want: new(int32(2))},
		{name: "the autoscaler's choice", autoscaling: autoscaling, live: live(new(int32(4)), false)},
		{name: "the autoscaler's choice is the minimum", autoscaling: autoscaling, live: live(new(int32(2)), false)},
		{name: "autoscaling is new, the number still the operator's", autoscaling: autoscaling, live: live(new(int32(4)), true), want: new(int32(4)), guarded: true},
		{name: "lifted from zero", autoscaling: autoscaling, live: live(new(int32(0)), false), want: new(int32(2)), guarded: true},
		{name: "lifted from Kubernetes' default", autoscaling: autoscaling, live: live(nil, false), want: new(int32(2)), guarded: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			runtime := runtime(t, "minimal.yaml")
			runtime.Spec.Replicas, runtime.Spec.Autoscaling = test.replicas, test.autoscaling
			deployment, err := desired.Deployment(runtime, test.live)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, deployment.Spec.Replicas); diff != "" {
				t.Errorf("replicas (-want +got):\n%s", diff)
			}
			if guarded := deployment.ResourceVersion != nil && *deployment.ResourceVersion == "7"; guarded != test.guarded {
				t.Errorf("demands the version that was read: %t, want %t", guarded, test.guarded)
			}
		})
	}
}

func TestUnreadableFieldOwnershipIsAnError(t *testing.T) {
	autoscaled := runtime(t, "scaled.yaml")
	broken := metav1.ObjectMeta{Namespace: "inference", Name: "rt"}
	broken.ManagedFields = applied("apps/v1", `{"k:{":{}}`)
	if _, err := desired.Deployment(autoscaled, &appsv1.Deployment{ObjectMeta: broken}); err == nil || !strings.Contains(err.Error(), "Deployment inference/rt") {
		t.Errorf("error %v, want one that names the Deployment", err)
	}
	broken.ManagedFields = applied("v1", `{"k:{":{}}`)
	if _, err := desired.ServiceAccount(autoscaled, &corev1.ServiceAccount{ObjectMeta: broken}); err == nil || !strings.Contains(err.Error(), "ServiceAccount inference/rt") {
		t.Errorf("error %v, want one that names the ServiceAccount", err)
	}
}

func TestOptionalObjects(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		runtime := runtime(t, "minimal.yaml")
		runtime.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Enabled: enabled}
		runtime.Spec.Autoscaling = &v1alpha1.AutoscalingSpec{Enabled: enabled}
		if desired.HasNetworkPolicy(runtime) != enabled || desired.HasAutoscaler(runtime) != enabled {
			t.Errorf("enabled %t: NetworkPolicy %t, autoscaler %t", enabled, desired.HasNetworkPolicy(runtime), desired.HasAutoscaler(runtime))
		}
	}
	without := runtime(t, "minimal.yaml")
	if desired.HasNetworkPolicy(without) || desired.HasAutoscaler(without) {
		t.Error("a runtime that asks for neither has a NetworkPolicy or an autoscaler")
	}
}

func TestLacksCPURequest(t *testing.T) {
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	memory := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	tests := []struct {
		name      string
		enabled   bool
		resources *corev1.ResourceRequirements
		want      bool
	}{
		{name: "no autoscaling"},
		{name: "no resources", enabled: true, want: true},
		{name: "other resources", enabled: true, resources: &corev1.ResourceRequirements{Requests: memory, Limits: memory}, want: true},
		{name: "a request", enabled: true, resources: &corev1.ResourceRequirements{Requests: cpu}},
		{name: "a limit stands in for the request", enabled: true, resources: &corev1.ResourceRequirements{Limits: cpu}},
	}
	for _, test := range tests {
		runtime := runtime(t, "minimal.yaml")
		runtime.Spec.Autoscaling = &v1alpha1.AutoscalingSpec{Enabled: test.enabled}
		runtime.Spec.Resources = test.resources
		if got := desired.LacksCPURequest(runtime); got != test.want {
			t.Errorf("%s: %t, want %t", test.name, got, test.want)
		}
	}
}
