package check

// SpecUntouched is the check that nobody edited what the user wrote.
var SpecUntouched = Check{
	ID:    "spec-untouched",
	Claim: "The spec of every runtime is what it was, and so is its generation.",
}

// CompareSpecs judges SpecUntouched.
func CompareSpecs(before, after *Snapshot) Result {
	var r Result
	for _, p := range pairs(before.Runtimes, after.Runtimes) {
		if !r.same(p) {
			continue
		}
		failures := len(r.Failures)
		r.unchanged(p, "spec")
		if p.before.GetGeneration() != p.after.GetGeneration() {
			r.Fail("%s: generation %d before, %d after", p.name, p.before.GetGeneration(), p.after.GetGeneration())
		}
		if len(r.Failures) == failures {
			r.See("%s: spec of generation %d is unchanged", p.name, p.after.GetGeneration())
		}
	}
	return r
}
