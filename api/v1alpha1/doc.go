// Package v1alpha1 is the TrussiumRuntime API.
//
// Field names, bounds and defaults are a contract with every object stored by an
// earlier release: a bound may be added only on the field itself, where
// Kubernetes tolerates unchanged old values, and is never tightened elsewhere.
//
// The deep copies, the CustomResourceDefinition with its validation, and the API
// reference are generated from the comments in this package (`make generate`).
//
// +kubebuilder:object:generate=true
// +groupName=runtime.trussium.io
package v1alpha1

//go:generate go tool -modfile=../../tools/generators/go.mod controller-gen object crd paths=. output:crd:dir=../../charts/trussium-operator/crds
//go:generate go tool -modfile=../../tools/generators/go.mod crd-ref-docs --source-path=. --renderer=markdown --config=../../tools/generators/api-reference/config.yaml --templates-dir=../../tools/generators/api-reference --output-path=../../docs/operator/api-reference.md --log-level=ERROR
