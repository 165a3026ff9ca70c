package controller

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/desired"
)

// Ports are keyed by their number. Somebody who changes the number of the
// operator's port thereby makes another entry, which server-side apply neither
// removes nor can add its own beside, because names must be unique. The functions
// below put the list right; ownership is sorted out afterwards.

// operation is one operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// replaceList is a JSON patch that sets a list, provided that live is unchanged.
func replaceList(live client.Object, path string, list any) ([]byte, error) {
	return json.Marshal([]operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: live.GetResourceVersion()},
		{Op: "replace", Path: path, Value: list},
	})
}

// repairService leaves the operator's port alone in the Service. It returns nil
// when no other is there.
func repairService(runtime *v1alpha1.TrussiumRuntime, object client.Object) ([]byte, error) {
	live := object.(*corev1.Service)
	owned, err := corev1ac.ExtractService(live, desired.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("read the field ownership of Service %s/%s: %w", live.Namespace, live.Name, err)
	}
	numbers := map[int32]bool{}
	if owned.Spec != nil {
		for _, port := range owned.Spec.Ports {
			numbers[*port.Port] = true
		}
	}
	foreign := false
	for _, port := range live.Spec.Ports {
		foreign = foreign || !numbers[port.Port]
	}
	if !foreign {
		return nil, nil
	}
	return replaceList(live, "/spec/ports", desired.Service(runtime).Spec.Ports)
}

// repairDeployment leaves one port with the operator's name in the runtime
// container. It returns nil when no other is there.
func repairDeployment(_ *v1alpha1.TrussiumRuntime, object client.Object) ([]byte, error) {
	live := object.(*appsv1.Deployment)
	for i, container := range live.Spec.Template.Spec.Containers {
		if container.Name != desired.ContainerName {
			continue
		}
		for _, port := range container.Ports {
			if port.Name == desired.PortName && port.ContainerPort != desired.ContainerPort {
				path := fmt.Sprintf("/spec/template/spec/containers/%d/ports", i)
				return replaceList(live, path, []*corev1ac.ContainerPortApplyConfiguration{desired.Port()})
			}
		}
	}
	return nil, nil
}
