package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// diagnosed are the objects that show why a workload doesn't run. Secrets are not among
// them, so that a report can be shown to others.
var diagnosed = []schema.GroupVersionResource{
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "events"},
	{Version: "v1", Resource: "services"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
}

// Diagnose copies the logs of the components and of all containers into dir, and writes
// the cluster's workloads and events as YAML, one file for each kind. It writes what it can
// and joins the errors.
func (c *Cluster) Diagnose(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("diagnose the embedded cluster: %w", err)
	}
	var errs []error
	for _, logs := range []string{"logs", "pod-logs"} {
		if err := copyFiles(filepath.Join(c.dir, logs), filepath.Join(dir, logs)); err != nil {
			errs = append(errs, err)
		}
	}
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, resource := range diagnosed {
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

// copyFiles copies a folder's files; it may be missing, and what is no regular file is
// left out.
func copyFiles(from, to string) error {
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		return copyFile(path, target)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
