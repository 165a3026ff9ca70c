package check

// ChildrenKept is the check that no managed object was made anew.
var ChildrenKept = Check{
	ID:    "children-kept",
	Claim: "Every managed object is the one it was, with the same controller owner; Services kept their cluster IPs and node ports.",
}

// CompareChildren judges ChildrenKept.
func CompareChildren(before, after *Snapshot) Result {
	var r Result
	kept := 0
	for _, p := range pairs(before.Children, after.Children) {
		if p.before == nil {
			continue // a newer operator may manage more kinds
		}
		if !r.same(p) {
			continue
		}
		kept++
		if b, a := controller(p.before), controller(p.after); a != b {
			r.Fail("%s: controller owner was %s, is %s", p.name, b, a)
		}
		if p.before.GetKind() == kindService {
			r.unchanged(p, "spec", "clusterIP")
			r.unchanged(p, "spec", "clusterIPs")
			r.unchanged(p, "spec", "ports")
		}
	}
	if len(before.Children) != before.Wanted {
		r.Fail("%d managed objects were there before, %d are wanted for %d runtimes", len(before.Children), before.Wanted, len(before.Runtimes))
	}
	if kept > 0 && len(r.Failures) == 0 {
		r.See("%d managed objects with the UIDs, owners, cluster IPs and ports they had", kept)
	}
	return r
}
