package e2e

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
	"github.com/trussiumhq/trussium-operator/operator/status"
)

// startRuntime makes a runtime where Pod Security is restricted, and waits until the operator
// says that it is Ready.
func startRuntime(t *testing.T) client.ObjectKey {
	t.Helper()
	inNamespace := operatortest.Namespace(t, api)
	restrict(t, inNamespace)
	key := createRuntime(t, inNamespace)
	operatortest.WaitCondition(t, api, key, v1alpha1.ConditionReady, metav1.ConditionTrue, status.ReasonRuntimeReady)
	return key
}

func createRuntime(t *testing.T, inNamespace string) client.ObjectKey {
	t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: inNamespace, Name: "private-ai"},
		Spec: v1alpha1.TrussiumRuntimeSpec{
			Image:    v1alpha1.ImageSpec{Repository: artifact.RuntimeRepository, Tag: runtimeTag},
			Provider: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOllama, Model: "llama3.2"},
		},
	}
	if err := api.Create(t.Context(), runtime); err != nil {
		t.Fatalf("create a runtime: %v", err)
	}
	return client.ObjectKeyFromObject(runtime)
}

// alive waits until the operator has worked on a change of the runtime.
func alive(t *testing.T, key client.ObjectKey) {
	t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	operatortest.Change(t, api, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Provider.Model += "x" })
	operatortest.Eventually(t, "the operator has worked on the runtime", func() error {
		if err := api.Get(t.Context(), key, runtime); err != nil {
			return err
		}
		if runtime.Status.ObservedGeneration != runtime.Generation {
			return fmt.Errorf("observed is generation %d of %d", runtime.Status.ObservedGeneration, runtime.Generation)
		}
		return nil
	})
}

// identity is what must not change under a runtime while its operator is replaced.
type identity struct {
	Definition, Runtime, Deployment types.UID
	Generation                      int64
	Template                        corev1.PodTemplateSpec
}

func identify(t *testing.T, key client.ObjectKey) identity {
	t.Helper()
	definition, runtime, workload := &apiextensionsv1.CustomResourceDefinition{}, &v1alpha1.TrussiumRuntime{}, &appsv1.Deployment{}
	read(t, client.ObjectKey{Name: crdName}, definition)
	read(t, key, runtime)
	read(t, key, workload)
	return identity{definition.UID, runtime.UID, workload.UID, workload.Generation, workload.Spec.Template}
}

func read(t *testing.T, key client.ObjectKey, object client.Object) {
	t.Helper()
	if err := api.Get(t.Context(), key, object); err != nil {
		t.Fatalf("read %T %s: %v", object, key, err)
	}
}

// operatorDeployment is the Deployment as both ways of installing name it.
func operatorDeployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	found := &appsv1.Deployment{}
	read(t, client.ObjectKey{Namespace: namespace, Name: deployment}, found)
	return found
}
