package desired

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// HasNetworkPolicy says that the runtime is to have a NetworkPolicy.
func HasNetworkPolicy(runtime *v1alpha1.TrussiumRuntime) bool {
	return runtime.Spec.NetworkPolicy != nil && runtime.Spec.NetworkPolicy.Enabled
}

// NetworkPolicy lets only the listed clients reach the runtime's port. It says
// nothing about egress: the runtime must reach DNS and its provider. An error
// means that a selector can't be carried over.
func NetworkPolicy(runtime *v1alpha1.TrussiumRuntime) (*networkingv1ac.NetworkPolicyApplyConfiguration, error) {
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(selector(runtime)).
		WithPolicyTypes(networkingv1.PolicyTypeIngress)
	if policy := runtime.Spec.NetworkPolicy; policy != nil {
		for i := range policy.Ingress {
			rule, err := ingressRule(&policy.Ingress[i])
			if err != nil {
				return nil, fmt.Errorf("spec.networkPolicy.ingress[%d]: %w", i, err)
			}
			spec.WithIngress(rule)
		}
	}
	return networkingv1ac.NetworkPolicy(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithSpec(spec), nil
}

func ingressRule(clients *v1alpha1.NetworkPolicyPeer) (*networkingv1ac.NetworkPolicyIngressRuleApplyConfiguration, error) {
	peer := networkingv1ac.NetworkPolicyPeer()
	namespaces, err := convert[*metav1ac.LabelSelectorApplyConfiguration](clients.NamespaceSelector)
	if err != nil {
		return nil, fmt.Errorf("namespaceSelector: %w", err)
	}
	peer.WithNamespaceSelector(namespaces)
	if clients.PodSelector != nil {
		pods, err := convert[*metav1ac.LabelSelectorApplyConfiguration](clients.PodSelector)
		if err != nil {
			return nil, fmt.Errorf("podSelector: %w", err)
		}
		peer.WithPodSelector(pods)
	}
	return networkingv1ac.NetworkPolicyIngressRule().
		WithFrom(peer).
		WithPorts(networkingv1ac.NetworkPolicyPort().
			WithProtocol(corev1.ProtocolTCP).
			WithPort(intstr.FromInt32(ContainerPort))), nil
}
