package operatortest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

const (
	// Patience bounds every wait; it is a guard against hanging, not an expectation.
	Patience = 60 * time.Second

	pause = 20 * time.Millisecond
)

// Eventually polls until check returns nil, and ends the test after Patience.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s; last seen: %v", Patience, what, err)
		}
		time.Sleep(pause)
	}
}

// Change reads, mutates and updates an object, again if somebody else was faster.
func Change[T client.Object](t *testing.T, api client.Client, object T, mutate func(T), options ...client.UpdateOption) {
	t.Helper()
	Eventually(t, "the update is accepted", func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate(object)
		err := api.Update(t.Context(), object, options...)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatalf("update %T %s: %v", object, object.GetName(), err)
		}
		return err
	})
}

// WaitCondition waits until a condition of a runtime has a status and a reason
// for the runtime's latest generation.
func WaitCondition(t *testing.T, api client.Client, key client.ObjectKey, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	Eventually(t, fmt.Sprintf("%s is %s/%s", kind, status, reason), func() error {
		runtime := &v1alpha1.TrussiumRuntime{}
		if err := api.Get(t.Context(), key, runtime); err != nil {
			return err
		}
		for _, condition := range runtime.Status.Conditions {
			if condition.Type == kind && condition.Status == status && condition.Reason == reason &&
				condition.ObservedGeneration == runtime.Generation {
				found = condition
				return nil
			}
		}
		return fmt.Errorf("generation %d, conditions %s", runtime.Generation, Describe(runtime.Status.Conditions))
	})
	return found
}

// Describe renders conditions for a message.
func Describe(conditions []metav1.Condition) string {
	var lines []string
	for _, condition := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s@%d (%s)", condition.Type, condition.Status, condition.Reason,
			condition.ObservedGeneration, condition.Message))
	}
	return strings.Join(lines, "; ")
}

// Reasons are the reasons of all events about a runtime, in the order of their time.
func Reasons(t *testing.T, api client.Client, key client.ObjectKey) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := api.List(t.Context(), &list, client.InNamespace(key.Namespace)); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var result []string
	for _, event := range list.Items {
		if event.Regarding.Kind != v1alpha1.Kind || event.Regarding.Name != key.Name {
			continue
		}
		count := int32(1)
		if event.Series != nil {
			count = event.Series.Count
		}
		for range count {
			result = append(result, event.Reason)
		}
	}
	return result
}

// Follow hands every version of the objects in the namespace, of list's kind, to see until
// the test ends: one after another, but from another goroutine.
func Follow[T client.Object](t *testing.T, config *rest.Config, list client.ObjectList, namespace string, see func(T)) {
	t.Helper()
	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	changes, err := watcher.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		t.Fatalf("watch %T in %s: %v", list, namespace, err)
	}
	go func() {
		for change := range changes.ResultChan() {
			if object, ok := change.Object.(T); ok && change.Type != watch.Deleted {
				see(object)
			}
		}
	}()
}
