// Package crds installs the CustomResourceDefinitions that the operator binary was
// built with. Helm installs a chart's CustomResourceDefinitions once and never
// upgrades them. The rights below are the source of the chart's role for this.
//
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=create
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=trussiumruntimes.runtime.trussium.io,verbs=get;patch
package crds

//go:generate go tool -modfile=../../tools/generators/go.mod controller-gen rbac:roleName=crd-upgrade,fileName=crd-upgrade-role.yaml paths=. output:rbac:dir=../../charts/trussium-operator/files

import (
	"context"
	"fmt"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/charts"
)

const (
	// fieldManager owns the CustomResourceDefinition's fields, whoever created it.
	fieldManager = "trussium-operator"

	establishTimeout = time.Minute
	establishPoll    = 100 * time.Millisecond
)

// Embedded are the CustomResourceDefinitions that the binary was built with.
func Embedded() ([]*unstructured.Unstructured, error) {
	entries, err := charts.CRDs.ReadDir(charts.CRDDir)
	if err != nil {
		return nil, fmt.Errorf("list the embedded CustomResourceDefinitions: %w", err)
	}
	var definitions []*unstructured.Unstructured
	for _, entry := range entries {
		content, err := charts.CRDs.ReadFile(path.Join(charts.CRDDir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the embedded %s: %w", entry.Name(), err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &definition.Object); err != nil {
			return nil, fmt.Errorf("decode the embedded %s: %w", entry.Name(), err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// Apply installs or updates the embedded CustomResourceDefinitions with
// server-side apply, and returns their names once the API server serves them. It
// waits a minute for that, or until ctx ends.
func Apply(ctx context.Context, config *rest.Config) ([]string, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register CustomResourceDefinition: %w", err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	definitions, err := Embedded()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, definition := range definitions {
		configuration := client.ApplyConfigurationFromUnstructured(definition)
		if err := api.Apply(ctx, configuration, client.FieldOwner(fieldManager), client.ForceOwnership); err != nil {
			return nil, fmt.Errorf("apply CustomResourceDefinition %s: %w", definition.GetName(), err)
		}
		if err := waitEstablished(ctx, api, definition.GetName()); err != nil {
			return nil, err
		}
		names = append(names, definition.GetName())
	}
	return names, nil
}

func waitEstablished(ctx context.Context, api client.Client, name string) error {
	var last []apiextensionsv1.CustomResourceDefinitionCondition
	err := wait.PollUntilContextTimeout(ctx, establishPoll, establishTimeout, true, func(ctx context.Context) (bool, error) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return false, err
		}
		last = definition.Status.Conditions
		for _, condition := range last {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until CustomResourceDefinition %s is served (last conditions: %+v): %w", name, last, err)
	}
	return nil
}
