package controller_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// setTag asks for another image, and waits until it is applied.
func setTag(t *testing.T, namespace, name, tag string) {
	t.Helper()
	change(t, get(t, namespace, name, &v1alpha1.TrussiumRuntime{}), func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Image.Tag = tag
	})
	want := "ghcr.io/trussiumhq/trussium:" + tag
	operatortest.Eventually(t, "the image is applied", func() error {
		if live := deployment(t, namespace, name); !desired.Carries(live, want) {
			return fmt.Errorf("the template has image %s, want %s", desired.ContainerImage(live), want)
		}
		return nil
	})
}

func upgradeReasons(t *testing.T, namespace, name string) []string {
	t.Helper()
	return slices.DeleteFunc(reasons(t, namespace, name), func(reason string) bool {
		return !strings.HasPrefix(reason, "RuntimeUpgrade")
	})
}

func TestImageUpgradeFailureAndRollback(t *testing.T) {
	namespace := newNamespace(t)
	running := startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionFalse, "NoUpgrade")

	setTag(t, namespace, "rt", "1.30.0")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionTrue, "UpgradeInProgress")
	running.stop() // the operator itself may be replaced in the middle
	running = startOperator(t, namespace)
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionFalse, "UpgradeComplete")

	setTag(t, namespace, "rt", "9.9.9")
	setDeploymentStatus(t, namespace, "rt", func(deployment *appsv1.Deployment) {
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation,
			Replicas:           2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded",
				Message: "it took too long", LastUpdateTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
		}
	})
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionFalse, "UpgradeFailed")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionDegraded, metav1.ConditionTrue, "ProgressDeadlineExceeded")
	runtime := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{})
	if got := runtime.Status.LastSuccessfulImage; got != "ghcr.io/trussiumhq/trussium:1.30.0" {
		t.Errorf("last successful image %s after a failure", got)
	}

	setTag(t, namespace, "rt", "1.30.0")
	// The Deployment controller has seen the old image and not yet withdrawn its verdict on the failed one.
	setDeploymentStatus(t, namespace, "rt", func(deployment *appsv1.Deployment) {
		deployment.Status.ObservedGeneration = deployment.Generation
	})
	waitCondition(t, namespace, "rt", v1alpha1.ConditionDegraded, metav1.ConditionFalse, "AsExpected")
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionFalse, "NoUpgrade")

	want := []string{
		"RuntimeUpgradeStarted", "RuntimeUpgradeCompleted",
		"RuntimeUpgradeStarted", "RuntimeUpgradeFailed",
	}
	operatortest.Eventually(t, "the events tell both upgrades once", func() error {
		if got := upgradeReasons(t, namespace, "rt"); !slices.Equal(got, want) {
			return fmt.Errorf("events %v, want %v", got, want)
		}
		return nil
	})
	running.settle(t)
	running.forget()
	change(t, deployment(t, namespace, "rt"), func(object *appsv1.Deployment) { object.Labels["example.com/touched"] = "yes" })
	running.settle(t)
	if requests := running.seen(); len(requests) > 0 {
		t.Errorf("after a rollback an unchanged runtime costs requests: %v", requests)
	}
}

// The answer to a status write decides whether its events are told, so a stop must wait for it.
func TestAStopDuringAStatusWriteLosesNoEvent(t *testing.T) {
	namespace := newNamespace(t)
	var hold atomic.Bool
	answered := make(chan struct{})
	running := startOperator(t, namespace, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if hold.Load() && request.Method == http.MethodPatch && strings.HasSuffix(request.URL.Path, "/trussiumruntimes/rt/status") {
				select {
				case <-answered:
				case <-request.Context().Done():
					return nil, request.Context().Err()
				}
			}
			return response, err
		})
	})
	create(t, minimal(namespace, "rt"))
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
	running.settle(t)

	hold.Store(true)
	setTag(t, namespace, "rt", "1.30.0")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionTrue, "UpgradeInProgress")
	stopped := make(chan struct{})
	go func() { defer close(stopped); running.stop() }()
	select {
	case <-stopped:
		t.Error("the operator ended without waiting for the answer to its status write")
	case <-time.After(quiet):
	}
	close(answered)
	<-stopped
	if got, want := upgradeReasons(t, namespace, "rt"), []string{"RuntimeUpgradeStarted"}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
}

