package controller_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/controller"
)

func TestMissingSecretsBlockUntilTheyExist(t *testing.T) {
	namespace := newNamespace(t)
	running := startOperator(t, namespace)
	waiting := minimal(namespace, "waiting")
	waiting.Spec.Provider.CredentialsSecretRef = &v1alpha1.SecretKeyReference{Name: "provider", Key: "key"}
	waiting.Spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "registry"}, {Name: "another"}}
	create(t, waiting)
	create(t, minimal(namespace, "unrelated"))

	valid := waitCondition(t, namespace, "waiting", v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, "SecretNotFound")
	if !strings.Contains(valid.Message, "another, provider, registry") {
		t.Errorf("the message does not name all missing Secrets in order: %s", valid.Message)
	}
	waitCondition(t, namespace, "waiting", v1alpha1.ConditionDegraded, metav1.ConditionTrue, "ConfigurationInvalid")
	for _, object := range []client.Object{&corev1.ConfigMap{}, &corev1.ServiceAccount{}, &corev1.Service{}, &appsv1.Deployment{}} {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "waiting"}, object)
		if !apierrors.IsNotFound(err) {
			t.Errorf("%T exists while Secrets are missing (%v)", object, err)
		}
	}
	deployment(t, namespace, "unrelated")
	running.settle(t)
	running.forget()

	for _, name := range []string{"another", "provider", "registry"} {
		create(t, &corev1.Secret{ObjectMeta: metaOf(namespace, name), StringData: map[string]string{"key": "hidden-value"}})
	}
	deployment(t, namespace, "waiting")
	waitCondition(t, namespace, "waiting", v1alpha1.ConditionConfigurationValid, metav1.ConditionTrue, "ReferencesResolved")
	running.settle(t)
	for _, request := range running.seen() {
		if strings.Contains(request, "/unrelated") {
			t.Errorf("a runtime that refers to none of the Secrets was woken: %s", request)
		}
	}
	if told := reasons(t, namespace, "waiting"); !slices.Equal(told, []string{"ConfigurationInvalid", "RuntimeRecovered", "RuntimeProgressing"}) {
		t.Errorf("events %v", told)
	}

	// A Secret's value rolls nothing; its deletion blocks again, and the Pods stay.
	completeRollout(t, namespace, "waiting")
	waitCondition(t, namespace, "waiting", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	running.settle(t)
	running.forget()
	secret := get(t, namespace, "provider", &corev1.Secret{})
	change(t, secret, func(secret *corev1.Secret) { secret.Data["key"] = []byte("another-value") })
	running.settle(t)
	if requests := running.seen(); len(requests) > 0 {
		t.Errorf("a Secret's new value cost requests: %v", requests)
	}
	if err := api.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	waitCondition(t, namespace, "waiting", v1alpha1.ConditionReady, metav1.ConditionFalse, "ConfigurationInvalid")
	waitCondition(t, namespace, "waiting", v1alpha1.ConditionAvailable, metav1.ConditionTrue, "RuntimeAvailable")
	runtime := get(t, namespace, "waiting", &v1alpha1.TrussiumRuntime{})
	if runtime.Status.ReadyReplicas != 1 || runtime.Status.CurrentImage == "" || runtime.Status.Endpoint == "" {
		t.Errorf("what runs is forgotten: %+v", runtime.Status)
	}
}

// A Secret that comes back before the operator has seen its own last status finds a view
// in which there is nothing to write.
func TestSecretThatComesBackBeforeTheStatusIsSeen(t *testing.T) {
	namespace := newNamespace(t)
	slow := &wire{namespace: namespace}
	startOperator(t, namespace, slow.connect)
	secret := func() *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "provider"}}
	}
	create(t, secret())
	runtime := minimal(namespace, "rt")
	runtime.Spec.Provider.CredentialsSecretRef = &v1alpha1.SecretKeyReference{Name: "provider", Key: "key"}
	create(t, runtime)
	waitCondition(t, namespace, "rt", v1alpha1.ConditionConfigurationValid, metav1.ConditionTrue, "ReferencesResolved")

	slow.hold("trussiumruntimes", 10*holdBack)
	if err := api.Delete(t.Context(), secret()); err != nil {
		t.Fatal(err)
	}
	waitCondition(t, namespace, "rt", v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, "SecretNotFound")
	create(t, secret())
	waitCondition(t, namespace, "rt", v1alpha1.ConditionConfigurationValid, metav1.ConditionTrue, "ReferencesResolved")
}

// kubectl apply copies what it applies, a Secret's values included, into an annotation.
func TestAnnotationsOfSecretsAreNotKept(t *testing.T) {
	namespace := newNamespace(t)
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "applied", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "a value"},
	}})
	options := controller.CacheOptions()
	options.Scheme = api.Scheme()
	options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	kept, err := cache.New(restConfig, options)
	if err != nil {
		t.Fatal(err)
	}
	go kept.Start(t.Context())
	if !kept.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not start")
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := kept.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "applied"}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.Annotations) > 0 {
		t.Errorf("the cache keeps the annotations %v", secret.Annotations)
	}
}
