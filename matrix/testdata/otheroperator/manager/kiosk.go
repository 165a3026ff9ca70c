package main

import (
	"context"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var kioskKind = schema.GroupVersionKind{Group: "fair.example.com", Version: "v1", Kind: "Kiosk"}

func newKiosk() *unstructured.Unstructured {
	kiosk := &unstructured.Unstructured{}
	kiosk.SetGroupVersionKind(kioskKind)
	return kiosk
}

type kioskReconciler struct {
	client client.Client
	// live reads what a cache may not know yet.
	live client.Reader
}

// Reconcile applies the objects of a kiosk and tells how it is.
func (r *kioskReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	kiosk := newKiosk()
	if err := r.client.Get(ctx, request.NamespacedName, kiosk); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if kiosk.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	for _, object := range objectsOf(kiosk) {
		if err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kiosk-operator"), client.ForceOwnership); err != nil {
			return ctrl.Result{}, fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	var deployment appsv1.Deployment
	if err := r.live.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, fmt.Errorf("read the Deployment: %w", err)
	}
	return ctrl.Result{}, r.tell(ctx, kiosk, &deployment)
}

// tell writes the status, if it is another one.
func (r *kioskReconciler) tell(ctx context.Context, kiosk *unstructured.Unstructured, deployment *appsv1.Deployment) error {
	status := deployment.Status
	wanted := *deployment.Spec.Replicas
	complete := status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == wanted && status.Replicas == wanted && status.AvailableReplicas == wanted
	image, _, _ := unstructured.NestedString(kiosk.Object, "status", "image")
	ready, reason := "False", "Opening"
	if complete {
		image = deployment.Spec.Template.Spec.Containers[0].Image
		ready, reason = "True", "Open"
	}
	since := time.Now().UTC().Format(time.RFC3339)
	conditions, _, _ := unstructured.NestedSlice(kiosk.Object, "status", "conditions")
	for _, condition := range conditions {
		if was, ok := condition.(map[string]any); ok && was["status"] == ready {
			since, _ = was["lastTransitionTime"].(string)
		}
	}
	now := map[string]any{
		"observedGeneration": kiosk.GetGeneration(),
		"openCounters":       int64(status.AvailableReplicas),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": "", "lastTransitionTime": since, "observedGeneration": kiosk.GetGeneration(),
		}},
	}
	if image != "" {
		now["image"] = image
	}
	if reflect.DeepEqual(kiosk.Object["status"], now) {
		return nil
	}
	kiosk.Object["status"] = now
	if err := r.client.Status().Update(ctx, kiosk); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}
