// Package bundle renders install.yaml, the operator for people who install with kubectl
// alone: the objects of the chart with its default values, its CustomResourceDefinition and
// the documented namespace.
package bundle

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	// Namespace is where the bundle installs the operator.
	Namespace = "trussium-operator-system"

	// releaseName gives the objects the names that they have in a Helm release of this name.
	releaseName = "trussium-operator"
)

// Selector is that of the Deployment in every bundle that was published, made by kustomize
// and not from the chart. Selectors are immutable: with the chart's, `kubectl apply` would be
// refused where an earlier bundle is installed.
var Selector = map[string]string{
	"app.kubernetes.io/name": "trussium-operator",
	"control-plane":          "controller-manager",
}

// kubernetes is the oldest version that the chart supports, for which it is rendered.
var kubernetes = chartutil.KubeVersion{Version: "v1.25.0", Major: "1", Minor: "25"}

// Render renders the chart as the content of install.yaml. The operator's image is named by
// digest, or, without one, by its tag. The same chart gives the same bytes.
func Render(loaded *chart.Chart, digest string) ([]byte, error) {
	objects, err := render(loaded, digest)
	if err != nil {
		return nil, fmt.Errorf("render the chart %s %s: %w", loaded.Name(), loaded.Metadata.Version, err)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# The Trussium operator %s, rendered from its chart.\n", loaded.Metadata.AppVersion)
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		fmt.Fprintf(&out, "---\n%s", content)
	}
	return out.Bytes(), nil
}

// render lists the objects in the order in which they are applied.
func render(loaded *chart.Chart, digest string) ([]*unstructured.Unstructured, error) {
	install := action.NewInstall(&action.Configuration{})
	install.ReleaseName, install.Namespace = releaseName, Namespace
	install.DryRun, install.ClientOnly, install.KubeVersion = true, true, &kubernetes
	release, err := install.Run(loaded, map[string]any{"image": map[string]any{"digest": digest}})
	if err != nil {
		return nil, err
	}
	var definitions strings.Builder
	for _, definition := range loaded.CRDObjects() {
		fmt.Fprintf(&definitions, "---\n%s\n", definition.File.Data)
	}
	// Hooks are no part of the manifest: here, the CustomResourceDefinition is applied like all else.
	objects, err := Decode(definitions.String() + "---\n" + release.Manifest)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		withoutHelm(object)
		if object.GetKind() == "Deployment" {
			if err := withSelector(object.Object); err != nil {
				return nil, fmt.Errorf("give Deployment %s its selector: %w", object.GetName(), err)
			}
		}
	}
	return append([]*unstructured.Unstructured{namespace()}, objects...), nil
}

// Decode reads the objects of a stream of YAML documents. A key that is there twice is an
// error.
func Decode(documents string) ([]*unstructured.Unstructured, error) {
	reader := yamlutil.NewYAMLReader(bufio.NewReader(strings.NewReader(documents)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a YAML document: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
			return nil, fmt.Errorf("decode a YAML document: %w\n%s", err, document)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func namespace() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"name": Namespace},
	}}
}

// withoutHelm removes what is only true of objects that Helm has made.
func withoutHelm(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	delete(labels, "app.kubernetes.io/managed-by")
	delete(labels, "helm.sh/chart")
	object.SetLabels(labels)
}

func withSelector(deployment map[string]any) error {
	labels, _, err := unstructured.NestedStringMap(deployment, "spec", "template", "metadata", "labels")
	if err != nil {
		return err
	}
	maps.Copy(labels, Selector)
	return errors.Join(
		unstructured.SetNestedStringMap(deployment, labels, "spec", "template", "metadata", "labels"),
		unstructured.SetNestedStringMap(deployment, Selector, "spec", "selector", "matchLabels"),
	)
}
