package compat

import (
	"reflect"

	"github.com/invopop/jsonschema"
)

// The types below have the shape of the section about the operator. A field without omitempty is required.

type operatorSchema struct {
	Chart     operatorChartSchema `json:"chart" jsonschema_description:"Its Helm chart."`
	Image     operatorImageSchema `json:"image" jsonschema_description:"Its image: one static binary."`
	Lease     objectName          `json:"lease" jsonschema_description:"Name of the Lease that the leading pod holds in the namespace of the release."`
	Scenarios repositoryPath      `json:"scenarios,omitempty" jsonschema:"default=chainsaw" jsonschema_description:"Folder of the scenarios roll-forward and roll-back."`
	Rights    *rightsSchema       `json:"rights,omitempty" jsonschema_description:"What is expected of its rights."`
	Resource  resourceSchema      `json:"resource" jsonschema_description:"The custom resource that it reconciles. An object of it is called a runtime."`
	Runtime   runtimeSchema       `json:"runtime" jsonschema_description:"The program that it runs for each of them."`
}

type operatorChartSchema struct {
	Path           repositoryPath  `json:"path" jsonschema_description:"Folder of the chart, relative to the root of the repository."`
	Repository     imageRepository `json:"repository" jsonschema_description:"Where it is published: HOST/PATH."`
	WatchNamespace word            `json:"watchNamespace,omitempty" jsonschema_description:"Value of the chart that makes the operator work in one namespace only."`
}

type operatorImageSchema struct {
	Repository      imageRepository `json:"repository" jsonschema_description:"Where it is published, and what the chart names: HOST/PATH."`
	Package         mainPackage     `json:"package" jsonschema_description:"Main package of the repository that it is built from, as in ./operator."`
	VersionVariable word            `json:"versionVariable,omitempty" jsonschema_description:"Variable that the linker sets to the version, with the import path of its package."`
}

type rightsSchema struct {
	Needed   []rightSchema         `json:"needed,omitempty" jsonschema:"minItems=1" jsonschema_description:"Rights that it needs beyond those that follow from what it reads and manages."`
	Refused  []rightSchema         `json:"refused,omitempty" jsonschema:"minItems=1" jsonschema_description:"Rights that it must not have."`
	Packages []packageRightsSchema `json:"packages,omitempty" jsonschema:"minItems=1" jsonschema_description:"Packages of the code that are not run by the Deployment's pods for the watched namespaces."`
}

type rightSchema struct {
	Group    optionalWord `json:"group" jsonschema_description:"API group; empty for the core group."`
	Resource word         `json:"resource" jsonschema_description:"Plural name, as in pods or pods/log."`
	Verbs    []word       `json:"verbs" jsonschema:"minItems=1" jsonschema_description:"Verbs on it."`
}

type packageRightsSchema struct {
	Package    repositoryPath `json:"package" jsonschema_description:"Folder of the package, relative to the root of the repository."`
	Workload   word           `json:"workload" jsonschema_description:"Kind of the object whose pods run it, as in Job."`
	Namespaces Namespaces     `json:"namespaces" jsonschema_description:"Where it uses its rights. all: everywhere; watched: where the operator watches; release: in the operator's own namespace."`
}

type resourceSchema struct {
	CRD               crdName          `json:"crd" jsonschema_description:"Name of the CustomResourceDefinition in the chart's crds folder."`
	Spec              map[string]any   `json:"spec" jsonschema_description:"Spec of a runtime as a user would write it. $repository, $tag and $image stand for its image, $replicas for the count of its pods."`
	Features          map[string]any   `json:"features,omitempty" jsonschema_description:"Fields of the spec that not every release knows, with the value of a runtime that uses them."`
	Managed           []managedSchema  `json:"managed" jsonschema:"minItems=1" jsonschema_description:"The objects that the operator makes for a runtime."`
	Change            changeSchema     `json:"change" jsonschema_description:"A change of the spec that the operator must carry out."`
	ChangeWithoutRoll *changeSchema    `json:"changeWithoutRoll,omitempty" jsonschema_description:"A change of the spec that replaces no pod."`
	Upgrade           *upgradeReport   `json:"upgrade,omitempty" jsonschema_description:"How the operator tells of a change of the image."`
	Examples          []repositoryPath `json:"examples,omitempty" jsonschema:"minItems=1" jsonschema_description:"Patterns of files in the repository with example objects."`
	Exemplars         map[string]any   `json:"exemplars,omitempty" jsonschema_description:"Valid values of fields with a pattern or a rule, by their path, as in spec.image.tag. null leaves the field out."`
}

