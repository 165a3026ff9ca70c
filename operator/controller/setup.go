package controller

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// ControllerName names the controller in logs, metrics and events.
const ControllerName = "trussium-operator"

const (
	// workers reconcile different runtimes at the same time.
	workers = 4

	// A failed reconciliation is tried again after these delays, doubling from
	// the first to the last.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Minute
)

// CacheOptions keep the caches small: of the managed kinds only the operator's own
// objects, of Secrets only that they exist.
func CacheOptions() cache.Options {
	own := cache.ByObject{
		Label: labels.SelectorFromSet(labels.Set{desired.LabelManagedBy: desired.ManagedByValue}),
	}
	byObject := map[client.Object]cache.ByObject{
		&v1alpha1.TrussiumRuntime{}: {Transform: cache.TransformStripManagedFields()},
		&corev1.Secret{}:            {Transform: keepIdentity},
	}
	for _, kind := range kinds() {
		byObject[kind.object()] = own
	}
	return cache.Options{ByObject: byObject}
}

// keepIdentity drops everything but the identity. Annotations may hold a copy of
// a Secret's values (kubectl apply leaves one).
func keepIdentity(object any) (any, error) {
	if secret, ok := object.(client.Object); ok {
		secret.SetAnnotations(nil)
		secret.SetLabels(nil)
		secret.SetManagedFields(nil)
		secret.SetOwnerReferences(nil)
	}
	return object, nil
}

// CachedObjects are one object of every kind that the controller reads from
// caches: none may be missing before it can work.
func CachedObjects() []client.Object {
	objects := []client.Object{&v1alpha1.TrussiumRuntime{}, secretMetadata()}
	for _, kind := range kinds() {
		objects = append(objects, kind.object())
	}
	return objects
}

// Setup adds the controller to the manager.
func Setup(ctx context.Context, manager ctrl.Manager) error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find the name of this host for events: %w", err)
	}
	reconciler := &Reconciler{
		Client:   manager.GetClient(),
		Live:     manager.GetAPIReader(),
		Instance: host,
	}
	if err := manager.GetFieldIndexer().IndexField(ctx, &v1alpha1.TrussiumRuntime{}, secretIndex, indexSecrets); err != nil {
		return fmt.Errorf("index TrussiumRuntimes by the Secrets they refer to: %w", err)
	}

	build := ctrl.NewControllerManagedBy(manager).
		Named(ControllerName).
		For(&v1alpha1.TrussiumRuntime{}, builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, statusChanged()))).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(reconciler.runtimesOfSecret),
			builder.OnlyMetadata, builder.WithPredicates(existenceChanged())).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		})
	for _, kind := range kinds() {
		var options []builder.OwnsOption
		if kind.relevant != nil {
			options = append(options, builder.WithPredicates(relevantChanged(kind.relevant)))
		}
		build = build.Owns(kind.object(), options...)
	}
	if err := build.Complete(reconciler); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	return nil
}

// statusChanged wakes the controller also for what it wrote itself: a reconciliation that
// began before the cache showed it may have found, in the older view, nothing to write.
func statusChanged() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(update event.UpdateEvent) bool {
			before, after := update.ObjectOld.(*v1alpha1.TrussiumRuntime), update.ObjectNew.(*v1alpha1.TrussiumRuntime)
			return !equality.Semantic.DeepEqual(before.Status, after.Status)
		},
	}
}

// existenceChanged ignores updates: only whether a Secret exists matters.
func existenceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// relevantChanged ignores updates that touch nothing of what is relevant, neither labels
// nor owners. The generation would not tell: autoscalers have none, and that of a
// Deployment counts annotations.
func relevantChanged(relevant func(client.Object) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(update event.UpdateEvent) bool {
		before, after := update.ObjectOld, update.ObjectNew
		return !equality.Semantic.DeepEqual(relevant(before), relevant(after)) ||
			!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
			!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	}}
}
