// Package election holds the terms on which the operator's replicas hand over to
// each other.
//
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create;get;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
package election

//go:generate go tool -modfile=../../tools/generators/go.mod controller-gen rbac:roleName=leader-election,fileName=leader-election-role.yaml paths=. output:rbac:dir=../../charts/trussium-operator/files

import (
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// LeaseName names the Lease. Published releases use the same, so that an upgrade
// hands over instead of running two leaders.
const LeaseName = "d4fd4c09.trussium.io"

const (
	// leaseDuration is how long a leader that died keeps the Lease.
	leaseDuration = 15 * time.Second
	// renewDeadline is how long a leader tries to renew before it gives up.
	renewDeadline = 10 * time.Second
	// retryPeriod is the pause between two requests for the Lease. A waiting
	// replica stretches it by up to 2.2, so that a leader that gives the Lease back
	// is followed within two seconds.
	retryPeriod = 750 * time.Millisecond
)

// Configure sets the terms in the manager's options. namespace holds the Lease;
// empty means the Pod's own. Leaving the Lease on stop is safe, because the
// process ends right after the manager.
func Configure(options *ctrl.Options, enabled bool, namespace string) {
	lease, renew, retry := leaseDuration, renewDeadline, retryPeriod
	options.LeaderElection = enabled
	options.LeaderElectionID = LeaseName
	options.LeaderElectionNamespace = namespace
	options.LeaderElectionReleaseOnCancel = true
	options.LeaseDuration = &lease
	options.RenewDeadline = &renew
	options.RetryPeriod = &retry
}
