package desired

import (
	"maps"

	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// Label keys and values that every managed object carries.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelComponent = "app.kubernetes.io/component"
	LabelManagedBy = "app.kubernetes.io/managed-by"

	NameValue      = "trussium"
	ComponentValue = "runtime"
	ManagedByValue = "trussium-operator"
)

// FieldManager is the name under which the operator owns fields. Changing it
// would orphan the fields of every object in the field.
const FieldManager = "trussium-operator"

// Labels are the labels of every object managed for the runtime called name.
func Labels(name string) map[string]string {
	labels := Selector(name)
	labels[LabelComponent] = ComponentValue
	labels[LabelManagedBy] = ManagedByValue
	return labels
}

// Selector selects the Pods of the runtime called name. It is immutable in a
// Deployment and therefore free of descriptive labels.
func Selector(name string) map[string]string {
	return map[string]string{
		LabelName:     NameValue,
		LabelInstance: name,
	}
}

// ownerReference makes the runtime the controller of an object.
// blockOwnerDeletion is false, because true needs rights on the owner's
// finalizers in clusters that enforce them.
func ownerReference(runtime *v1alpha1.TrussiumRuntime) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().
		WithAPIVersion(v1alpha1.GroupVersion.String()).
		WithKind(v1alpha1.Kind).
		WithName(runtime.Name).
		WithUID(runtime.UID).
		WithController(true).
		WithBlockOwnerDeletion(false)
}

// merged overlays the maps from left to right; the last one wins.
func merged(layers ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, layer := range layers {
		maps.Copy(result, layer)
	}
	return result
}