type managedSchema struct {
	APIVersion word      `json:"apiVersion" jsonschema_description:"As in apps/v1."`
	Kind       word      `json:"kind" jsonschema_description:"As in Deployment."`
	Name       childName `json:"name,omitempty" jsonschema:"default=$name" jsonschema_description:"Its name; $name stands for the name of the runtime."`
	Feature    anyText   `json:"feature,omitempty" jsonschema_description:"The feature that asks for it. Default: every runtime has one."`
}

type changeSchema struct {
	Spec  map[string]any `json:"spec" jsonschema_description:"What is laid over the spec."`
	Kind  anyText        `json:"kind" jsonschema_description:"Kind of the managed object that shows it."`
	Shows map[string]any `json:"shows" jsonschema_description:"The fields by which it shows it."`
}

type upgradeReport struct {
	Started   word `json:"started" jsonschema_description:"Reason of the event at the start."`
	Completed word `json:"completed" jsonschema_description:"Reason of the event at the end."`
	Failed    word `json:"failed" jsonschema_description:"Reason of the event of a failure."`
	Image     word `json:"image" jsonschema_description:"Field of the status with the image whose rollout was completed last."`
}

type runtimeSchema struct {
	Image   imageRepository  `json:"image" jsonschema_description:"Where its image is published: HOST/PATH."`
	Package mainPackage      `json:"package,omitempty" jsonschema_description:"Main package of the repository that stands in for an image that can't be pulled."`
	Port    word             `json:"port,omitempty" jsonschema_description:"Port of the Service, by name or number."`
	Paths   []urlPath        `json:"paths,omitempty" jsonschema:"minItems=1" jsonschema_description:"What the runtime answers on there. The first is asked all the time."`
	Started *startLineSchema `json:"started,omitempty" jsonschema_description:"The line of JSON that it logs at its start."`
}

type startLineSchema struct {
	Line    map[string]any `json:"line" jsonschema_description:"The fields by which the line is known."`
	Version word           `json:"version" jsonschema_description:"The field that holds the version."`
}

// The kinds of text that only this section holds.
type (
	word            string
	optionalWord    string
	objectName      string
	crdName         string
	imageRepository string
	repositoryPath  string
	mainPackage     string
	urlPath         string
	childName       string
)

// operatorScalarSchema is the schema of a text; nil for types that are none.
func operatorScalarSchema(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[word]():
		return &jsonschema.Schema{Type: "string", Pattern: wordForm.String()}
	case reflect.TypeFor[optionalWord]():
		return &jsonschema.Schema{Type: "string", Pattern: `^[^\x00-\x20\x7f]*$`}
	case reflect.TypeFor[objectName]():
		return &jsonschema.Schema{Type: "string", Pattern: objectForm.String()}
	case reflect.TypeFor[crdName]():
		return &jsonschema.Schema{Type: "string", Pattern: crdForm.String()}
	case reflect.TypeFor[imageRepository]():
		return &jsonschema.Schema{Type: "string", Pattern: repositoryForm.String()}
	case reflect.TypeFor[repositoryPath]():
		return &jsonschema.Schema{Type: "string", Pattern: pathForm.String()}
	case reflect.TypeFor[mainPackage]():
		return &jsonschema.Schema{Type: "string", Pattern: packageForm.String()}
	case reflect.TypeFor[urlPath]():
		return &jsonschema.Schema{Type: "string", Pattern: urlPathForm.String()}
	case reflect.TypeFor[childName]():
		return &jsonschema.Schema{Type: "string", Pattern: childForm.String()}
	case reflect.TypeFor[Namespaces]():
		return &jsonschema.Schema{Type: "string", Enum: []any{NamespacesAll, NamespacesWatched, NamespacesRelease}}
	default:
		return nil
	}
}
