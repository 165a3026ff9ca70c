package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StatusKept is the check that an operator change does not rewrite history.
var StatusKept = Check{
	ID:    "status-kept",
	Claim: "Status tells the same story: images kept, observedGeneration not behind, and no condition changed its status or its transition time.",
}

// CompareStatus judges StatusKept. A field or condition that only the newer operator knows may
// appear; none may go away.
func CompareStatus(before, after *Snapshot) Result {
	var r Result
	for _, p := range pairs(before.Runtimes, after.Runtimes) {
		if !r.same(p) {
			continue
		}
		status, _, _ := unstructured.NestedMap(p.before.Object, "status")
		for _, field := range keys(status) {
			was, isText := status[field].(string)
			is, _, _ := unstructured.NestedString(p.after.Object, "status", field)
			if isText && was != "" && was != is {
				r.Fail("%s: status.%s was %q, is %q", p.name, field, was, is)
			}
		}
		if observed, _, _ := unstructured.NestedInt64(p.after.Object, "status", "observedGeneration"); observed < p.after.GetGeneration() {
			r.Fail("%s: status.observedGeneration is %d, generation is %d", p.name, observed, p.after.GetGeneration())
		}
		r.compareConditions(p)
	}
	return r
}

func (r *Result) compareConditions(p pair) {
	failures := len(r.Failures)
	conditions, _, _ := unstructured.NestedSlice(p.before.Object, "status", "conditions")
	for _, c := range conditions {
		was, ok := c.(map[string]any)
		if !ok {
			continue
		}
		kind, _ := was["type"].(string)
		is := conditionEntry(p.after, kind)
		if is == nil {
			r.Fail("%s: condition %s is gone", p.name, kind)
			continue
		}
		for _, field := range []string{"status", "lastTransitionTime"} {
			if was[field] != is[field] {
				r.Fail("%s: condition %s: %s was %v, is %v (reason %v)", p.name, kind, field, was[field], is[field], is["reason"])
			}
		}
	}
	if len(conditions) > 0 && len(r.Failures) == failures {
		r.See("%s: %d conditions with the status and transition time they had", p.name, len(conditions))
	}
}
