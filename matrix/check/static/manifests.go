package static

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// object is an object that Helm makes.
type object struct {
	*unstructured.Unstructured
	// events are those at which Helm makes it, if it is a hook's.
	events []string
}

func objectOf(content map[string]any, events []string) object {
	return object{Unstructured: &unstructured.Unstructured{Object: content}, events: events}
}

// ref names an object within the namespace of its release.
type ref struct {
	schema.GroupKind
	namespace, name string
}

func (r ref) String() string {
	if r.namespace == "" {
		return r.Kind + " " + r.name
	}
	return r.Kind + " " + r.namespace + "/" + r.name
}

// objectsOf are the objects of a revision; those of hooks come last. An error is the chart's fault.
func objectsOf(rendered helm.Rendered) ([]object, error) {
	var objects []object
	add := func(what, manifest string, events []string) error {
		documents, err := documents([]byte(manifest))
		if err != nil {
			return fmt.Errorf("%s of chart %s: %w", what, rendered.ChartVersion, err)
		}
		for _, document := range documents {
			objects = append(objects, objectOf(document, events))
		}
		return nil
	}
	if err := add("the manifest", rendered.Manifest, nil); err != nil {
		return nil, refusedError{err}
	}
	for _, hook := range rendered.Hooks {
		if err := add("a hook", hook.Manifest, hook.Events); err != nil {
			return nil, refusedError{err}
		}
	}
	return objects, nil
}

// documents reads the YAML documents of a text, apart from empty ones. A key that stands twice is
// an error.
func documents(text []byte) ([]map[string]any, error) {
	var found []map[string]any
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		content, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		var document map[string]any
		if err := yaml.UnmarshalStrict(content, &document); err != nil {
			return nil, fmt.Errorf("document %d: %w", len(found)+1, err)
		}
		if len(document) > 0 {
			found = append(found, document)
		}
	}
}

// as reads an object as one of Kubernetes' own types; a field that the type does not have is an error.
func as[T any](content map[string]any) (*T, error) {
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(content, into, true); err != nil {
		return nil, err
	}
	return into, nil
}

// installed are the objects that stay in the cluster: all but those of hooks, by name. The
// namespace of the release can be left out in a manifest.
func installed(objects []object, namespace string) map[ref]object {
	named := map[ref]object{}
	for _, o := range objects {
		if len(o.events) == 0 {
			named[refOf(o, namespace)] = o
		}
	}
	return named
}

func refOf(o object, namespace string) ref {
	r := ref{GroupKind: o.GroupVersionKind().GroupKind(), namespace: o.GetNamespace(), name: o.GetName()}
	if r.namespace == namespace {
		r.namespace = ""
	}
	return r
}

// refs are the names in one or more maps of objects, sorted.
func refs(maps ...map[ref]object) []ref {
	var all []ref
	for _, m := range maps {
		for r := range m {
			if !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b ref) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// podSpec is the spec of the pods that an object runs, if it runs any.
func podSpec(o object) (map[string]any, bool) {
	path := []string{"spec", "template", "spec"}
	switch o.GetKind() {
	case "Pod":
		path = []string{"spec"}
	case "CronJob":
		path = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	}
	spec, found, err := unstructured.NestedMap(o.Object, path...)
	return spec, found && err == nil && spec["containers"] != nil
}
