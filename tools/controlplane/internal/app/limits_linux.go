package app

// apiOnlyLimits hold for a cluster without a node.
var apiOnlyLimits = []string{
	"There is no node: pods stay pending, and without arguments for it no controller runs.",
	"ServiceAccount admission is off.",
}
