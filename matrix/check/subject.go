package check

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

// ErrNotApplicable says that the operator has nothing that the check could judge.
var ErrNotApplicable = errors.New("not applicable")

// Subject is the operator that is judged: what is declared of it, and what its chart and its CRD tell. An object of the
// custom resource that it reconciles is called a runtime.
type Subject struct {
	compat.Operator
	// Name is that of the chart. Its Helm release has it too, and the label app.kubernetes.io/name of its Deployment.
	Name string
	// Kind is the custom resource in its storage version, Plural its name in URLs.
	Kind   schema.GroupVersionKind
	Plural string
	// managed are the kinds that the operator makes for every runtime, in the order of their making.
	managed []managedKind
}

// managedKind is a kind of object that the operator makes for every runtime.
type managedKind struct {
	compat.Managed
	gvk      schema.GroupVersionKind
	resource string
}

// NewSubject brings together what is declared of an operator and the files of its chart's crds folder.
func NewSubject(declared compat.Operator, chart string, crds [][]byte) (Subject, error) {
	subject := Subject{Operator: declared, Name: chart}
	crd, err := subject.ParseCRD(crds)
	if err != nil {
		return Subject{}, err
	}
	subject.Kind.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	subject.Kind.Kind, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "kind")
	subject.Plural, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	for _, version := range versionsOf(crd) {
		if stored, _ := version["storage"].(bool); stored {
			subject.Kind.Version, _ = version["name"].(string)
		}
	}
	if subject.Kind.Group == "" || subject.Kind.Kind == "" || subject.Kind.Version == "" || subject.Plural == "" {
		return Subject{}, fmt.Errorf("the CRD %s of chart %s lacks its group, names or storage version", declared.Resource.CRD, chart)
	}
	for _, managed := range declared.Resource.Managed {
		group, err := schema.ParseGroupVersion(managed.APIVersion)
		if err != nil {
			return Subject{}, fmt.Errorf("operator.resource.managed: %s: apiVersion: %w", managed.Kind, err)
		}
		kind := managedKind{Managed: managed, gvk: group.WithKind(managed.Kind)}
		plural, _ := meta.UnsafeGuessKindToResource(kind.gvk)
		kind.resource = plural.Resource
		subject.managed = append(subject.managed, kind)
	}
	return subject, nil
}

func versionsOf(crd *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	var versions []map[string]any
	for _, version := range list {
		if entry, ok := version.(map[string]any); ok {
			versions = append(versions, entry)
		}
	}
	return versions
}

// Namespace is the namespace that the operator is installed into.
func (s Subject) Namespace() string { return s.Name + "-system" }

// ParseCRD reads the operator's CRD out of a chart's crds files.
func (s Subject) ParseCRD(files [][]byte) (*unstructured.Unstructured, error) {
	for _, file := range files {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(file, &object.Object); err != nil {
			return nil, fmt.Errorf("read the chart's CRD: %w", err)
		}
		if object.GetName() == s.Resource.CRD {
			return object, nil
		}
	}
	return nil, fmt.Errorf("the chart has no CRD %s in its crds folder", s.Resource.CRD)
}

// FeaturesOf are the declared features that a release with this CRD in its chart knows.
func (s Subject) FeaturesOf(chart *unstructured.Unstructured) []string {
	var features []string
	for _, version := range versionsOf(chart) {
		for _, feature := range s.Resource.Features {
			_, found, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties", feature.Field)
			if found && !slices.Contains(features, feature.Field) {
				features = append(features, feature.Field)
			}
		}
	}
	return features
}

// kindsOf are the kinds of which the runtime is to have an object.
func (s Subject) kindsOf(runtime *unstructured.Unstructured) []managedKind {
	return slices.DeleteFunc(slices.Clone(s.managed), func(kind managedKind) bool {
		return kind.Feature != "" && !asksFor(runtime, kind.Feature)
	})
}

// asksFor tells whether the runtime uses a feature: it has the field, and does not say enabled: false in it.
func asksFor(runtime *unstructured.Unstructured, feature string) bool {
	value, found, _ := unstructured.NestedFieldNoCopy(runtime.Object, "spec", feature)
	if fields, ok := value.(map[string]any); ok {
		if enabled, ok := fields["enabled"].(bool); ok {
			return enabled
		}
	}
	return found && value != nil
}

// kind is the first managed kind of that name.
func (s Subject) kind(name string) (managedKind, bool) {
	i := slices.IndexFunc(s.managed, func(kind managedKind) bool { return kind.Kind == name })
	if i < 0 {
		return managedKind{}, false
	}
	return s.managed[i], true
}

// workload is the managed kind whose pods run a runtime.
func (s Subject) workload() (managedKind, error) {
	kind, ok := s.kind(kindDeployment)
	if !ok {
		return kind, fmt.Errorf("%w: operator.resource.managed names no %s", ErrNotApplicable, kindDeployment)
	}
	return kind, nil
}

const (
	kindDeployment = "Deployment"
	kindService    = "Service"
)

// gentle are the kinds whose labels are changed in objects that live through the upgrade: Services and disruption
// budgets, if there are any, or else whatever runs no pods.
func (s Subject) gentle() []managedKind {
	var usual, others []managedKind
	for _, kind := range s.managed {
		switch kind.Kind {
		case kindService, "PodDisruptionBudget":
			usual = append(usual, kind)
		case kindDeployment, "StatefulSet", "DaemonSet", "Job", "CronJob":
		default:
			if kind.Feature == "" {
				others = append(others, kind)
			}
		}
	}
	if len(usual) > 0 {
		return usual
	}
	return others
}

// Serves tells whether runtimes can be asked for something.
func (s Subject) Serves() error {
	if _, ok := s.kind(kindService); !ok || len(s.Runtime.Paths) == 0 {
		return fmt.Errorf("%w: the compatibility file names no Service and path by which a runtime could be asked", ErrNotApplicable)
	}
	return nil
}

// shows tells whether an object has all the fields, and what it has in their place.
func shows(object *unstructured.Unstructured, fields map[string]any) (bool, string) {
	holds := true
	var told []string
	walk(fields, nil, func(path []string, want any) {
		got, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		told = append(told, fmt.Sprintf("%s=%s", strings.Join(path, "."), compact(got)))
		if !reflect.DeepEqual(got, want) {
			holds = false
		}
	})
	return holds, object.GetKind() + " has " + strings.Join(told, ", ")
}

// undo has, for the same fields, what the object has now below root. As a merge patch it brings the
// object back.
func undo(object *unstructured.Unstructured, root []string, fields map[string]any) map[string]any {
	patch := map[string]any{}
	walk(fields, nil, func(path []string, _ any) {
		value, _, _ := unstructured.NestedFieldCopy(object.Object, slices.Concat(root, path)...)
		into := patch
		for _, name := range path[:len(path)-1] {
			below, ok := into[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				into[name] = below
			}
			into = below
		}
		into[path[len(path)-1]] = value // null removes what was not there
	})
	return patch
}

// walk calls leaf for everything in the tree that is no mapping, in the order of the keys.
func walk(tree map[string]any, path []string, leaf func(path []string, value any)) {
	for _, key := range keys(tree) {
		below := append(slices.Clone(path), key)
		if fields, ok := tree[key].(map[string]any); ok {
			walk(fields, below, leaf)
			continue
		}
		leaf(below, tree[key])
	}
}
