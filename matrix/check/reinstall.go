package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The two checks of a release that is removed and installed again.
var (
	UninstallReinstall = Check{
		ID:    "uninstall-reinstall",
		Claim: "`helm uninstall` keeps the CRD, the runtimes and everything made for them, and a fresh install adopts it all without rolling a pod.",
	}
	FreshEqualsUpgraded = Check{
		ID:    "fresh-equals-upgraded",
		Claim: "The upgraded release and a fresh install of the same chart leave the same objects in the cluster.",
	}
)

// AwaitUninstalled waits until the operator's pods are gone, and judges the first half of UninstallReinstall.
func AwaitUninstalled(ctx context.Context, t Target, before *Snapshot) (Result, error) {
	var r Result
	var after *Snapshot
	gone, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		var err error
		if after, err = Observe(ctx, t); err != nil {
			return false, "", err
		}
		return len(after.OperatorPods) == 0, fmt.Sprintf("%d operator pods", len(after.OperatorPods)), nil
	})
	if err != nil {
		return r, err
	}
	if !gone {
		r.Fail("%s after the release was uninstalled there are still %s", goneTimeout, seen)
		return r, nil
	}
	r.See("the operator's pods are gone")
	r.Add(compareKept(before, after))
	return r, nil
}

// CompareReinstalled judges the second half of UninstallReinstall, when the fresh operator leads.
func CompareReinstalled(ctx context.Context, t Target, before *Snapshot) (Result, error) {
	var r Result
	for _, name := range t.Runtimes {
		ready, err := AwaitReady(ctx, t, name)
		if err != nil {
			return r, err
		}
		r.Add(ready)
	}
	after, err := Observe(ctx, t)
	if err != nil {
		return r, err
	}
	r.Add(compareKept(before, after))
	r.Add(CompareStatus(before, after))
	return r, nil
}

func compareKept(before, after *Snapshot) Result {
	var r Result
	if before.CRD == nil || after.CRD == nil {
		r.Fail("the CRD %s is gone", crdName(before, after))
		return r
	}
	r.same(pair{name: "CustomResourceDefinition/" + crdName(before), before: before.CRD, after: after.CRD})
	r.Add(CompareSpecs(before, after))
	r.Add(CompareChildren(before, after))
	r.Add(CompareWorkload(before, after))
	return r
}

// ObserveRelease reads the objects of a release's rendered manifest from the cluster. One that is
// not there is left out.
func ObserveRelease(ctx context.Context, t Target, manifest string) ([]unstructured.Unstructured, error) {
	var objects []unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(manifest), 4096)
	for {
		var named unstructured.Unstructured
		if err := documents.Decode(&named); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("read the manifest of release %s: %w", t.Release, err)
		}
		if len(named.Object) == 0 {
			continue
		}
		live := unstructured.Unstructured{}
		live.SetGroupVersionKind(named.GroupVersionKind())
		key := client.ObjectKey{Name: named.GetName()}
		mapping, err := t.Client.RESTMapper().RESTMapping(named.GroupVersionKind().GroupKind(), named.GroupVersionKind().Version)
		if err != nil {
			return nil, fmt.Errorf("find the kind %s of release %s: %w", named.GroupVersionKind(), t.Release, err)
		}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			if key.Namespace = named.GetNamespace(); key.Namespace == "" {
				key.Namespace = t.OperatorNamespace
			}
		}
		switch err := t.Client.Get(ctx, key, &live); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read %s %s of release %s: %w", named.GetKind(), key, t.Release, err)
		default:
			objects = append(objects, live)
		}
	}
}

// CompareReleases judges FreshEqualsUpgraded.
func CompareReleases(upgraded, fresh []unstructured.Unstructured) Result {
	var r Result
	equal := 0
	for _, p := range pairs(upgraded, fresh) {
		switch {
		case p.before == nil:
			r.Fail("%s is there after a fresh install, not after the upgrade", p.name)
			continue
		case p.after == nil:
			r.Fail("%s is there after the upgrade, not after a fresh install", p.name)
			continue
		}
		found := differences("", whatWasAskedFor(p.before), whatWasAskedFor(p.after))
		for _, d := range found {
			r.Fail("%s: %s (upgraded, then fresh)", p.name, d)
		}
		if len(found) == 0 {
			equal++
		}
	}
	if equal > 0 {
		r.See("%d objects of the release are the same after the upgrade and after a fresh install", equal)
	}
	return r
}

// whatWasAskedFor leaves out of an object what the cluster fills in for each anew.
func whatWasAskedFor(object *unstructured.Unstructured) map[string]any {
	kept := object.DeepCopy()
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		unstructured.RemoveNestedField(kept.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(kept.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(kept.Object, "spec", field)
	}
	delete(kept.Object, "status")
	return kept.Object
}
