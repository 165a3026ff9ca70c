package desired

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// AnnotationPullSecrets remembers, on the ServiceAccount, which of its pull
// secrets are the operator's, comma separated. The list is atomic for
// server-side apply, so that field ownership can't tell them from those that a
// platform adds (OpenShift does, to every ServiceAccount).
const AnnotationPullSecrets = "runtime.trussium.io/image-pull-secrets"

// ServiceAccount is the identity of the runtime Pods. It has no rights and its
// token is not mounted. live is the existing ServiceAccount, or nil; pull secrets
// that others added to it are kept. An error means that live's field ownership
// can't be read.
func ServiceAccount(runtime *v1alpha1.TrussiumRuntime, live *corev1.ServiceAccount) (*corev1ac.ServiceAccountApplyConfiguration, error) {
	account := corev1ac.ServiceAccount(runtime.Name, runtime.Namespace).
		WithLabels(Labels(runtime.Name)).
		WithOwnerReferences(ownerReference(runtime)).
		WithAutomountServiceAccountToken(false)

	var ours []string
	for _, reference := range runtime.Spec.ImagePullSecrets {
		ours = append(ours, reference.Name)
	}
	if len(ours) > 0 {
		account.WithAnnotations(map[string]string{AnnotationPullSecrets: strings.Join(ours, ",")})
	}

	list, err := pullSecrets(live, ours)
	if err != nil {
		return nil, err
	}
	for _, name := range list {
		account.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	return account, nil
}

// pullSecrets is the whole list to apply: ours first, then those that others
// added. It is empty when the operator need not own the list.
func pullSecrets(live *corev1.ServiceAccount, ours []string) ([]string, error) {
	if live == nil {
		return ours, nil
	}
	owned, err := corev1ac.ExtractServiceAccount(live, FieldManager)
	if err != nil {
		return nil, fmt.Errorf("read the field ownership of ServiceAccount %s/%s: %w", live.Namespace, live.Name, err)
	}

	earlier := strings.Split(live.Annotations[AnnotationPullSecrets], ",")
	var foreign []string
	dropped := false
	for _, reference := range live.ImagePullSecrets {
		switch {
		case slices.Contains(ours, reference.Name):
		case slices.Contains(earlier, reference.Name):
			dropped = true
		default:
			foreign = append(foreign, reference.Name)
		}
	}
	// Leaving out a list that the operator owns would delete what others added.
	if len(ours) == 0 && !dropped && len(owned.ImagePullSecrets) == 0 {
		return nil, nil
	}
	return slices.Concat(ours, foreign), nil
}
