package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the name of the only kind in this group.
const Kind = "TrussiumRuntime"

var (
	// GroupVersion identifies this version of the API.
	GroupVersion = schema.GroupVersion{Group: "runtime.trussium.io", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the kinds of this package with a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TrussiumRuntime{}, &TrussiumRuntimeList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
