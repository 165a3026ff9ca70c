// Package controller reconciles TrussiumRuntimes: gather what exists, decide what
// must change, apply it, report what was seen.
//
// It reads from caches, writes with server-side apply, and writes nothing when
// nothing would change. The rights below are the source of the chart's role.
//
// +kubebuilder:rbac:groups="",resources=configmaps;serviceaccounts;services,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=create;delete;get;list;patch;update;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=runtime.trussium.io,resources=trussiumruntimes,verbs=get;list;watch
// +kubebuilder:rbac:groups=runtime.trussium.io,resources=trussiumruntimes/status,verbs=get;patch;update
package controller

//go:generate go tool -modfile=../../tools/generators/go.mod controller-gen rbac:roleName=manager,fileName=manager-role.yaml paths=. output:rbac:dir=../../charts/trussium-operator/files
