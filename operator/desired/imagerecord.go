package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// The image record is kept in labels of the Deployment itself, outside the Pod
// template. They are labels and not annotations, because Kubernetes counts a
// Deployment's annotations in its generation and copies them to its ReplicaSets:
// an operator upgrade or rollback must move neither.
const (
	// LabelAppliedImage is the hash of the image that the operator applied. The
	// template's own may differ: admission webhooks replace tags by digests.
	LabelAppliedImage = "runtime.trussium.io/applied-image-hash"

	// LabelFailuresBefore lists the failures that the Deployment reported already
	// when that image was applied.
	LabelFailuresBefore = "runtime.trussium.io/failures-before-image"

	failureSeparator = "_"
)

// ReasonProgressDeadlineExceeded is what the Deployment controller calls a rollout
// that makes no progress.
const ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"

// imageRecord are the labels for a Deployment that gets image.
func imageRecord(image string, live *appsv1.Deployment) map[string]string {
	failures := ""
	switch {
	case live == nil:
	case Carries(live, image):
		failures = live.Labels[LabelFailuresBefore]
	default:
		var ids []string
		for _, condition := range Failures(live) {
			ids = append(ids, failureID(condition))
		}
		failures = strings.Join(ids, failureSeparator)
	}
	record := map[string]string{LabelAppliedImage: imageHash(image)}
	if failures != "" {
		record[LabelFailuresBefore] = failures
	}
	return record
}

// imageHash fits into a label, unlike the image.
func imageHash(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:16])
}

// Carries says that image is the one that the operator applied to the Deployment
// last. Deployments of releases that kept no record are known by their template.
func Carries(deployment *appsv1.Deployment, image string) bool {
	if hash := deployment.Labels[LabelAppliedImage]; hash != "" {
		return hash == imageHash(image)
	}
	return ContainerImage(deployment) == image
}

// ContainerImage is the image of the runtime container in the Deployment's
// template; empty when there is no such container.
func ContainerImage(deployment *appsv1.Deployment) string {
	for _, container := range deployment.Spec.Template.Spec.Containers {
		if container.Name == ContainerName {
			return container.Image
		}
	}
	return ""
}

// Failures are the Deployment's conditions that say that its rollout has failed.
func Failures(deployment *appsv1.Deployment) []appsv1.DeploymentCondition {
	var failures []appsv1.DeploymentCondition
	for _, condition := range deployment.Status.Conditions {
		deadline := condition.Type == appsv1.DeploymentProgressing &&
			condition.Status == corev1.ConditionFalse &&
			condition.Reason == ReasonProgressDeadlineExceeded
		replicas := condition.Type == appsv1.DeploymentReplicaFailure &&
			condition.Status == corev1.ConditionTrue
		if deadline || replicas {
			failures = append(failures, condition)
		}
	}
	return failures
}

// FailuresOfImage are the failures that were not there before the image was
// applied. The Deployment controller keeps an old one until the new rollout makes
// progress; it is not the new image's.
func FailuresOfImage(deployment *appsv1.Deployment) []appsv1.DeploymentCondition {
	before := map[string]bool{}
	for id := range strings.SplitSeq(deployment.Labels[LabelFailuresBefore], failureSeparator) {
		before[id] = true
	}
	var failures []appsv1.DeploymentCondition
	for _, condition := range Failures(deployment) {
		if !before[failureID(condition)] {
			failures = append(failures, condition)
		}
	}
	return failures
}

// failureID tells one occurrence of a failure from the next: the Deployment
// controller leaves the time alone while a failure lasts.
func failureID(failure appsv1.DeploymentCondition) string {
	return string(failure.Type) + "." + strconv.FormatInt(failure.LastUpdateTime.Unix(), 10)
}
