package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// conflictDelay is how long a request rests after a conflict: long enough for
// the cache to see what it collided with.
const conflictDelay = 200 * time.Millisecond

// Reconciler brings the objects of one TrussiumRuntime at a time to what its
// spec asks for, and its status to what was observed.
type Reconciler struct {
	// Client reads from caches and writes to the API server.
	Client client.Client
	// Live reads from the API server. It serves objects that the caches do not
	// hold because they lack the operator's label.
	Live client.Reader
	// Instance names this process in events.
	Instance string
}

// Reconcile implements reconcile.Reconciler. It returns an error only for what a
// later attempt may cure; conflicts are retried without one.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	runtime := &v1alpha1.TrussiumRuntime{}
	if err := r.Client.Get(ctx, request.NamespacedName, runtime); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("read TrussiumRuntime %s: %w", request, err)
	}
	if !runtime.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if !usableName(runtime.Name) {
		return ctrl.Result{}, r.refuseName(ctx, runtime)
	}

	observation, err := r.reconcile(ctx, runtime)
	if err == nil {
		err = r.report(ctx, observation)
	}
	switch {
	case err == nil:
		// What failed for good is retried too: its cause may lie outside of what is watched.
		return ctrl.Result{}, errors.Join(observation.ReferenceError, observation.ReconcileError)
	case isRace(err):
		log.FromContext(ctx).V(1).Info("another writer was faster, trying again", "cause", err.Error())
		return ctrl.Result{RequeueAfter: conflictDelay}, nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

// reconcile gathers, decides and applies. A returned error says that nothing
// worth reporting was learned; everything else is in the observation.
func (r *Reconciler) reconcile(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) (status.Observation, error) {
	observation := status.Observation{Runtime: runtime}
	observation.MissingSecrets, observation.ReferenceError = r.missingSecrets(ctx, runtime)

	objects, err := r.gather(ctx, runtime)
	if err != nil {
		observation.DeploymentUnknown, observation.ServiceUnknown = true, true
		return settle(observation, err)
	}
	if len(observation.MissingSecrets) == 0 && observation.ReferenceError == nil {
		err = r.bring(ctx, runtime, objects)
	}
	observe(&observation, objects)
	return settle(observation, err)
}

// settle sorts err into what the status tells and what is simply tried again.
func settle(observation status.Observation, err error) (status.Observation, error) {
	if err == nil || isPersistent(err) {
		observation.ReconcileError = err
		return observation, nil
	}
	return observation, err
}

// observe copies what the managed objects show into the observation.
func observe(observation *status.Observation, objects []*managedObject) {
	for _, object := range objects {
		if object.live == nil || object.claim != claimOurs {
			continue
		}
		switch live := object.live.(type) {
		case *appsv1.Deployment:
			observation.Deployment = live
		case *corev1.Service:
			if len(live.Spec.Ports) > 0 {
				observation.ServicePort = live.Spec.Ports[0].Port
			}
		}
	}
}

// isRace says that another writer was faster: the next attempt sees its result.
func isRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}

// isPersistent says that err is an answer, the API server's or the operator's own,
// and not a passing state of a connection, a server or a race.
func isPersistent(err error) bool {
	var network net.Error
	switch {
	case isRace(err),
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause),
		apierrors.IsTimeout(err),
		apierrors.IsServerTimeout(err),
		apierrors.IsTooManyRequests(err),
		apierrors.IsServiceUnavailable(err),
		errors.Is(err, context.Canceled),
		errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF),
		errors.As(err, &network):
		return false
	}
	return true
}
