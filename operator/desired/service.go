package desired

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// PortName names the runtime's port on the container and on the Service.
const PortName = "http"

// Service gives the runtime a stable address. Cluster IP, node port and IP
// families are assigned by the API server and stay its own.
func Service(runtime *v1alpha1.TrussiumRuntime) *corev1ac.ServiceApplyConfiguration {
	port := corev1ac.ServicePort().
		WithName(PortName).
		WithProtocol(corev1.ProtocolTCP).
		WithPort(runtime.Spec.Service.Port).
		WithTargetPort(intstr.FromString(PortName))

	return corev1ac.Service(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithSpec(corev1ac.ServiceSpec().
			WithType(runtime.Spec.Service.Type).
			WithSelector(Selector(runtime.Name)).
			WithPorts(port))
}
