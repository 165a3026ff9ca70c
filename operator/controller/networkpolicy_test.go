package controller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

func TestTheNetworkPolicyFollowsTheSpec(t *testing.T) {
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	runtime := minimal(namespace, "rt")
	create(t, runtime)
	deployment(t, namespace, "rt")
	operator.settle(t)
	key := client.ObjectKeyFromObject(runtime)
	policy := &networkingv1.NetworkPolicy{}
	if err := api.Get(t.Context(), key, policy); !apierrors.IsNotFound(err) {
		t.Fatalf("there is a NetworkPolicy that nobody asked for: %v", err)
	}

	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Enabled: true, Ingress: []v1alpha1.NetworkPolicyPeer{
			{},
			{
				NamespaceSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "gateway"}},
				PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gateway"}},
			},
		}}
	})
	operatortest.Eventually(t, "the NetworkPolicy exists", func() error { return api.Get(t.Context(), key, policy) })
	tcp, port := corev1.ProtocolTCP, intstr.FromInt32(9000)
	ports := []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: &port}}
	want := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{
			"app.kubernetes.io/name": "trussium", "app.kubernetes.io/instance": "rt",
		}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{
			{Ports: ports, From: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}},
			{Ports: ports, From: []networkingv1.NetworkPolicyPeer{{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "gateway"}},
				PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gateway"}},
			}}},
		},
	}
	if diff := cmp.Diff(want, policy.Spec); diff != "" {
		t.Errorf("the NetworkPolicy (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(policy, runtime) {
		t.Errorf("the NetworkPolicy has the owners %v, want the runtime as its controller", policy.OwnerReferences)
	}

	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.NetworkPolicy.Ingress = runtime.Spec.NetworkPolicy.Ingress[1:]
	})
	operatortest.Eventually(t, "the NetworkPolicy loses a rule", func() error {
		if got := get(t, namespace, "rt", &networkingv1.NetworkPolicy{}); len(got.Spec.Ingress) != 1 {
			return errorf("it has %d", len(got.Spec.Ingress))
		}
		return nil
	})

	operator.settle(t)
	operator.forget()
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.NetworkPolicy.Enabled = false })
	operatortest.Eventually(t, "the NetworkPolicy is gone", func() error {
		if err := api.Get(t.Context(), key, policy); !apierrors.IsNotFound(err) {
			return errorf("reading it: %v", err)
		}
		return nil
	})
	operator.settle(t)
	for _, request := range operator.seen() {
		if strings.HasPrefix(request, "GET ") {
			t.Errorf("switching off cost the read %s", request)
		}
	}
}

// What the runtime does not control is not deleted, whatever its labels say.
func TestTheNetworkPolicyOfSomebodyElseIsNotDeleted(t *testing.T) {
	namespace := newNamespace(t)
	operator := startOperator(t, namespace)
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "rt", Labels: map[string]string{
		"app.kubernetes.io/managed-by": "trussium-operator", "app.kubernetes.io/instance": "rt",
	}}}
	create(t, foreign)
	create(t, minimal(namespace, "rt"))
	deployment(t, namespace, "rt")
	operator.settle(t)
	if got := get(t, namespace, "rt", &networkingv1.NetworkPolicy{}); got.UID != foreign.UID || got.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the NetworkPolicy was touched: %v", got)
	}
}
