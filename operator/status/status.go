package status

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// maxMessage bounds a condition's message and an event's note, in bytes. It is
// the API server's own limit for an event's note.
const maxMessage = 1024

// Next is the status that the observation calls for. Transition times move, to
// now, only where a condition's status changes.
func Next(observation Observation, now metav1.Time) v1alpha1.TrussiumRuntimeStatus {
	runtime := observation.Runtime
	next := *runtime.Status.DeepCopy()
	next.ObservedGeneration = runtime.Generation

	if !observation.DeploymentUnknown {
		next.ReadyReplicas, next.AvailableReplicas, next.CurrentImage = 0, 0, ""
		if deployment := observation.Deployment; deployment != nil {
			next.ReadyReplicas = deployment.Status.ReadyReplicas
			next.AvailableReplicas = deployment.Status.AvailableReplicas
			next.CurrentImage = desired.ContainerImage(deployment)
		}
	}
	if !observation.ServiceUnknown {
		next.Endpoint = ""
		if observation.ServicePort != 0 {
			next.Endpoint = fmt.Sprintf("http://%s.%s.svc.cluster.local:%d",
				runtime.Name, runtime.Namespace, observation.ServicePort)
		}
	}

	for _, condition := range conditions(observation) {
		condition.ObservedGeneration = runtime.Generation
		condition.LastTransitionTime = now
		condition.Message = bounded(condition.Message)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	setUpgrade(&next, observation, now)
	return next
}

// bounded cuts message to maxMessage bytes without breaking a character.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const ellipsis = "..."
	cut := maxMessage - len(ellipsis)
	for cut > 0 && !utf8.RuneStart(message[cut]) {
		cut--
	}
	return message[:cut] + ellipsis
}

// conditions applies the rows of the status contract; the first that matches wins.
func conditions(observation Observation) []metav1.Condition {
	state := assessRollout(observation.Deployment)
	available := observedAvailability(observation, state)

	switch {
	case len(observation.MissingSecrets) > 0:
		message := "Referenced Secrets do not exist in this namespace: " +
			strings.Join(observation.MissingSecrets, ", ") + ". Create them, or correct the references."
		return blocked(ReasonSecretNotFound, message, available)

	case observation.ReferenceError != nil:
		message := fmt.Sprintf("Referenced Secrets could not be checked: %v", observation.ReferenceError)
		return blocked(ReasonReferenceCheckFailed, message, available)

	case observation.ReconcileError != nil:
		message := observation.ReconcileError.Error()
		return []metav1.Condition{
			referencesResolved(observation.Runtime),
			isFalse(v1alpha1.ConditionProgressing, ReasonReconciliationFailed, message),
			available,
			isFalse(v1alpha1.ConditionReady, ReasonReconciliationFailed, message),
			isTrue(v1alpha1.ConditionDegraded, ReasonReconciliationFailed, message),
		}
	}

	switch state.phase {
	case phaseFailed:
		message := "The Deployment reports " + state.failure
		if state.detail != "" {
			message += ": " + state.detail
		}
		return []metav1.Condition{
			referencesResolved(observation.Runtime),
			isFalse(v1alpha1.ConditionProgressing, ReasonDeploymentFailed, message),
			available,
			isFalse(v1alpha1.ConditionReady, ReasonDeploymentFailed, message),
			isTrue(v1alpha1.ConditionDegraded, state.failure, message),
		}

	case phaseComplete:
		if state.desired == 0 {
			const message = "The runtime is scaled to zero as requested."
			return []metav1.Condition{
				referencesResolved(observation.Runtime),
				isFalse(v1alpha1.ConditionProgressing, ReasonScaledToZero, message),
				isFalse(v1alpha1.ConditionAvailable, ReasonScaledToZero, message),
				isTrue(v1alpha1.ConditionReady, ReasonScaledToZero, message),
				asExpected(),
			}
		}
		return []metav1.Condition{
			referencesResolved(observation.Runtime),
			isFalse(v1alpha1.ConditionProgressing, ReasonReconciliationComplete, "The rollout is complete."),
			runtimeAvailable(),
			runtimeReady(),
			asExpected(),
		}

	case phaseServing:
		return []metav1.Condition{
			referencesResolved(observation.Runtime),
			isTrue(v1alpha1.ConditionProgressing, ReasonDeploymentProgressing, "The Deployment is rolling out."),
			available, // with none wanted, an old Pod may be around that serves nobody
			runtimeReady(),
			asExpected(),
		}

	case phasePending, phaseAbsent:
		message := "The Deployment controller has not observed the latest Deployment yet."
		if state.phase == phaseAbsent {
			message = "The Deployment does not exist yet."
		}
		return []metav1.Condition{
			referencesResolved(observation.Runtime),
			isTrue(v1alpha1.ConditionProgressing, ReasonDeploymentGenerationPending, message),
			available,
			isFalse(v1alpha1.ConditionReady, ReasonRuntimeNotReady, message),
			asExpected(),
		}
	}

	// phaseRolling. The numbers stay out of the message, so that it does not
	// cause a status write for every Pod; they are in the status fields.
	const message = "Waiting for the requested replicas to become ready and available."
	return []metav1.Condition{
		referencesResolved(observation.Runtime),
		isTrue(v1alpha1.ConditionProgressing, ReasonDeploymentProgressing, "The Deployment is rolling out."),
		available,
		isFalse(v1alpha1.ConditionReady, ReasonRuntimeNotReady, message),
		asExpected(),
	}
}

// blocked are the conditions while the configuration stops everything else.
func blocked(reason, message string, available metav1.Condition) []metav1.Condition {
	return []metav1.Condition{
		isFalse(v1alpha1.ConditionConfigurationValid, reason, message),
		isFalse(v1alpha1.ConditionProgressing, ReasonConfigurationInvalid, message),
		available,
		isFalse(v1alpha1.ConditionReady, ReasonConfigurationInvalid, message),
		isTrue(v1alpha1.ConditionDegraded, ReasonConfigurationInvalid, message),
	}
}

// observedAvailability is Available while the rows do not fix it: true as soon
// as one replica serves. When the Deployment could not be read, what was known
// before stays.
func observedAvailability(observation Observation, state rollout) metav1.Condition {
	if observation.DeploymentUnknown {
		before := meta.FindStatusCondition(observation.Runtime.Status.Conditions, v1alpha1.ConditionAvailable)
		if before != nil {
			return *before
		}
	}
	if state.available > 0 {
		return runtimeAvailable()
	}
	return isFalse(v1alpha1.ConditionAvailable, ReasonRuntimeUnavailable, "No runtime replica is available.")
}

func referencesResolved(runtime *v1alpha1.TrussiumRuntime) metav1.Condition {
	message := "All referenced Secrets are available."
	if desired.LacksCPURequest(runtime) {
		message += " Autoscaling is enabled without a CPU request in spec.resources, so that there is no utilization to scale by. Set spec.resources.requests.cpu."
	}
	return isTrue(v1alpha1.ConditionConfigurationValid, ReasonReferencesResolved, message)
}

func runtimeAvailable() metav1.Condition {
	return isTrue(v1alpha1.ConditionAvailable, ReasonRuntimeAvailable, "At least one runtime replica is available.")
}

func runtimeReady() metav1.Condition {
	return isTrue(v1alpha1.ConditionReady, ReasonRuntimeReady, "All requested runtime replicas are ready and available.")
}

func asExpected() metav1.Condition {
	return isFalse(v1alpha1.ConditionDegraded, ReasonAsExpected, "The runtime is operating as expected.")
}

func isTrue(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
