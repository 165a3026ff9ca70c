package controller_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// publishedManager is the field manager of published operators: the name of
// their binary, by which they wrote with plain updates.
const publishedManager = "manager"

// A published operator's objects are taken over without a rollout, a new
// generation or a lost address, and lose what the operator stops setting.
func TestObjectsOfAPublishedOperatorAreTakenOver(t *testing.T) {
	for manifest, name := range map[string]string{"minimal": "rt", "full": "full"} {
		t.Run(manifest, func(t *testing.T) {
			namespace := newNamespace(t)
			createManifest(t, namespace, "runtime-"+manifest+".yaml")
			runtime := get(t, namespace, name, &v1alpha1.TrussiumRuntime{})
			createPublishedObjects(t, runtime, manifest)

			before := deployment(t, namespace, name)
			service := get(t, namespace, name, &corev1.Service{})

			running := startOperator(t, namespace)
			running.settle(t)

			after := deployment(t, namespace, name)
			if after.UID != before.UID || after.Generation != before.Generation {
				t.Errorf("the Deployment was %s at generation %d and is %s at %d",
					before.UID, before.Generation, after.UID, after.Generation)
			}
			if diff := cmp.Diff(before.Spec, after.Spec); diff != "" {
				t.Errorf("the Deployment's spec changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(service.Spec, get(t, namespace, name, &corev1.Service{}).Spec); diff != "" {
				t.Errorf("the Service's spec changed (-before +after):\n%s", diff)
			}
			for _, object := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &corev1.Service{}, &appsv1.Deployment{}} {
				get(t, namespace, name, object)
				owner := metav1.GetControllerOf(object)
				if owner == nil || owner.UID != runtime.UID || *owner.BlockOwnerDeletion {
					t.Errorf("the owner of %T is %+v", object, owner)
				}
				for _, entry := range object.GetManagedFields() {
					if entry.Manager == publishedManager {
						t.Errorf("%T still has fields of the published operator", object)
					}
				}
			}

			running.forget()
			change(t, after, func(object *appsv1.Deployment) { object.Labels["example.com/touched"] = "yes" })
			running.settle(t)
			if requests := running.seen(); len(requests) > 0 {
				t.Errorf("a taken over runtime costs requests when nothing changes: %v", requests)
			}

			// A setting that is taken out of the spec leaves the objects as well.
			change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) {
				runtime.Spec.Provider.BaseURL = ""
				runtime.Spec.Provider.CredentialsSecretRef = nil
				runtime.Spec.Scheduling = nil
				runtime.Spec.Resources = nil
				runtime.Spec.PodMetadata = nil
			})
			operatortest.Eventually(t, "what the spec no longer says is gone", func() error {
				if url := get(t, namespace, name, &corev1.ConfigMap{}).Data["TRUSSIUM_PROVIDER__BASE_URL"]; url != "" {
					return fmt.Errorf("the base URL is still %s", url)
				}
				pod := deployment(t, namespace, name).Spec.Template
				container := pod.Spec.Containers[0]
				if len(container.Env)+len(container.Resources.Limits)+len(pod.Spec.Tolerations) > 0 ||
					pod.Spec.Affinity != nil || pod.Labels["team"] != "" {
					return fmt.Errorf("the template is still %+v", pod)
				}
				return nil
			})
		})
	}
}

// createPublishedObjects writes the objects of a runtime in the way of a
// published operator: plain creates and updates, and blockOwnerDeletion.
func createPublishedObjects(t *testing.T, runtime *v1alpha1.TrussiumRuntime, manifest string) {
	t.Helper()
	objects := readManifest(t, "objects-"+manifest+".yaml")
	objects = append(objects, publishedDeployment(t, runtime, manifest))
	isTrue := true
	for _, object := range objects {
		object.SetNamespace(runtime.Namespace)
		object.SetResourceVersion("")
		object.SetUID("")
		object.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: runtime.Name, UID: runtime.UID,
			Controller: &isTrue, BlockOwnerDeletion: &isTrue,
		}})
		for _, assigned := range [][]string{{"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}} {
			unstructured.RemoveNestedField(object.Object, assigned...)
		}
		if ports, found, _ := unstructured.NestedSlice(object.Object, "spec", "ports"); found {
			delete(ports[0].(map[string]any), "nodePort")
			if err := unstructured.SetNestedSlice(object.Object, ports, "spec", "ports"); err != nil {
				t.Fatal(err)
			}
		}
		create(t, object, client.FieldOwner(publishedManager))
	}
}

func publishedDeployment(t *testing.T, runtime *v1alpha1.TrussiumRuntime, manifest string) *unstructured.Unstructured {
	t.Helper()
	template := readManifest(t, "pod-template-"+manifest+".yaml")[0]
	selector := map[string]any{
		"app.kubernetes.io/name":     "trussium",
		"app.kubernetes.io/instance": runtime.Name,
	}
	labels := map[string]any{
		"app.kubernetes.io/component":  "runtime",
		"app.kubernetes.io/managed-by": "trussium-operator",
		"app.kubernetes.io/name":       "trussium",
		"app.kubernetes.io/instance":   runtime.Name,
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1",
		"kind":       "Deployment",
		"metadata":   map[string]any{"name": runtime.Name, "labels": labels},
		"spec": map[string]any{
			"replicas":                int64(*runtime.Spec.Replicas),
			"progressDeadlineSeconds": int64(600),
			"revisionHistoryLimit":    int64(3),
			"selector":                map[string]any{"matchLabels": selector},
			"strategy": map[string]any{
				"type":          "RollingUpdate",
				"rollingUpdate": map[string]any{"maxUnavailable": int64(0), "maxSurge": int64(1)},
			},
			"template": template.Object,
		},
	}}
}

// Many controllers are called "manager". One that touches our objects without
// having made them keeps its fields.
func TestFieldsOfAnotherControllerCalledManagerSurvive(t *testing.T) {
	namespace := newNamespace(t)
	running := startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))
	live := deployment(t, namespace, "rt")
	running.settle(t)

	annotate, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.com/scanned": "yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, annotate), client.FieldOwner(publishedManager)); err != nil {
		t.Fatal(err)
	}
	running.settle(t)
	if got := deployment(t, namespace, "rt").Annotations["example.com/scanned"]; got != "yes" {
		t.Errorf("the annotation of another controller is gone: %q", got)
	}
}
