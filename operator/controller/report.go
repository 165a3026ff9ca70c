package controller

import (
	"context"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// report writes the status if it differs, and tells the transitions that were
// written. The write demands the resource version that the reconciliation began
// with: a stale view can neither overwrite the status nor repeat an event.
func (r *Reconciler) report(ctx context.Context, observation status.Observation) error {
	runtime := observation.Runtime
	before := runtime.Status
	now := metav1.Now()
	after := status.Next(observation, now)
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}

	// A merge patch leaves alone what a newer operator has written beside it. The
	// counts are always part of it, so that a first 0 is written as well.
	base := runtime.DeepCopy()
	base.Status.ReadyReplicas, base.Status.AvailableReplicas = -1, -1
	updated := runtime.DeepCopy()
	updated.Status = after
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, updated, patch, client.FieldOwner(desired.FieldManager)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status of TrussiumRuntime %s/%s: %w", runtime.Namespace, runtime.Name, err)
	}
	for _, event := range status.Events(before, after) {
		r.Events.Eventf(runtime, nil, event.Type, event.Reason, event.Action, "%s", event.Note)
	}
	if ended, ok := status.RolloutEnded(before, after); ok {
		countRollout(ended, now.Time)
	}
	return nil
}

// nameLimit and namePattern are the rule that the API server enforces on new
// objects; objects stored before the rule are met with one event.
const nameLimit = 63

var namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func usableName(name string) bool {
	return len(name) <= nameLimit && namePattern.MatchString(name)
}

// refuseName tells that the runtime's name can't be used. Its status can't be
// written, because the API server validates the name with every write; so an
// event of a fixed name tells it, once, however often this runs.
func (r *Reconciler) refuseName(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) error {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: runtime.Namespace,
			Name:      "invalid-name." + string(runtime.UID),
		},
		EventTime:           metav1.NowMicro(),
		ReportingController: ControllerName,
		ReportingInstance:   ControllerName,
		Type:                corev1.EventTypeWarning,
		Reason:              status.ReasonConfigurationInvalid,
		Action:              status.ActionValidate,
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       v1alpha1.Kind,
			Namespace:  runtime.Namespace,
			Name:       runtime.Name,
			UID:        runtime.UID,
		},
		Note: "The name can't be used for a Service. Create the TrussiumRuntime again under a name of at most 63 " +
			"characters: lower-case letters, digits and '-', starting with a letter and ending with a letter or digit.",
	}
	if err := r.Client.Create(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("tell that the name of TrussiumRuntime %s/%s can't be used: %w", runtime.Namespace, runtime.Name, err)
	}
	return nil
}
