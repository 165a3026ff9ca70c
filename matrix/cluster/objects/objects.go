// Package objects writes what a person needs to see of a cluster's workloads to find out why one
// does not run.
package objects

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// written are the objects that show why a workload doesn't run. Secrets are not among them, so
// that a report can be shown to others.
var written = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "services"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

// Write writes the cluster's workloads and events into dir as YAML, one file for each kind. It
// writes what it can and joins the errors.
func Write(ctx context.Context, config *rest.Config, dir string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("write the cluster's objects: %w", err)
	}
	var errs []error
	for _, resource := range written {
		if err := writeList(ctx, client, resource, dir); err != nil {
			errs = append(errs, fmt.Errorf("diagnose %s: %w", resource.Resource, err))
		}
	}
	return errors.Join(errs...)
}

func writeList(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, dir string) error {
	list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		unstructured.RemoveNestedField(list.Items[i].Object, "metadata", "managedFields")
	}
	text, err := yaml.Marshal(list.UnstructuredContent())
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resource.Resource+".yaml"), text, 0o644)
}
