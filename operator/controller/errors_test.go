package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/manager"

	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// What the API server may answer decides whether users hear of it.
func TestErrors(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	secrets := schema.GroupResource{Resource: "secrets"}
	failPatch := func(failure error) interceptor.Funcs {
		return interceptor.Funcs{
			Patch: func(ctx context.Context, next client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				if _, ok := object.(*corev1.ConfigMap); ok {
					return failure
				}
				return next.Patch(ctx, object, patch, options...)
			},
		}
	}
	failSecret := func(failure error) interceptor.Funcs {
		return interceptor.Funcs{
			Get: func(ctx context.Context, next client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				if _, ok := object.(*metav1.PartialObjectMetadata); ok {
					return failure
				}
				return next.Get(ctx, key, object, options...)
			},
		}
	}
	tests := []struct {
		name  string
		funcs interceptor.Funcs
		// degraded is the reason of Degraded=True; empty when no status is written.
		degraded string
		valid    string
		// retried says that the attempt counts as failed.
		retried bool
		events  []string
	}{
		{
			name:  "a conflict",
			funcs: failPatch(apierrors.NewConflict(configMaps, "rt", errors.New("somebody was faster"))),
		},
		{
			name:  "the object exists already",
			funcs: failPatch(apierrors.NewAlreadyExists(configMaps, "rt")),
		},
		{
			name:    "an overloaded API server",
			funcs:   failPatch(apierrors.NewTooManyRequests("later", 1)),
			retried: true,
		},
		{
			name:     "a missing right",
			funcs:    failPatch(apierrors.NewForbidden(configMaps, "rt", errors.New("no such right"))),
			degraded: "ReconciliationFailed", valid: "ReferencesResolved", retried: true,
			events: []string{"ReconciliationFailed"},
		},
		{
			name:     "Secrets that can't be checked",
			funcs:    failSecret(apierrors.NewForbidden(secrets, "provider", errors.New("no such right"))),
			degraded: "ConfigurationInvalid", valid: "ReferenceCheckFailed", retried: true,
			events: []string{"ConfigurationInvalid"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			namespace := newNamespace(t)
			runtime := minimal(namespace, "rt")
			runtime.Spec.Provider.CredentialsSecretRef = &v1alpha1.SecretKeyReference{Name: "provider", Key: "key"}
			create(t, &corev1.Secret{ObjectMeta: metaOf(namespace, "provider")})
			create(t, runtime)

			scheme, err := manager.NewScheme()
			if err != nil {
				t.Fatal(err)
			}
			direct, err := client.NewWithWatch(restConfig, client.Options{Scheme: scheme})
			if err != nil {
				t.Fatal(err)
			}
			reconciler := controller.Reconciler{Client: interceptor.NewClient(direct, test.funcs), Live: direct, Instance: "test"}
			result, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(runtime)})
			if (err != nil) != test.retried {
				t.Errorf("the attempt ended with %v, want an error: %t", err, test.retried)
			}
			if !test.retried && result.RequeueAfter == 0 {
				t.Error("the attempt is not repeated")
			}

			got := get(t, namespace, "rt", &v1alpha1.TrussiumRuntime{}).Status
			degraded, valid := "", ""
			for _, condition := range got.Conditions {
				switch {
				case condition.Type == v1alpha1.ConditionDegraded && condition.Status == metav1.ConditionTrue:
					degraded = condition.Reason
				case condition.Type == v1alpha1.ConditionConfigurationValid:
					valid = condition.Reason
				}
			}
			if degraded != test.degraded || valid != test.valid {
				t.Errorf("the status says %s", operatortest.Describe(got.Conditions))
			}
			if told := reasons(t, namespace, "rt"); !slices.Equal(told, test.events) {
				t.Errorf("events %v, want %v", told, test.events)
			}
		})
	}
}
