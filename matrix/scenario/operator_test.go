package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var runtimes = schema.GroupVersionResource{Group: "runtime.trussium.io", Version: "v1alpha1", Resource: "trussiumruntimes"}

// fault is one thing that the played operator does wrong.
type fault string

const (
	noFault fault = ""
	// recordsEarly calls the new image successful when the rollout begins.
	recordsEarly fault = "lastSuccessfulImage moves first"
	// keepsCurrent goes on to call the old image the current one.
	keepsCurrent fault = "currentImage is the old one"
	// neverCompletes leaves the upgrade in progress.
	neverCompletes fault = "upgrade stuck in progress"
	// endsNotReady completes the upgrade with Ready False.
	endsNotReady fault = "Ready is False at the end"
	// startsTwice tells the start of one upgrade twice.
	startsTwice fault = "two Started events"
	// completesSilently forgets the event of the completion.
	completesSilently fault = "no Completed event"
	// confusesImages names another image in the event.
	confusesImages fault = "event names the wrong image"
)

// playedOperator writes the status and the events of one runtime as an operator does whose
// rollouts work. It takes its next step once the scenario has looked at the step before.
type playedOperator struct {
	t       *testing.T
	fault   fault
	looked  func(ctx context.Context) error
	dynamic dynamic.Interface
	events  kubernetes.Interface
}

// play runs the operator for the runtime of that name, in whatever namespace, until the
// test ends.
func (o *playedOperator) play(name string) {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	watch, err := o.dynamic.Resource(runtimes).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		cancel()
		o.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || object.GetDeletionTimestamp() != nil {
				continue
			}
			if err := o.reconcile(ctx, object); err != nil && ctx.Err() == nil {
				o.t.Errorf("play the operator: %v", err)
			}
		}
	}()
	o.t.Cleanup(func() {
		cancel()
		watch.Stop()
		<-done
	})
}

func (o *playedOperator) reconcile(ctx context.Context, object *unstructured.Unstructured) error {
	observed, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if observed == object.GetGeneration() {
		return nil
	}
	repository, _, _ := unstructured.NestedString(object.Object, "spec", "image", "repository")
	tag, _, _ := unstructured.NestedString(object.Object, "spec", "image", "tag")
	last, _, _ := unstructured.NestedString(object.Object, "status", "lastSuccessfulImage")
	desired := repository + ":" + tag
	if last == "" {
		// The scenario has to bear a status that isn't there yet.
		if err := o.looked(ctx); err != nil {
			return err
		}
		return o.write(ctx, object, running(desired, "NoUpgrade"))
	}
	return o.upgrade(ctx, object, last, desired)
}

func (o *playedOperator) upgrade(ctx context.Context, object *unstructured.Unstructured, from, to string) error {
	rolling := status{
		DesiredImage: to, CurrentImage: from, LastSuccessfulImage: from, ReadyReplicas: 1,
		Conditions: []metav1.Condition{
			condition("Ready", metav1.ConditionTrue, "RuntimeReady"),
			condition("Degraded", metav1.ConditionFalse, "AsExpected"),
			condition("Upgrading", metav1.ConditionTrue, "UpgradeInProgress"),
		},
	}
	if o.fault == recordsEarly {
		rolling.LastSuccessfulImage = to
	}
	if err := o.write(ctx, object, rolling); err != nil {
		return err
	}
	named := to
	if o.fault == confusesImages {
		named = to + ".1"
	}
	note := fmt.Sprintf("Upgrade from %s to %s.", from, named)
	starts := 1
	if o.fault == startsTwice {
		starts = 2
	}
	for range starts {
		if err := o.tell(ctx, object, "RuntimeUpgradeStarted", note); err != nil {
			return err
		}
	}
	if o.fault == neverCompletes {
		return nil
	}
	if err := o.looked(ctx); err != nil {
		return err
	}
	complete := running(to, "UpgradeComplete")
	switch o.fault {
	case keepsCurrent:
		complete.CurrentImage = from
	case endsNotReady:
		complete.Conditions[0] = condition("Ready", metav1.ConditionFalse, "RuntimeNotReady")
	}
	if err := o.write(ctx, object, complete); err != nil {
		return err
	}
	if o.fault == completesSilently {
		return nil
	}
	return o.tell(ctx, object, "RuntimeUpgradeCompleted", note)
}

// status is the status of a TrussiumRuntime as far as scenarios look at it.
type status struct {
	ObservedGeneration  int64              `json:"observedGeneration"`
	ReadyReplicas       int32              `json:"readyReplicas"`
	DesiredImage        string             `json:"desiredImage"`
	CurrentImage        string             `json:"currentImage"`
	LastSuccessfulImage string             `json:"lastSuccessfulImage"`
	Conditions          []metav1.Condition `json:"conditions"`
}

func condition(kind string, value metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: value, Reason: reason, LastTransitionTime: metav1.Now()}
}

// running is the status of a runtime that runs the image, with the reason of Upgrading False.
func running(image, upgrading string) status {
	return status{
		DesiredImage: image, CurrentImage: image, LastSuccessfulImage: image, ReadyReplicas: 1,
		Conditions: []metav1.Condition{
			condition("Ready", metav1.ConditionTrue, "RuntimeReady"),
			condition("Degraded", metav1.ConditionFalse, "AsExpected"),
			condition("Upgrading", metav1.ConditionFalse, upgrading),
		},
	}
}

func (o *playedOperator) write(ctx context.Context, object *unstructured.Unstructured, s status) error {
	s.ObservedGeneration = object.GetGeneration()
	patch, err := json.Marshal(map[string]status{"status": s})
	if err != nil {
		return err
	}
	client := o.dynamic.Resource(runtimes).Namespace(object.GetNamespace())
	_, err = client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (o *playedOperator) tell(ctx context.Context, object *unstructured.Unstructured, reason, note string) error {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: object.GetName() + "-", Namespace: object.GetNamespace()},
		EventTime:  metav1.NewMicroTime(time.Now()),
		Type:       corev1.EventTypeNormal,
		Reason:     reason,
		Action:     "UpgradeRuntime",
		Note:       note,
		Regarding: corev1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
			Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
		},
		ReportingController: "trussium-operator",
		ReportingInstance:   "played",
	}
	_, err := o.events.EventsV1().Events(object.GetNamespace()).Create(ctx, event, metav1.CreateOptions{})
	return err
}
