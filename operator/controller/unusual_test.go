package controller_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// Whatever a user may write must settle: what the API server makes of it must not
// look like drift.
func TestUnusualSpecsSettle(t *testing.T) {
	namespace := newNamespace(t)
	running := startOperator(t, namespace)
	for _, name := range []string{"a", "b", "c"} {
		create(t, &corev1.Secret{ObjectMeta: metaOf(namespace, name)})
	}
	create(t, minimal(namespace, "rt"))
	runtime := &v1alpha1.TrussiumRuntime{ObjectMeta: metaOf(namespace, "rt")}

	specs := []string{
		`{"resources":{}}`,
		`{"resources":{"limits":{"cpu":"0.5","memory":"1024Mi"},"requests":{"cpu":"0.25"}}}`,
		`{"scheduling":{}}`,
		`{"scheduling":{"affinity":{}}}`,
		`{"scheduling":{"affinity":{"nodeAffinity":{}}}}`,
		`{"scheduling":{"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}}}}`,
		`{"scheduling":{"tolerations":[{"key":"a"},{"operator":"Exists","tolerationSeconds":null}]}}`,
		`{"scheduling":null,"podMetadata":{}}`,
		`{"podMetadata":{"labels":{},"annotations":{"a":""}}}`,
		`{"imagePullSecrets":[{"name":"a"},{"name":"b"},{"name":"c"}]}`,
		`{"imagePullSecrets":[{"name":"c"},{"name":"a"},{"name":"b"}]}`,
		`{"imagePullSecrets":[{"name":"b"}]}`,
		`{"imagePullSecrets":[]}`,
		`{"runtime":{}}`,
		`{"service":{"type":"NodePort","port":8080}}`,
		`{"service":{"type":"LoadBalancer","port":80}}`,
		`{"service":{"type":"ClusterIP","port":9000}}`,
		`{"replicas":0}`,
	}
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			patch := fmt.Appendf(nil, `{"spec":%s}`, spec)
			if err := api.Patch(t.Context(), runtime, client.RawPatch(types.MergePatchType, patch)); err != nil {
				t.Fatal(err)
			}
			operatortest.Eventually(t, "the generation is processed", func() error {
				get(t, namespace, "rt", runtime)
				if runtime.Status.ObservedGeneration != runtime.Generation {
					return fmt.Errorf("generation %d, observed %d", runtime.Generation, runtime.Status.ObservedGeneration)
				}
				return nil
			})
			for _, condition := range runtime.Status.Conditions {
				if condition.Reason == "ReconciliationFailed" {
					t.Fatalf("reconciliation failed: %s", condition.Message)
				}
			}
			completeRollout(t, namespace, "rt")
			running.settle(t)
			running.forget()
			live := deployment(t, namespace, "rt")
			change(t, live, func(object *appsv1.Deployment) { object.Labels["example.com/touched"] = live.ResourceVersion })
			running.settle(t)
			if requests := running.seen(); len(requests) > 0 {
				t.Errorf("it never settles: %v", requests)
			}
		})
	}
}

// Objects stored before the rule for names exists are told once that they can't work.
func TestANameStoredBeforeTheRuleIsToldOnce(t *testing.T) {
	namespace := newNamespace(t)
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	get(t, "", "trussiumruntimes.runtime.trussium.io", definition)
	schema := []string{"schema", "openAPIV3Schema", "x-kubernetes-validations"}
	rule := setRule(t, definition, schema, nil)

	object := minimal(namespace, "private.ai")
	operatortest.Eventually(t, "the API server accepts the name", func() error {
		return api.Create(t.Context(), object.DeepCopy())
	})
	setRule(t, definition, schema, rule)
	operatortest.Eventually(t, "the API server enforces the rule again", func() error {
		if err := api.Create(t.Context(), minimal(namespace, "another.name"), client.DryRunAll); err == nil {
			return fmt.Errorf("a bad name is accepted")
		}
		return nil
	})

	running := startOperator(t, namespace)
	want := []string{"ConfigurationInvalid"}
	operatortest.Eventually(t, "one event tells it", func() error {
		if got := reasons(t, namespace, object.Name); !slices.Equal(got, want) {
			return fmt.Errorf("events %v", got)
		}
		return nil
	})
	running.settle(t)
	running.stop()
	startOperator(t, namespace).settle(t)
	if got := reasons(t, namespace, object.Name); !slices.Equal(got, want) {
		t.Errorf("events %v after a restart, want %v", got, want)
	}
}

// setRule replaces the validation rules of the first version, and returns those before.
func setRule(t *testing.T, definition *unstructured.Unstructured, path []string, rule any) any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(definition.Object, "spec", "versions")
	if err != nil {
		t.Fatal(err)
	}
	version := versions[0].(map[string]any)
	before, _, err := unstructured.NestedFieldCopy(version, path...)
	if err != nil {
		t.Fatal(err)
	}
	if rule == nil {
		unstructured.RemoveNestedField(version, path...)
	} else if err := unstructured.SetNestedField(version, rule, path...); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": versions}})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Patch(t.Context(), definition, client.RawPatch(types.MergePatchType, body)); err != nil {
		t.Fatal(err)
	}
	return before
}