// Policies that replace tags by digests are common. The operator must neither
// fight them nor wait for a tag that will never show up.
func TestAWebhookThatPinsTagsIsNoDrift(t *testing.T) {
	namespace := newNamespace(t)
	pinTags(t, namespace)
	running := startOperator(t, namespace)
	create(t, minimal(namespace, "rt"))
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")

	setTag(t, namespace, "rt", "1.30.0")
	completeRollout(t, namespace, "rt")
	waitCondition(t, namespace, "rt", v1alpha1.ConditionUpgrading, metav1.ConditionFalse, "UpgradeComplete")
	runtime := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{})
	if runtime.Status.LastSuccessfulImage != "ghcr.io/trussiumhq/trussium:1.30.0" ||
		runtime.Status.CurrentImage != pinned("ghcr.io/trussiumhq/trussium:1.30.0") {
		t.Errorf("status %+v", runtime.Status)
	}

	running.settle(t)
	running.forget()
	change(t, deployment(t, namespace, "rt"), func(object *appsv1.Deployment) { object.Labels["example.com/touched"] = "yes" })
	running.settle(t)
	if requests := running.seen(); len(requests) > 0 {
		t.Errorf("a pinned image costs requests when nothing changes: %v", requests)
	}

	// Somebody who sets an image is still corrected.
	change(t, deployment(t, namespace, "rt"), func(object *appsv1.Deployment) {
		object.Spec.Template.Spec.Containers[0].Image = "elsewhere:1"
	}, client.FieldOwner("somebody"))
	operatortest.Eventually(t, "the image is restored", func() error {
		if got := desired.ContainerImage(deployment(t, namespace, "rt")); got != pinned("ghcr.io/trussiumhq/trussium:1.30.0") {
			return fmt.Errorf("image %s", got)
		}
		return nil
	})
}

// pinned is what the webhook makes of an image with a tag.
func pinned(image string) string {
	return fmt.Sprintf("%s@sha256:%064x", image[:strings.LastIndex(image, ":")], len(image))
}

// pinTags runs an admission webhook for the Deployments of a namespace.
func pinTags(t *testing.T, namespace string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		var review admissionv1.AdmissionReview
		var deployment appsv1.Deployment
		if err := json.NewDecoder(request.Body).Decode(&review); err != nil {
			t.Error(err)
			return
		}
		if err := json.Unmarshal(review.Request.Object.Raw, &deployment); err != nil {
			t.Error(err)
			return
		}
		answer := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if image := desired.ContainerImage(&deployment); !strings.Contains(image, "@") {
			kind := admissionv1.PatchTypeJSONPatch
			answer.PatchType = &kind
			answer.Patch = fmt.Appendf(nil, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, pinned(image))
		}
		review.Response = answer
		if err := json.NewEncoder(response).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)

	fail, none := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "pin.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      &server.URL,
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
			FailurePolicy:           &fail,
			SideEffects:             &none,
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	create(t, hook)
	t.Cleanup(func() {
		if err := api.Delete(context.Background(), hook); err != nil {
			t.Errorf("remove the webhook: %v", err)
		}
	})
	// The API server takes up a webhook a moment after it is stored.
	operatortest.Eventually(t, "the webhook is called", func() error {
		probe := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "probe"}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "probe"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: desired.ContainerName, Image: "probe:1"}}},
				},
			},
		}
		if err := api.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if image := desired.ContainerImage(probe); image != pinned("probe:1") {
			return fmt.Errorf("image %s", image)
		}
		return nil
	})
}
