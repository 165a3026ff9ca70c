// Package check holds what a cell must prove, one file a check. A check sees a cluster only
// through an API client and through observations made earlier; it knows nothing about how the
// cluster came to be, nor about Helm.
//
// A check returns a Result when it could look, whatever it saw, and an error when it could
// not look: the latter says nothing about the product.
package check

import (
	"fmt"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// Check names a claim. A passed check makes its claim true for the cell.
type Check struct {
	ID    string
	Claim string
}

// Result is what a check saw.
type Result struct {
	// Failures are the ways in which the claim does not hold; none means that it holds.
	Failures []string
	// Seen are the facts that the verdict rests on.
	Seen []string
}

// Fail adds a way in which the claim does not hold.
func (r *Result) Fail(format string, args ...any) {
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

// See adds a fact that the verdict rests on.
func (r *Result) See(format string, args ...any) {
	r.Seen = append(r.Seen, fmt.Sprintf(format, args...))
}

// Add takes over what another result holds.
func (r *Result) Add(other Result) {
	r.Failures = append(r.Failures, other.Failures...)
	r.Seen = append(r.Seen, other.Seen...)
}

// Outcome is passed when nothing failed. A check that saw nothing at all has proven
// nothing and fails.
func (r *Result) Outcome() evidence.Outcome {
	if len(r.Failures) == 0 && len(r.Seen) > 0 {
		return evidence.Passed
	}
	return evidence.Failed
}

// Reason is the first failure, or why an empty result is none.
func (r *Result) Reason() string {
	switch {
	case len(r.Failures) > 0:
		return r.Failures[0]
	case len(r.Seen) == 0:
		return "the check saw nothing to judge by"
	default:
		return ""
	}
}
