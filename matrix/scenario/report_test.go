package scenario

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Failures as chainsaw v0.2.15 writes them: of an object, and of an expression over several.
const (
	objectFailure = `------------------------------------------------
v1/ResourceQuota/chainsaw-cuckatoo/recreation-none
------------------------------------------------
* spec.hard: Invalid value: {"pods":"1"}: Expected value: map[string]interface {}{"pods":"2"}
* status.used: Invalid value: null: Expected value: map[string]interface {}{"pods":"1"}

--- expected
+++ actual
@@ -1,4 +1,3 @@
-(status.hard == spec.hard): true
`
	listFailure = `(join(', ', events)): Invalid value: "RuntimeUpgradeStarted": Expected value: "RuntimeUpgradeStarted, RuntimeUpgradeCompleted"`
)

func TestReadResults(t *testing.T) {
	quoted := func(text string) string {
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	file := filepath.Join(t.TempDir(), "report.json")
	write(t, file, `{"tests": [
		{"name": "roll-back", "status": "passed", "startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:01Z"},
		{"name": "roll-forward", "status": "failed",
		"startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:05Z",
		"steps": [
			{"name": "given", "status": "passed", "startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:02Z",
			 "operations": [{"name": "operation 1", "type": "apply", "status": "passed"}]},
			{"name": "complete", "status": "failed", "startTime": "2025-01-01T00:00:02Z", "endTime": "2025-01-01T00:00:05Z",
			 "operations": [
				{"type": "assert", "status": "failed", "failure": {"error": `+quoted(objectFailure)+`}},
				{"type": "assert", "status": "failed", "failure": {"error": `+quoted(listFailure)+`}},
				{"type": "delete", "status": "failed", "failure": {"error": "still there"}}]},
			{"name": "cleanup", "status": "failed", "startTime": "2025-01-01T00:00:05Z", "endTime": "2025-01-01T00:00:06Z",
			 "operations": [{"type": "delete", "status": "failed", "failure": {"error": "no\ntime"}}]}
		]}]}`)
	got, err := readResults(file, []string{"roll-forward", "roll-back"})
	if err != nil {
		t.Fatal(err)
	}
	failure := "assert: " + strings.TrimSpace(objectFailure) + "\nassert: " + listFailure + "\ndelete: still there"
	const quota = "v1/ResourceQuota/chainsaw-cuckatoo/recreation-none"
	want := []Result{{
		Name:     "roll-forward",
		Duration: 5 * time.Second,
		Steps: []Step{
			{Name: "given", Passed: true, Duration: 2 * time.Second},
			{Name: "complete", Duration: 3 * time.Second, Failure: failure, Differences: []Difference{
				{Object: quota, Field: "spec.hard", Asserted: `map[string]interface {}{"pods":"2"}`, Seen: `{"pods":"1"}`},
				{Object: quota, Field: "status.used", Asserted: `map[string]interface {}{"pods":"1"}`, Seen: "null"},
				{Field: "(join(', ', events))", Asserted: `"RuntimeUpgradeStarted, RuntimeUpgradeCompleted"`, Seen: `"RuntimeUpgradeStarted"`},
			}},
			{Name: "cleanup", Duration: time.Second, Failure: "delete: no\ntime"},
		},
	}, {Name: "roll-back", Passed: true, Duration: time.Second}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected results (-want +got):\n%s", diff)
	}
	if failures := got[0].Failures(); failures != `step "complete": `+failure+"\n\n"+`step "cleanup": delete: no`+"\ntime" {
		t.Errorf("Failures() is %q", failures)
	}
	lines := []string{
		"roll-forward: given: passed in 2s",
		"roll-forward: complete: failed in 3s",
		"roll-forward: complete: " + quota + ` spec.hard: asserted map[string]interface {}{"pods":"2"}, seen {"pods":"1"}`,
		"roll-forward: complete: " + quota + ` status.used: asserted map[string]interface {}{"pods":"1"}, seen null`,
		`roll-forward: complete: (join(', ', events)): asserted "RuntimeUpgradeStarted, RuntimeUpgradeCompleted", seen "RuntimeUpgradeStarted"`,
		"roll-forward: cleanup: failed in 1s",
		"roll-forward: cleanup: delete: no time",
	}
	if diff := cmp.Diff(lines, got[0].Lines()); diff != "" {
		t.Errorf("unexpected lines (-want +got):\n%s", diff)
	}
}

func TestReadResultsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"cut off":        {`{"tests": [`, "unexpected end of JSON input"},
		"no test":        {`{}`, "does not hold the test roll-forward"},
		"another test":   {`{"tests": [{"name": "roll-back", "status": "passed"}]}`, "does not hold the test roll-forward"},
		"skipped":        {`{"tests": [{"name": "roll-forward", "status": "skipped"}]}`, "must run"},
		"unknown status": {`{"tests": [{"name": "roll-forward", "status": "passed", "steps": [{"name": "given", "status": "odd"}]}]}`, `step "given": unknown status "odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			write(t, file, test.content)
			if _, err := readResults(file, []string{"roll-forward"}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want the words %q", err, test.want)
			}
		})
	}
}
