package controller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestObjectsOfOthersAreRefused(t *testing.T) {
	namespace := newNamespace(t)
	isTrue := true
	tests := []struct {
		name    string
		runtime string
		// namespace differs from the test's own where the name matters.
		namespace string
		object    client.Object
		message   string
	}{
		{
			name:    "the namespace's default ServiceAccount",
			runtime: "default",
			object:  &corev1.ServiceAccount{ObjectMeta: metaOf(namespace, "default")},
			message: "ServiceAccount " + namespace + "/default",
		},
		{
			name:      "the API server's Service",
			runtime:   "kubernetes",
			namespace: "default",
			object:    &corev1.Service{ObjectMeta: metaOf("default", "kubernetes")},
			message:   "Service default/kubernetes",
		},
		{
			name:    "an unlabelled ConfigMap",
			runtime: "taken",
			object: &corev1.ConfigMap{
				ObjectMeta: metaOf(namespace, "taken"),
				Data:       map[string]string{"mine": "yes"},
			},
			message: "ConfigMap " + namespace + "/taken",
		},
		{
			name:    "a labelled ConfigMap with another controller",
			runtime: "controlled",
			object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "controlled",
				Labels: map[string]string{
					"app.kubernetes.io/managed-by": "trussium-operator",
					"app.kubernetes.io/instance":   "controlled",
				},
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "Namespace", Name: "default", UID: defaultNamespaceUID(t), Controller: &isTrue,
				}},
			}},
			message: "controlled by Namespace default",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			where := namespace
			if test.namespace != "" {
				where = test.namespace
			}
			startOperator(t, where)
			key := client.ObjectKeyFromObject(test.object)
			if err := api.Create(t.Context(), test.object); client.IgnoreAlreadyExists(err) != nil {
				if !strings.Contains(err.Error(), "already allocated") && test.runtime != "kubernetes" {
					t.Fatal(err)
				}
			}
			operatortest.Eventually(t, "the object of others exists", func() error { return api.Get(t.Context(), key, test.object) })
			before := test.object.DeepCopyObject()

			runtime := minimal(where, test.runtime)
			create(t, runtime)
			t.Cleanup(func() { _ = api.Delete(t.Context(), runtime) })
			condition := waitCondition(t, where, test.runtime, v1alpha1.ConditionDegraded, metav1.ConditionTrue, "ReconciliationFailed")
			if !strings.Contains(condition.Message, test.message) || !strings.Contains(condition.Message, "Rename the TrussiumRuntime") {
				t.Errorf("the message neither names the object nor the way out: %s", condition.Message)
			}

			after := test.object
			if err := api.Get(t.Context(), key, after); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("the object of others was touched (-before +after):\n%s", diff)
			}
			if err := api.Delete(t.Context(), runtime); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestObjectsHandedOverByLabelAreAdopted(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "rt",
		Labels: map[string]string{
			"app.kubernetes.io/managed-by": "trussium-operator",
			"app.kubernetes.io/instance":   "rt",
		},
	}})
	create(t, minimal(namespace, "rt"))
	deployment(t, namespace, "rt")
	configMap := get(t, namespace, "rt", &corev1.ConfigMap{})
	if !metav1.IsControlledBy(configMap, get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{})) {
		t.Errorf("the ConfigMap is not adopted: %v", configMap.OwnerReferences)
	}
}

func TestARuntimeCreatedAgainWaitsForTheOldObjectsToGo(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	first := minimal(namespace, "rt")
	create(t, first)
	old := deployment(t, namespace, "rt")
	if err := api.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	create(t, minimal(namespace, "rt"))
	operatortest.Eventually(t, "the new Deployment exists", func() error {
		if live := deployment(t, namespace, "rt"); live.UID == old.UID {
			return errorf("still the old one")
		}
		return nil
	})
	for _, reason := range reasons(t, namespace, "rt") {
		if reason == "ReconciliationFailed" {
			t.Error("objects on their way out were reported as a failure")
		}
	}
}

func defaultNamespaceUID(t *testing.T) (uid types.UID) {
	t.Helper()
	return get(t, "", "default", &corev1.Namespace{}).UID
}
