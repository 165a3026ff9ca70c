package desired

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// scale decides on the number of Pods: the spec's, or the autoscaler's choice.
//
// An autoscaler does not touch a Deployment at 0, so the operator lifts what is
// below the minimum. It must not simply stop to apply a number that it owns
// either: the API server would put its default of 1 in its place. It repeats the
// live number until the autoscaler has set one of its own. Neither may overwrite
// what the autoscaler has set since live was read, so both demand live's version.
func scale(deployment *appsv1ac.DeploymentApplyConfiguration, runtime *v1alpha1.TrussiumRuntime, live *appsv1.Deployment) error {
	if !HasAutoscaler(runtime) {
		replicas := int32(1)
		if runtime.Spec.Replicas != nil {
			replicas = *runtime.Spec.Replicas
		}
		deployment.Spec.WithReplicas(replicas)
		return nil
	}
	minimum := runtime.Spec.Autoscaling.MinReplicas
	if live == nil {
		deployment.Spec.WithReplicas(minimum)
		return nil
	}
	current := int32(1)
	if live.Spec.Replicas != nil {
		current = *live.Spec.Replicas
	}
	owned, err := appsv1ac.ExtractDeployment(live, FieldManager)
	if err != nil {
		return fmt.Errorf("read the field ownership of Deployment %s/%s: %w", live.Namespace, live.Name, err)
	}
	owns := owned.Spec != nil && owned.Spec.Replicas != nil
	if owns || current < minimum {
		deployment.Spec.WithReplicas(max(current, minimum))
		deployment.WithResourceVersion(live.ResourceVersion)
	}
	return nil
}
