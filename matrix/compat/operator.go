package compat

import (
	_ "embed"
	"fmt"
	"sync"

	"gopkg.in/yaml.v3"
)

// Operator is what the matrix has to know of the operator that a file is about and that neither its chart nor its CRD
// tells.
type Operator struct {
	Chart OperatorChart
	Image OperatorImage
	// Lease is the name of the Lease that the leading pod holds in the namespace of the Helm release.
	Lease string
	// Scenarios is the folder of the chainsaw scenarios, relative to the repository. Default: chainsaw.
	Scenarios string
	Rights    Rights
	Resource  Resource
	Runtime   Runtime
}

// OperatorChart is the Helm chart of the operator.
type OperatorChart struct {
	// Path is its folder, relative to the repository.
	Path string
	// Repository is where it is published: HOST/PATH.
	Repository string
	// WatchNamespace is the value that makes the operator work in one namespace only; empty if there is none.
	WatchNamespace string
}

// OperatorImage is the image of the operator: one static binary, built from the repository.
type OperatorImage struct {
	// Repository is where it is published: HOST/PATH. The chart names it.
	Repository string
	// Package is the main package, relative to the repository, as in ./operator.
	Package string
	// VersionVariable is the variable, with its package's import path, that is set to the version; empty if there is none.
	VersionVariable string
}

// Rights are what is expected of the rights of the operator, beyond those that follow from what it manages.
type Rights struct {
	// Needed are rights that the operator needs besides reading its resource, writing its status, holding its Lease, and
	// every verb on what it manages. Refused are rights that it must not have.
	Needed, Refused []Right
	// Packages are the packages of the code whose rights are not used by the Deployment's pods in the watched namespaces.
	Packages []PackageRights
}

// Right is a set of verbs on a resource.
type Right struct {
	// Group is the API group; empty for the core group. Resource may name a sub-resource, as in pods/log.
	Group, Resource string
	Verbs           []string
}

// Namespaces says where rights are used.
type Namespaces string

// The places where rights are used.
const (
	// NamespacesAll is everywhere.
	NamespacesAll Namespaces = "all"
	// NamespacesWatched is everywhere, or the one namespace that the operator is told to watch.
	NamespacesWatched Namespaces = "watched"
	// NamespacesRelease is the namespace that the operator runs in.
	NamespacesRelease Namespaces = "release"
)

// PackageRights says who runs the code of a package, and where.
type PackageRights struct {
	// Package is its folder, relative to the repository.
	Package string
	// Workload is the kind of the object whose pods run it, as in Job.
	Workload   string
	Namespaces Namespaces
}

// Resource is the custom resource that the operator reconciles. An object of it is called a runtime.
type Resource struct {
	// CRD is the name of its CustomResourceDefinition, which is in the chart's crds folder.
	CRD string
	// Spec is the spec of a runtime as a user would write it, with the placeholders of Render.
	Spec map[string]any
	// Features are fields of the spec that not every release knows. A release knows one if its CRD has the field.
	Features []Feature
	// Managed are the objects that the operator makes for a runtime.
	Managed []Managed
	// Change is a change of the spec that the operator must carry out. ChangeWithoutRoll is one that replaces no pod; nil if
	// there is none.
	Change, ChangeWithoutRoll *Change
	// Upgrade is how the operator tells of a change of the image; nil if it does not.
	Upgrade *UpgradeReport
	// Examples are patterns of files in the repository with example objects.
	Examples []string
	// Exemplars are valid values, by their path like spec.image.tag or spec.list[].name, for the fields that have a pattern
	// or a rule. A nil value leaves the field out.
	Exemplars map[string]any
}

// Feature is a field of the spec that not every release knows.
type Feature struct {
	// Field is its name, below spec. Value is what a runtime that uses it has there, with the placeholders of Render.
	Field string
	Value any
}

// Managed is an object that the operator makes for a runtime.
type Managed struct {
	APIVersion, Kind string
	// Name is its name, in which $name is that of the runtime. Default: $name.
	Name string
	// Feature is the feature that asks for it; empty if every runtime has one.
	Feature string
}

// Change is a change of the spec and the trace that it leaves.
type Change struct {
	// Spec is laid over the spec of a runtime.
	Spec map[string]any
	// Kind is the kind of the managed object that shows it, Shows the fields by which.
	Kind  string
	Shows map[string]any
}

// UpgradeReport is how an operator tells of a change of the image.
type UpgradeReport struct {
	// Started, Completed and Failed are the reasons of its events.
	Started, Completed, Failed string
	// Image is the field of the status with the image whose rollout was completed last.
	Image string
}

// Runtime is the program that the operator runs for each of its resources.
type Runtime struct {
	// Image is where its image is published: HOST/PATH.
	Image string
	// Package is a main package of the repository that stands in for an image that can't be pulled; empty if there is none.
	Package string
	// Port is the port of the Service, by name or number, and Paths are what the runtime answers on there; the first is
	// asked all the time. Both are empty if a runtime serves nothing.
	Port  string
	Paths []string
	// Started is the line that it logs at its start; nil if it logs none.
	Started *StartLine
}

// StartLine is a line of JSON in the log of a runtime.
type StartLine struct {
	// Line are fields by which the line is known, Version the field that holds the version.
	Line    map[string]any
	Version string
}

//go:embed trussium.yaml
var trussium []byte

// DefaultOperator is the operator of a file that has no section for it: the Trussium operator.
func DefaultOperator() Operator { return defaultOperator() }

var defaultOperator = sync.OnceValue(func() Operator {
	r := &reader{file: "trussium.yaml"}
	var document yaml.Node
	if err := yaml.Unmarshal(trussium, &document); err != nil {
		panic(fmt.Sprintf("trussium.yaml is not YAML: %v", err)) // a test reads it
	}
	operator := r.operator("operator", document.Content[0])
	if err := asError(r.problems); err != nil {
		panic(err.Error())
	}
	return operator
})
