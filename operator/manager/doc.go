// Package manager runs the operator: its configuration, caches, health, metrics
// and leader election around the controller.
//
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
package manager

//go:generate go tool -modfile=../../tools/generators/go.mod controller-gen rbac:roleName=metrics-auth,fileName=metrics-auth-role.yaml paths=. output:rbac:dir=../../charts/trussium-operator/files
