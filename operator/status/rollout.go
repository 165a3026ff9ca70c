package status

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// phase is how far the Deployment has come, judged from its status alone.
type phase int

const (
	phaseAbsent   phase = iota // there is no Deployment
	phasePending               // the Deployment controller has not seen the latest generation
	phaseRolling               // seen, and not enough Pods are ready
	phaseServing               // enough Pods are ready, old ones are still around
	phaseComplete              // exactly the wanted Pods, all of the latest template
	phaseFailed                // the Deployment controller reports that it is stuck
)

// rollout is what a Deployment's status says about its latest template.
type rollout struct {
	phase     phase
	desired   int32
	ready     int32
	available int32
	// failure and detail say why the phase is phaseFailed.
	failure string
	detail  string
}

// assessRollout judges deployment, which must be the object as it was just
// applied: its generation tells whether its status speaks of what was applied.
func assessRollout(deployment *appsv1.Deployment) rollout {
	if deployment == nil {
		return rollout{phase: phaseAbsent}
	}
	status := deployment.Status
	result := rollout{
		desired:   desiredReplicas(deployment),
		ready:     status.ReadyReplicas,
		available: status.AvailableReplicas,
	}
	complete := status.UpdatedReplicas == result.desired &&
		status.Replicas == result.desired &&
		status.ReadyReplicas == result.desired &&
		status.AvailableReplicas == result.desired &&
		status.UnavailableReplicas == 0

	failure, detail := failureIn(deployment)

	switch {
	case status.ObservedGeneration < deployment.Generation:
		result.phase = phasePending
	case result.desired == 0 && complete:
		result.phase = phaseComplete
	case failure != "":
		result.phase = phaseFailed
		result.failure, result.detail = failure, detail
	case complete:
		result.phase = phaseComplete
	case status.ReadyReplicas >= result.desired && status.AvailableReplicas >= result.desired:
		result.phase = phaseServing
	default:
		result.phase = phaseRolling
	}
	return result
}

// desiredReplicas follows Kubernetes' own default of one.
func desiredReplicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

// failureIn is why the Deployment controller considers the rollout of the image
// failed, with its own words as detail; empty when it does not.
func failureIn(deployment *appsv1.Deployment) (reason, detail string) {
	for _, condition := range desired.FailuresOfImage(deployment) {
		if condition.Type == appsv1.DeploymentProgressing {
			return ReasonProgressDeadlineExceeded, condition.Message
		}
		reason, detail = ReasonReplicaFailure, condition.Message
	}
	return reason, detail
}
