package claim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// Combination is a combination of the compatibility file and what proves it.
type Combination struct {
	compat.Combination
	// Proofs are the cells that prove it, those with published runtime images and newer Kubernetes versions first.
	// There are none unless the status is tested.
	Proofs []*evidence.Cell
	// Reason says why there are no proofs although the status claims so.
	Reason string
}

// Tested tells whether tables may call the combination tested.
func (c Combination) Tested() bool { return len(c.Proofs) > 0 }

// Simulated tells that every proof rests on a stand-in for the runtime image.
func (c Combination) Simulated() bool {
	return c.Tested() && !slices.ContainsFunc(c.Proofs, func(d *evidence.Cell) bool { return !Simulated(d) })
}

// Steps that show an operator and a runtime image together.
const (
	// stepAliveAfter passes when the upgraded operator carries out changes of runtimes on the baseline image.
	stepAliveAfter = "alive-after"
	// stepRollForward passes when it rolls a runtime to the target image, which then serves.
	stepRollForward = "roll-forward"
)

// Combinations holds the combinations of the file against the evidence, in the order of the file. A combination is
// proven by a cell that upgraded to its operator version, on a Kubernetes version of its range, with its runtime image
// as the baseline or the target. The runtime's own chart is not part of a cell.
func Combinations(file *compat.File, documents []*evidence.Cell) []Combination {
	var all []Combination
	for _, listed := range file.Combinations {
		c := Combination{Combination: listed}
		if listed.Status == compat.StatusTested {
			runtime, _ := file.RuntimeRelease(listed.Runtime) // the loader made sure that it is listed
			c.Proofs, c.Reason = proofs(listed, runtime, documents)
		}
		all = append(all, c)
	}
	return all
}

// closeness orders what stands in the way of a proof: the further a cell got, the more it explains.
type closeness int

const (
	otherOperator closeness = iota
	otherRuntime
	otherKubernetes
	otherImage
	notProven
	notCommitted
	proven
)

func proofs(c compat.Combination, runtime compat.RuntimeRelease, documents []*evidence.Cell) (found []*evidence.Cell, reason string) {
	best := closeness(-1)
	for _, document := range documents {
		near, why := proves(c, runtime, document)
		if near == proven {
			found = append(found, document)
		} else if near > best {
			best, reason = near, why
		}
	}
	if len(found) == 0 {
		return nil, cmp.Or(reason, "there is no evidence")
	}
	slices.SortFunc(found, func(a, b *evidence.Cell) int {
		if Simulated(a) != Simulated(b) {
			if Simulated(a) {
				return 1
			}
			return -1
		}
		return cmp.Or(CompareVersions(b.Cluster.Kubernetes, a.Cluster.Kubernetes), cmp.Compare(a.ID, b.ID))
	})
	return found, ""
}

// proves tells how near a cell comes to a proof of the combination, and what it lacks.
func proves(c compat.Combination, runtime compat.RuntimeRelease, document *evidence.Cell) (closeness, string) {
	if document.To.Version != c.Operator {
		return otherOperator, "no evidence is about operator " + c.Operator
	}
	image, step := document.Runtime.Baseline, stepAliveAfter
	if Tag(image) != runtime.ImageTag {
		image, step = document.Runtime.Target, stepRollForward
	}
	if Tag(image) != runtime.ImageTag {
		return otherRuntime, fmt.Sprintf("no cell with operator %s uses the runtime image %s", c.Operator, runtime.ImageTag)
	}
	if !within(document.Cluster.Kubernetes, c.Kubernetes) {
		return otherKubernetes, fmt.Sprintf("the evidence is of Kubernetes %s, which is not %s", strings.TrimPrefix(document.Cluster.Kubernetes, "v"), c.Kubernetes)
	}
	if difference := imageDifference(runtime, image); difference != "" {
		return otherImage, difference
	}
	if objection := objection(document); objection != "" {
		return notProven, fmt.Sprintf("%s is %s", document.ID, objection)
	}
	if passed := document.Step(step); passed == nil || passed.Outcome != evidence.Passed {
		return notProven, fmt.Sprintf("the step %s of %s did not pass", step, document.ID)
	}
	if !Committed(document) {
		return notCommitted, fmt.Sprintf("the evidence of %s was gathered with changes that were not committed", document.ID)
	}
	return proven, ""
}

// within tells whether the version that an API server reports is in a declared range. What a distribution appends to
// the version does not count.
func within(version, declared string) bool {
	constraint, err := semver.NewConstraint(declared)
	if err != nil {
		return false
	}
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return false
	}
	return constraint.Check(semver.New(parsed.Major(), parsed.Minor(), parsed.Patch(), "", ""))
}

// CompareVersions orders versions, with or without v. What is no version comes before all that are, by its text.
func CompareVersions(a, b string) int {
	first, errFirst := semver.NewVersion(a)
	second, errSecond := semver.NewVersion(b)
	switch {
	case errFirst != nil && errSecond != nil:
		return cmp.Compare(a, b)
	case errFirst != nil:
		return -1
	case errSecond != nil:
		return 1
	default:
		return first.Compare(second)
	}
}
