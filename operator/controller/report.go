package controller

import (
	"context"
	"fmt"
	"regexp"
	"time"

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
	if err := r.writeStatus(ctx, updated, patch); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status of TrussiumRuntime %s/%s: %w", runtime.Namespace, runtime.Name, err)
	}
	r.tell(ctx, runtime, status.Events(before, after))
	if ended, ok := status.RolloutEnded(before, after); ok {
		countRollout(ended, now.Time)
	}
	return nil
}

// statusTimeout bounds one status write.
const statusTimeout = 5 * time.Second

// writeStatus waits for the answer also when the operator is told to stop: it
// decides whether the events of the status are told.
func (r *Reconciler) writeStatus(ctx context.Context, updated *v1alpha1.TrussiumRuntime, patch client.Patch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	return r.Client.Status().Patch(ctx, updated, patch, client.FieldOwner(desired.FieldManager))
}

// nameLimit and namePattern are the rule that the API server enforces on new
// objects; objects stored before the rule are met with one event.
const nameLimit = 63

var namePattern = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func usableName(name string) bool {
	return len(name) <= nameLimit && namePattern.MatchString(name)
}
