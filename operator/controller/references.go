package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// secretIndex is the field index from Secret names to the runtimes that refer to them.
const secretIndex = "spec.secretNames"

// referencedSecrets are the names of the Secrets that the runtime refers to,
// sorted, each once.
func referencedSecrets(runtime *v1alpha1.TrussiumRuntime) []string {
	var names []string
	if reference := runtime.Spec.Provider.CredentialsSecretRef; reference != nil {
		names = append(names, reference.Name)
	}
	for _, reference := range runtime.Spec.ImagePullSecrets {
		names = append(names, reference.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// secretMetadata asks for a Secret without its data: no Secret value ever enters
// the operator.
func secretMetadata() *metav1.PartialObjectMetadata {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return secret
}

// missingSecrets are the referenced Secrets that do not exist, sorted. The error
// says that their existence could not be checked.
func (r *Reconciler) missingSecrets(ctx context.Context, runtime *v1alpha1.TrussiumRuntime) ([]string, error) {
	var missing []string
	for _, name := range referencedSecrets(runtime) {
		key := types.NamespacedName{Namespace: runtime.Namespace, Name: name}
		err := r.Client.Get(ctx, key, secretMetadata())
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("check Secret %s: %w", key, err)
		}
	}
	return missing, nil
}

// indexSecrets is the index function behind secretIndex.
func indexSecrets(object client.Object) []string {
	return referencedSecrets(object.(*v1alpha1.TrussiumRuntime))
}

// runtimesOfSecret wakes exactly the runtimes that refer to the Secret.
func (r *Reconciler) runtimesOfSecret(ctx context.Context, secret client.Object) []reconcile.Request {
	var runtimes v1alpha1.TrussiumRuntimeList
	err := r.Client.List(ctx, &runtimes,
		client.InNamespace(secret.GetNamespace()),
		client.MatchingFields{secretIndex: secret.GetName()})
	if err != nil {
		// The list comes from the cache of a watched kind: it fails only while stopping.
		return nil
	}
	var requests []reconcile.Request
	for i := range runtimes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&runtimes.Items[i])})
	}
	return requests
}
