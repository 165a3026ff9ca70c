package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// managedObject is one managed object of one runtime.
type managedObject struct {
	kind managedKind
	// live is the object as it was read or as it was just applied; nil when it
	// does not exist.
	live  client.Object
	claim claim
}

// gather reads the managed objects of the runtime, from the caches where they are there.
func (r *Reconciler) gather(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) ([]*managedObject, error) {
	var objects []*managedObject
	for _, kind := range kinds() {
		live, err := r.read(ctx, kind, client.ObjectKeyFromObject(runtime), kind.wantedBy(runtime))
		if err != nil {
			return nil, fmt.Errorf("read %s %s/%s: %w", kind.name, runtime.Namespace, runtime.Name, err)
		}
		object := &managedObject{kind: kind, live: live}
		if live != nil {
			object.claim = claimOn(runtime, live)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// read returns nil when the object does not exist. The caches hold only what
// carries the operator's label, so that a miss is looked up again if the object
// is wanted: the name may be taken by somebody else.
func (r *Reconciler) read(ctx context.Context, kind managedKind, key types.NamespacedName, wanted bool) (client.Object, error) {
	object := kind.object()
	err := r.Client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) && wanted {
		err = r.Live.Get(ctx, key, object)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// bring removes what is no longer wanted and applies what differs, in order.
// Nothing at all is written while one of the names is taken by somebody else.
func (r *Reconciler) bring(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, objects []*managedObject) error {
	var wanted, unwanted []*managedObject
	for _, object := range objects {
		if !object.kind.wantedBy(runtime) {
			unwanted = append(unwanted, object)
			continue
		}
		if err := refuse(runtime, object); err != nil {
			return err
		}
		wanted = append(wanted, object)
	}
	if isProcessed := runtime.Status.ObservedGeneration > 0; isProcessed && slices.ContainsFunc(wanted, (*managedObject).isMissing) {
		if err := r.checkAlive(ctx, runtime); err != nil {
			return err
		}
	}
	for _, object := range unwanted {
		if err := r.remove(ctx, runtime, object); err != nil {
			return err
		}
	}
	for _, object := range wanted {
		if object.claim == claimLeaving {
			// Its deletion wakes this runtime again.
			log.FromContext(ctx).V(1).Info("waiting for an object to be deleted", "kind", object.kind.name)
			return nil
		}
		if err := r.apply(ctx, runtime, object); err != nil {
			return err
		}
	}
	return nil
}

func (o *managedObject) isMissing() bool { return o.live == nil }

// checkAlive returns a conflict when the runtime has been deleted and the cache does not
// show it yet. Garbage collection may be seen first, and must not be worked against.
func (r *Reconciler) checkAlive(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) error {
	current := &v1alpha1.TrussiumRuntime{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(runtime), current)
	switch {
	case apierrors.IsNotFound(err), err == nil && (current.UID != runtime.UID || !current.DeletionTimestamp.IsZero()):
		resource := v1alpha1.GroupVersion.WithResource("trussiumruntimes").GroupResource()
		return apierrors.NewConflict(resource, runtime.Name, errors.New("the object has been deleted"))
	case err != nil:
		return fmt.Errorf("read TrussiumRuntime %s/%s: %w", runtime.Namespace, runtime.Name, err)
	}
	return nil
}

// refuse returns the reason why the object must not be written, or nil.
func refuse(runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {
	collision := &collisionError{kind: object.kind.name, namespace: runtime.Namespace, name: runtime.Name}
	switch {
	case object.live == nil && reserved(object.kind.name, runtime.Namespace, runtime.Name):
		collision.reserved = true
		return collision
	case object.live != nil && object.claim == claimForeign:
		collision.owner = metav1.GetControllerOf(object.live)
		return collision
	}
	return nil
}

// apply writes the object if that changes anything, and leaves the API server's
// answer in it.
func (r *Reconciler) apply(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {
	if object.live != nil {
		if err := r.prepare(ctx, runtime, object); err != nil {
			return err
		}
	}
	patch, err := object.kind.plan(runtime, object.live)
	if err != nil || patch.body == nil {
		return err
	}

	applied := object.kind.object()
	applied.SetNamespace(runtime.Namespace)
	applied.SetName(runtime.Name)
	request := client.RawPatch(types.ApplyPatchType, patch.body)
	if err := r.Client.Patch(ctx, applied, request, client.FieldOwner(desired.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s %s/%s: %w", object.kind.name, runtime.Namespace, runtime.Name, err)
	}
	log.FromContext(ctx).Info("applied", "kind", object.kind.name, "created", object.live == nil,
		"resourceVersion", applied.GetResourceVersion())
	object.live = applied
	return nil
}

// remove deletes the object if this runtime controls it; labels alone are no
// licence to delete.
func (r *Reconciler) remove(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {
	live := object.live
	if live == nil || !metav1.IsControlledBy(live, runtime) || live.GetDeletionTimestamp() != nil {
		return nil
	}
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s %s/%s, which is no longer wanted: %w", object.kind.name, runtime.Namespace, runtime.Name, err)
	}
	log.FromContext(ctx).Info("deleted", "kind", object.kind.name)
	object.live = nil
	return nil
}

// prepare makes the live object ready for server-side apply.
func (r *Reconciler) prepare(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {
	if err := r.takeOver(ctx, runtime, object); err != nil || object.kind.repair == nil {
		return err
	}
	body, err := object.kind.repair(runtime, object.live)
	if err != nil || body == nil {
		return err
	}
	if err := r.patchLive(ctx, object, "repair", body); err != nil {
		return err
	}
	return r.takeOver(ctx, runtime, object)
}

// takeOver moves the fields that an operator wrote with plain updates to its
// apply ownership, so that those no longer wanted disappear with the next apply.
func (r *Reconciler) takeOver(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, object *managedObject) error {
	writers, err := earlierWriters(runtime, object.live)
	if err != nil || len(writers) == 0 {
		return err
	}
	body, err := csaupgrade.UpgradeManagedFieldsPatch(object.live, writers, desired.FieldManager)
	if err != nil {
		return fmt.Errorf("take over %s %s/%s: %w", object.kind.name, runtime.Namespace, runtime.Name, err)
	}
	if body == nil {
		return nil
	}
	return r.patchLive(ctx, object, "take over", body)
}

// patchLive sends a JSON patch and keeps the answer. purpose names it in logs and errors.
func (r *Reconciler) patchLive(ctx context.Context, object *managedObject, purpose string, body []byte) error {
	request := client.RawPatch(types.JSONPatchType, body)
	if err := r.Client.Patch(ctx, object.live, request, client.FieldOwner(desired.FieldManager)); err != nil {
		return fmt.Errorf("%s %s %s: %w", purpose, object.kind.name, client.ObjectKeyFromObject(object.live), err)
	}
	log.FromContext(ctx).Info("patched", "purpose", purpose, "kind", object.kind.name)
	return nil
}
