package status

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
)

// Observation is everything one reconciliation has learned about a runtime.
type Observation struct {
	// Runtime is the object that was reconciled, with the status it had before.
	Runtime *v1alpha1.TrussiumRuntime

	// MissingSecrets are the names of referenced Secrets that do not exist, sorted.
	MissingSecrets []string
	// ReferenceError is why the referenced Secrets could not be checked.
	ReferenceError error
	// ReconcileError is why the managed objects could not be brought to the
	// desired state. Conflicts, which the next attempt resolves, are none.
	ReconcileError error

	// Deployment is the managed Deployment as it was just applied, or as it was
	// read when nothing had to be applied; nil when there is none.
	Deployment *appsv1.Deployment
	// DeploymentUnknown says that it could not be read, so that what was known
	// before is kept.
	DeploymentUnknown bool

	// ServicePort is the port of the managed Service; 0 when there is none.
	ServicePort int32
	// ServiceUnknown says that it could not be read.
	ServiceUnknown bool
}
