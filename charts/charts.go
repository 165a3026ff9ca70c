// Package charts carries the CustomResourceDefinitions of the operator's chart,
// so that the operator binary can install the ones that it was built with.
package charts

import "embed"

// CRDs holds the generated CustomResourceDefinitions under CRDDir.
//
//go:embed trussium-operator/crds/*.yaml
var CRDs embed.FS

// CRDDir is the folder of the CustomResourceDefinitions in CRDs.
const CRDDir = "trussium-operator/crds"
