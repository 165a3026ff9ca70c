package controller_test

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

type appsDeployment = appsv1.Deployment

var errorf = fmt.Errorf

// What somebody else says of a runtime is corrected as the spec of its objects is.
func TestForeignConditionIsCorrected(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	operatortest.Eventually(t, "the condition is written", func() error {
		runtime := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{})
		meta.FindStatusCondition(runtime.Status.Conditions, v1alpha1.ConditionReady).Reason = "Foreign"
		return api.Status().Update(t.Context(), runtime)
	})
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
}

func TestDriftIsRepairedAndDeletedObjectsComeBack(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))
	deployment(t, namespace, "rt")

	tests := []struct {
		object client.Object
		spoil  func(client.Object)
		intact func(client.Object) bool
	}{
		{
			object: &corev1.ConfigMap{},
			spoil:  func(o client.Object) { o.(*corev1.ConfigMap).Data["TRUSSIUM_ENVIRONMENT"] = "development" },
			intact: func(o client.Object) bool {
				return o.(*corev1.ConfigMap).Data["TRUSSIUM_ENVIRONMENT"] == "production"
			},
		},
		{
			object: &corev1.ServiceAccount{},
			spoil: func(o client.Object) {
				mount := true
				o.(*corev1.ServiceAccount).AutomountServiceAccountToken = &mount
			},
			intact: func(o client.Object) bool { return !*o.(*corev1.ServiceAccount).AutomountServiceAccountToken },
		},
		{
			object: &corev1.Service{},
			spoil:  func(o client.Object) { o.(*corev1.Service).Spec.Ports[0].Port = 1234 },
			intact: func(o client.Object) bool {
				ports := o.(*corev1.Service).Spec.Ports
				return len(ports) == 1 && ports[0].Port == 9000
			},
		},
		{
			object: &appsv1.Deployment{},
			spoil: func(o client.Object) {
				container := &o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
				container.Image = "other"
				container.Ports[0].ContainerPort = 1234
			},
			intact: func(o client.Object) bool {
				container := o.(*appsv1.Deployment).Spec.Template.Spec.Containers[0]
				return container.Image == "ghcr.io/trussiumhq/trussium:1.27.0" &&
					len(container.Ports) == 1 && container.Ports[0].ContainerPort == 9000
			},
		},
		{
			object: &policyv1.PodDisruptionBudget{},
			spoil: func(o client.Object) {
				other := intstr.FromInt32(3)
				o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable = &other
			},
			intact: func(o client.Object) bool {
				return o.(*policyv1.PodDisruptionBudget).Spec.MaxUnavailable.IntValue() == 1
			},
		},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%T", test.object), func(t *testing.T) {
			key := client.ObjectKey{Namespace: namespace, Name: "rt"}
			operatortest.Eventually(t, "the object exists", func() error { return api.Get(t.Context(), key, test.object) })

			change(t, test.object, test.spoil, client.FieldOwner("somebody"))
			operatortest.Eventually(t, "the field is restored", func() error {
				if err := api.Get(t.Context(), key, test.object); err != nil {
					return err
				}
				if !test.intact(test.object) {
					return errors.New("still spoilt")
				}
				return nil
			})

			for _, label := range []string{"app.kubernetes.io/component", "app.kubernetes.io/managed-by"} {
				change(t, test.object, func(o client.Object) {
					labels := o.GetLabels()
					delete(labels, label)
					o.SetLabels(labels)
				}, client.FieldOwner("somebody"))
				operatortest.Eventually(t, "the label "+label+" is restored", func() error {
					if err := api.Get(t.Context(), key, test.object); err != nil {
						return err
					}
					if test.object.GetLabels()[label] == "" {
						return fmt.Errorf("labels %v", test.object.GetLabels())
					}
					return nil
				})
			}

			change(t, test.object, func(o client.Object) { o.SetOwnerReferences(nil) }, client.FieldOwner("somebody"))
			operatortest.Eventually(t, "the owner reference is restored", func() error {
				if err := api.Get(t.Context(), key, test.object); err != nil {
					return err
				}
				if len(test.object.GetOwnerReferences()) != 1 {
					return errors.New("no owner")
				}
				return nil
			})

			uid := test.object.GetUID()
			if err := api.Delete(t.Context(), test.object); err != nil {
				t.Fatal(err)
			}
			operatortest.Eventually(t, "the object is created again", func() error {
				if err := api.Get(t.Context(), key, test.object); err != nil {
					return err
				}
				if test.object.GetUID() == uid {
					return errors.New("still the deleted one")
				}
				return nil
			})
		})
	}
}

func TestForeignFieldsSurvive(t *testing.T) {
	namespace := newNamespace(t)
	running := startOperator(t, namespace)
	create(t, &corev1.Secret{ObjectMeta: metaOf(namespace, "ours")})
	runtime := minimal(namespace, "rt")
	runtime.Spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "ours"}}
	create(t, runtime)
	live := deployment(t, namespace, "rt")
	running.settle(t)

	// What `kubectl rollout restart` and a mesh do.
	restart := []byte(`{"metadata":{"labels":{"example.com/team":"blue"}},"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`)
	if err := api.Patch(t.Context(), live, client.RawPatch(types.StrategicMergePatchType, restart), client.FieldOwner("kubectl-rollout")); err != nil {
		t.Fatal(err)
	}
	// What OpenShift does to every ServiceAccount.
	account := get(t, namespace, "rt", &corev1.ServiceAccount{})
	change(t, account, func(account *corev1.ServiceAccount) {
		account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: "platform"})
	}, client.FieldOwner("openshift-controller-manager"))
	running.settle(t)

	change(t, get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{}), func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Image.Tag = "1.30.0"
		runtime.Spec.ImagePullSecrets = nil
	})
	operatortest.Eventually(t, "the new image is applied", func() error {
		if image := deployment(t, namespace, "rt").Spec.Template.Spec.Containers[0].Image; image != "ghcr.io/trussiumhq/trussium:1.30.0" {
			return fmt.Errorf("image %s", image)
		}
		return nil
	})
	running.settle(t)

	live = deployment(t, namespace, "rt")
	if live.Labels["example.com/team"] != "blue" {
		t.Errorf("the foreign label is gone: %v", live.Labels)
	}
	if live.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Errorf("the restart is undone: %v", live.Spec.Template.Annotations)
	}
	account = get(t, namespace, "rt", &corev1.ServiceAccount{})
	if got := account.ImagePullSecrets; len(got) != 1 || got[0].Name != "platform" {
		t.Errorf("pull secrets are %v, want the platform's only", got)
	}
	running.forget()
	change(t, account, func(account *corev1.ServiceAccount) { account.Labels["example.com/touched"] = "yes" })
	running.settle(t)
	if got := get(t, namespace, "rt", &corev1.ServiceAccount{}).ImagePullSecrets; len(got) != 1 || got[0].Name != "platform" {
		t.Errorf("pull secrets are %v after another reconciliation, want the platform's only", got)
	}
	if requests := running.seen(); len(requests) > 0 {
		t.Errorf("keeping foreign fields costs requests: %v", requests)
	}
}
