package desired

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// PodDisruptionBudget lets a drain take one runtime Pod at a time. A budget on
// maxUnavailable never blocks a drain for good, not even with one replica.
func PodDisruptionBudget(runtime *v1alpha1.TrussiumRuntime) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	return policyv1ac.PodDisruptionBudget(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(runtime.Name))))
}
