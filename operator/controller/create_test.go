package controller_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// The files are what published operators have rendered into live clusters: any
// byte that differs restarts every runtime Pod on an operator upgrade.
func TestPodTemplateIsTheOneThatPublishedOperatorsRender(t *testing.T) {
	for manifest, name := range map[string]string{"minimal": "rt", "full": "full"} {
		t.Run(manifest, func(t *testing.T) {
			namespace := newNamespace(t)
			startOperator(t, namespace)
			createManifest(t, namespace, "runtime-"+manifest+".yaml")
			deployment(t, namespace, name)

			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
			get(t, namespace, name, live)
			template, _, err := unstructured.NestedMap(live.Object, "spec", "template")
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(template)
			if err != nil {
				t.Fatal(err)
			}
			published, err := os.ReadFile(filepath.Join("testdata", "pod-template-"+manifest+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			want := published[bytes.Index(published, []byte("metadata:")):]
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the pod template differs from the published one (-published +rendered):\n%s", diff)
			}
		})
	}
}

func TestObjectsOfARuntime(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	createManifest(t, namespace, "runtime-full.yaml")
	live := deployment(t, namespace, "full")
	runtime := get(t, namespace, "full", &v1alpha1.TrussiumRuntime{})

	if got := *live.Spec.ProgressDeadlineSeconds; got != 600 {
		t.Errorf("progressDeadlineSeconds is %d, want 600", got)
	}
	if got := *live.Spec.RevisionHistoryLimit; got != 3 {
		t.Errorf("revisionHistoryLimit is %d, want 3", got)
	}
	if got := live.Spec.Strategy.RollingUpdate; got.MaxUnavailable.IntValue() != 0 || got.MaxSurge.IntValue() != 1 {
		t.Errorf("the rolling update is %+v, want maxUnavailable 0 and maxSurge 1", got)
	}

	service := get(t, namespace, "full", &corev1.Service{})
	if service.Spec.Type != corev1.ServiceTypeNodePort || service.Spec.Ports[0].Port != 8080 {
		t.Errorf("the Service is %+v, want a NodePort on 8080", service.Spec)
	}
	account := get(t, namespace, "full", &corev1.ServiceAccount{})
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("the ServiceAccount mounts its token")
	}
	var budget *policyv1.PodDisruptionBudget
	operatortest.Eventually(t, "the PodDisruptionBudget exists", func() error {
		budget = &policyv1.PodDisruptionBudget{}
		return api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "full"}, budget)
	})
	if budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the PodDisruptionBudget is %+v, want maxUnavailable 1", budget.Spec)
	}

	isTrue, isFalse := true, false
	owner := []metav1.OwnerReference{{
		APIVersion: "runtime.trussium.io/v1alpha1", Kind: "TrussiumRuntime", Name: "full", UID: runtime.UID,
		Controller: &isTrue, BlockOwnerDeletion: &isFalse,
	}}
	labels := map[string]string{
		"app.kubernetes.io/name":       "trussium",
		"app.kubernetes.io/instance":   "full",
		"app.kubernetes.io/component":  "runtime",
		"app.kubernetes.io/managed-by": "trussium-operator",
	}
	configMap := get(t, namespace, "full", &corev1.ConfigMap{})
	for _, object := range []client.Object{configMap, account, service, live, budget} {
		if diff := cmp.Diff(owner, object.GetOwnerReferences()); diff != "" {
			t.Errorf("owner of %T (-want +got):\n%s", object, diff)
		}
		got := object.GetLabels()
		delete(got, desired.LabelAppliedImage)
		if diff := cmp.Diff(labels, got); diff != "" {
			t.Errorf("labels of %T (-want +got):\n%s", object, diff)
		}
	}
}

func TestStatusFollowsTheRollout(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))

	waitCondition(t, namespace, "rt", v1alpha1.ConditionProgressing, metav1.ConditionTrue, "DeploymentGenerationPending")
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	get(t, namespace, "rt", stored)
	for _, field := range []string{"readyReplicas", "availableReplicas"} {
		if count, found, _ := unstructured.NestedInt64(stored.Object, "status", field); !found || count != 0 {
			t.Errorf("status.%s is stored as %d (found: %t), want 0", field, count, found)
		}
	}

	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	runtime := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{})
	want := v1alpha1.TrussiumRuntimeStatus{
		ObservedGeneration:  1,
		ReadyReplicas:       1,
		AvailableReplicas:   1,
		DesiredImage:        "ghcr.io/trussiumhq/trussium:1.27.0",
		CurrentImage:        "ghcr.io/trussiumhq/trussium:1.27.0",
		LastSuccessfulImage: "ghcr.io/trussiumhq/trussium:1.27.0",
		Endpoint:            "http://rt." + namespace + ".svc.cluster.local:9000",
	}
	got := runtime.Status
	got.Conditions = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	zero := int32(0)
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Replicas = &zero })
	operatortest.Eventually(t, "the Deployment is scaled", func() error {
		if live := deployment(t, namespace, "rt"); *live.Spec.Replicas != 0 {
			return errorf("replicas are %d", *live.Spec.Replicas)
		}
		return nil
	})
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "ScaledToZero")

	operatortest.Eventually(t, "the events tell the story once", func() error {
		want := []string{"RuntimeProgressing", "RuntimeReady", "RuntimeProgressing", "RuntimeScaledToZero"}
		if got := reasons(t, namespace, "rt"); !slices.Equal(got, want) {
			return errorf("events %v, want %v", got, want)
		}
		return nil
	})
}

func TestNothingIsWrittenOrReadWhenNothingChanges(t *testing.T) {
	namespace := newNamespace(t)
	first := startOperator(t, namespace)
	createManifest(t, namespace, "runtime-full.yaml")
	create(t, minimal(namespace, "rt"))
	for _, name := range []string{"full", "rt"} {
		completeRollout(t, namespace, name)
		waitCondition(t, namespace, name, v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	}
	first.settle(t)
	told := reasons(t, namespace, "full")

	// Something that concerns nobody: a label on the Deployment wakes the runtime.
	first.forget()
	live := deployment(t, namespace, "full")
	change(t, live, func(object *appsDeployment) { object.Labels["example.com/touched"] = "yes" })
	first.settle(t)
	if requests := first.seen(); len(requests) > 0 {
		t.Errorf("an unchanged runtime cost requests: %s", strings.Join(requests, ", "))
	}

	first.stop()
	second := startOperator(t, namespace)
	second.settle(t)
	if requests := second.seen(); len(requests) > 0 {
		t.Errorf("a restarted operator sent requests: %s", strings.Join(requests, ", "))
	}
	if got := reasons(t, namespace, "full"); !slices.Equal(got, told) {
		t.Errorf("a restarted operator told events: %v after %v", got, told)
	}
}
