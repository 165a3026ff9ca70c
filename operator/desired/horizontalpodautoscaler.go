package desired

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// HasAutoscaler says that the number of the runtime's Pods is an autoscaler's to choose.
func HasAutoscaler(runtime *v1alpha1.TrussiumRuntime) bool {
	return runtime.Spec.Autoscaling != nil && runtime.Spec.Autoscaling.Enabled
}

// HorizontalPodAutoscaler keeps the CPU utilization of the runtime Pods at the target.
// The runtime must have spec.autoscaling.
func HorizontalPodAutoscaler(runtime *v1alpha1.TrussiumRuntime) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	scaling := runtime.Spec.Autoscaling
	cpu := autoscalingv2ac.MetricSpec().
		WithType(autoscalingv2.ResourceMetricSourceType).
		WithResource(autoscalingv2ac.ResourceMetricSource().
			WithName(corev1.ResourceCPU).
			WithTarget(autoscalingv2ac.MetricTarget().
				WithType(autoscalingv2.UtilizationMetricType).
				WithAverageUtilization(scaling.TargetCPUUtilizationPercentage)))

	return autoscalingv2ac.HorizontalPodAutoscaler(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithSpec(autoscalingv2ac.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").
				WithKind("Deployment").
				WithName(runtime.Name)).
			WithMinReplicas(scaling.MinReplicas).
			WithMaxReplicas(scaling.MaxReplicas).
			WithMetrics(cpu))
}

// LacksCPURequest says that an autoscaler is asked for that has nothing to measure
// the utilization against. Kubernetes takes a limit for a request that is left out.
func LacksCPURequest(runtime *v1alpha1.TrussiumRuntime) bool {
	if !HasAutoscaler(runtime) {
		return false
	}
	resources := runtime.Spec.Resources
	if resources == nil {
		return true
	}
	return resources.Requests.Cpu().IsZero() && resources.Limits.Cpu().IsZero()
}
