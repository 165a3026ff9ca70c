package controller

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// claim is the operator's relation to an object that has the name of a managed one.
type claim int

const (
	// claimOurs may be written: this runtime controls it, or nobody does and it
	// carries the operator's labels for this runtime.
	claimOurs claim = iota
	// claimLeaving will go away by itself: it is being deleted, or belonged to an
	// earlier runtime of the same name, so that garbage collection takes it.
	claimLeaving
	// claimForeign belongs to somebody else and must not be touched.
	claimForeign
)

// claimOn judges live for the runtime.
func claimOn(runtime *v1alpha1.TrussiumRuntime, live client.Object) claim {
	controller := metav1.GetControllerOf(live)
	switch {
	case controller == nil:
		labels := live.GetLabels()
		if labels[desired.LabelManagedBy] != desired.ManagedByValue || labels[desired.LabelInstance] != runtime.Name {
			return claimForeign
		}
	case controller.UID == runtime.UID:
	case controller.Kind == v1alpha1.Kind && controller.Name == runtime.Name && inGroup(controller.APIVersion):
		return claimLeaving
	default:
		return claimForeign
	}
	if live.GetDeletionTimestamp() != nil {
		return claimLeaving
	}
	return claimOurs
}

func inGroup(apiVersion string) bool {
	version, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && version.Group == v1alpha1.GroupVersion.Group
}

// reserved says that Kubernetes itself creates an object of this kind and name,
// so that a runtime must not get there first.
func reserved(kind, namespace, name string) bool {
	switch kind {
	case "ServiceAccount":
		return name == "default"
	case "Service":
		return name == "kubernetes" && namespace == metav1.NamespaceDefault
	}
	return false
}

// collisionError refuses an object that belongs to somebody else.
type collisionError struct {
	kind, namespace, name string
	owner                 *metav1.OwnerReference
	reserved              bool
}

func (e *collisionError) Error() string {
	reason := fmt.Sprintf("exists and is not labelled %s=%s and %s=%s",
		desired.LabelManagedBy, desired.ManagedByValue, desired.LabelInstance, e.name)
	remedy := "Rename the TrussiumRuntime, or delete that object, or add these labels to hand it over."
	switch {
	case e.reserved:
		reason = "is reserved for Kubernetes itself"
		remedy = "Rename the TrussiumRuntime."
	case e.owner != nil:
		reason = fmt.Sprintf("exists and is controlled by %s %s", e.owner.Kind, e.owner.Name)
		remedy = "Rename the TrussiumRuntime, or delete that object."
	}
	return fmt.Sprintf("%s %s/%s %s, so the operator does not touch it. %s", e.kind, e.namespace, e.name, reason, remedy)
}

// earlierWriters are the field managers of operators that wrote live with plain
// updates: this one, when it repaired something, and published releases. Those
// are told by having written the owner reference to the runtime, which nobody but
// an operator does; their name is no proof, since many controllers are called
// "manager".
func earlierWriters(runtime *v1alpha1.TrussiumRuntime, live client.Object) (sets.Set[string], error) {
	writers := sets.New[string]()
	for _, entry := range live.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationUpdate || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		if entry.Manager == desired.FieldManager {
			writers.Insert(entry.Manager)
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("read the fields of manager %q: %w", entry.Manager, err)
		}
		if writesOwner(fields, string(runtime.UID)) {
			writers.Insert(entry.Manager)
		}
	}
	return writers, nil
}

func writesOwner(fields *fieldpath.Set, uid string) bool {
	found := false
	fields.Iterate(func(path fieldpath.Path) {
		if len(path) < 3 || found {
			return
		}
		key := path[2].Key
		if path[0].FieldName == nil || *path[0].FieldName != "metadata" ||
			path[1].FieldName == nil || *path[1].FieldName != "ownerReferences" || key == nil {
			return
		}
		for _, field := range *key {
			found = found || field.Name == "uid" && field.Value.AsString() == uid
		}
	})
	return found
}
