package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// eventTimeout bounds the creation of one event.
const eventTimeout = 5 * time.Second

// tell creates the events of a status that has just been written. client-go's
// recorder would send them in the background and lose what it has not sent when
// the operator stops; here the reconciliation ends after its last event, even
// when it is told to stop in between. An event that can't be created is logged:
// what it tells is in the status. Each is told at most once: when the operator is
// killed after the status write, or does not get the answer to it, it is lost too.
func (r *Reconciler) tell(ctx context.Context, runtime *v1alpha1.TrussiumRuntime, events []status.Event) {
	ctx = context.WithoutCancel(ctx)
	for _, event := range events {
		// The same form of name as client-go's recorder gives.
		name := fmt.Sprintf("%s.%x", runtime.Name, time.Now().UnixNano())
		if err := r.createEvent(ctx, r.newEvent(runtime, name, event)); err != nil {
			log.FromContext(ctx).Error(err, "an event is lost", "reason", event.Reason, "note", event.Note)
		}
	}
}

func (r *Reconciler) newEvent(runtime *v1alpha1.TrussiumRuntime, name string, event status.Event) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: runtime.Namespace, Name: name},
		EventTime:           metav1.NowMicro(),
		ReportingController: ControllerName,
		ReportingInstance:   r.Instance,
		Type:                event.Type,
		Reason:              event.Reason,
		Action:              event.Action,
		Note:                event.Note,
		Regarding: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       v1alpha1.Kind,
			Namespace:  runtime.Namespace,
			Name:       runtime.Name,
			UID:        runtime.UID,
		},
	}
}

func (r *Reconciler) createEvent(ctx context.Context, event *eventsv1.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if err := r.Client.Create(ctx, event); err != nil {
		return fmt.Errorf("create event %s about TrussiumRuntime %s/%s: %w", event.Reason, event.Namespace, event.Regarding.Name, err)
	}
	return nil
}

// refuseName tells that the runtime's name can't be used. Its status can't be
// written, because the API server validates the name with every write; so an
// event of a fixed name tells it, once, however often this runs.
func (r *Reconciler) refuseName(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) error {
	event := r.newEvent(runtime, "invalid-name."+string(runtime.UID), status.Event{
		Type:   corev1.EventTypeWarning,
		Reason: status.ReasonConfigurationInvalid,
		Action: status.ActionValidate,
		Note: "The name can't be used for a Service. Create the TrussiumRuntime again under a name of at most 63 " +
			"characters: lower-case letters, digits and '-', starting with a letter and ending with a letter or digit.",
	})
	if err := r.createEvent(ctx, event); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}
