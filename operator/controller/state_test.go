package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// state is a runtime, its objects and its events, without what differs by chance.
type state struct {
	objects map[string]string
	// events are the reasons in the order of their time.
	events []string
}

func (r *run) state(t *testing.T) state {
	t.Helper()
	return state{objects: objectsOf(t, r.namespace, "rt", nil), events: reasons(t, r.namespace, "rt")}
}

// differs tells where got is not like s, with the events that are expected in the place
// of its own, in any order.
func (s state) differs(got state, events []string) error {
	if diff := cmp.Diff(s.objects, got.objects); diff != "" {
		return fmt.Errorf("the objects differ (-want +got):\n%s", diff)
	}
	want, have := slices.Sorted(slices.Values(events)), slices.Sorted(slices.Values(got.events))
	if diff := cmp.Diff(want, have); diff != "" {
		return fmt.Errorf("the events differ (-want +got):\n%s", diff)
	}
	return nil
}

// objectsOf are a runtime and its objects by their kind, as YAML. mask, if there is one,
// removes more than what differs in any two clusters.
func objectsOf(t *testing.T, namespace, name string, mask func(*unstructured.Unstructured)) map[string]string {
	t.Helper()
	found := map[string]*unstructured.Unstructured{}
	names := []string{namespace, "<namespace>"}
	for _, empty := range controller.CachedObjects() {
		if _, isSecret := empty.(*metav1.PartialObjectMetadata); isSecret {
			continue
		}
		gvk, err := apiutil.GVKForObject(empty, api.Scheme())
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		err = api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if gvk.Kind == v1alpha1.Kind {
			names = append(names, string(object.GetUID()), "<uid of the runtime>")
		}
		found[gvk.Kind] = object
	}

	replacer := strings.NewReplacer(names...)
	result := map[string]string{}
	for kind, object := range found {
		maskChance(t, object)
		if mask != nil {
			mask(object)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		result[kind] = replacer.Replace(string(text))
	}
	return result
}

// maskChance removes what the API server picks by itself and what other controllers
// write when they come to it: identity, versions, times, addresses and node ports, and
// the status of everything but the runtime and the Deployment, whose status is the test's.
// Who owns which fields stays.
func maskChance(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	object.SetUID("")
	object.SetResourceVersion("")
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")

	var managers []string
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" && entry.Manager != desired.FieldManager {
			continue
		}
		entry.Time = nil
		text, err := yaml.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		managers = append(managers, string(text))
	}
	// Their order follows their times.
	slices.Sort(managers)
	object.SetManagedFields(nil)
	if err := unstructured.SetNestedStringSlice(object.Object, managers, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}

	switch object.GetKind() {
	case v1alpha1.Kind:
		eachIn(object, func(condition map[string]any) { delete(condition, "lastTransitionTime") }, "status", "conditions")
	case "Deployment":
	case "Service":
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		}
		eachIn(object, func(port map[string]any) { delete(port, "nodePort") }, "spec", "ports")
		fallthrough
	default:
		unstructured.RemoveNestedField(object.Object, "status")
	}
}

// eachIn calls do with every element of a list of objects.
func eachIn(object *unstructured.Unstructured, do func(map[string]any), fields ...string) {
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, fields...)
	elements, _ := list.([]any)
	for _, element := range elements {
		if element, ok := element.(map[string]any); ok {
			do(element)
		}
	}
}
