package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// NoNewEvents is the check that nothing is announced where nothing happened.
var NoNewEvents = Check{
	ID:    "no-new-events",
	Claim: "No transition event was emitted for a runtime whose spec did not change.",
}

// CompareEvents judges NoNewEvents.
func CompareEvents(before, after *Snapshot) Result {
	var r Result
	for _, p := range pairs(before.Events, after.Events) {
		switch {
		case p.after == nil: // events expire
		case p.before == nil:
			r.Fail("new event %s", eventText(p.after))
		default:
			if was, is := seriesCount(p.before), seriesCount(p.after); was != is {
				r.Fail("event repeated %d times, %d before: %s", is, was, eventText(p.after))
			}
		}
	}
	r.See("%d events about %d runtimes before, %d after", len(before.Events), len(before.Runtimes), len(after.Events))
	return r
}

func eventText(e *unstructured.Unstructured) string {
	reason, _, _ := unstructured.NestedString(e.Object, "reason")
	note, _, _ := unstructured.NestedString(e.Object, "note")
	name, _, _ := unstructured.NestedString(e.Object, "regarding", "name")
	return reason + " about " + name + ": " + note
}

func seriesCount(e *unstructured.Unstructured) int64 {
	count, _, _ := unstructured.NestedInt64(e.Object, "series", "count")
	return count
}
