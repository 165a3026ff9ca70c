package scenario

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	write(t, file, `{"tests": [{
		"name": "roll-forward", "status": "failed",
		"startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:05Z",
		"steps": [
			{"name": "given", "status": "passed", "startTime": "2025-01-01T00:00:00Z", "endTime": "2025-01-01T00:00:02Z",
			 "operations": [{"name": "operation 1", "type": "apply", "status": "passed"}]},
			{"name": "complete", "status": "failed", "startTime": "2025-01-01T00:00:02Z", "endTime": "2025-01-01T00:00:05Z",
			 "operations": [
				{"type": "assert", "status": "failed", "failure": {"error": "Ready: Invalid value: \"False\"\n"}},
				{"type": "delete", "status": "failed", "failure": {"error": "still there"}}]}
		]}]}`)
	got, err := readResult(file, "roll-forward")
	if err != nil {
		t.Fatal(err)
	}
	want := Result{
		Name:     "roll-forward",
		Duration: 5 * time.Second,
		Steps: []Step{
			{Name: "given", Passed: true, Duration: 2 * time.Second},
			{Name: "complete", Duration: 3 * time.Second, Failure: "assert: Ready: Invalid value: \"False\"\ndelete: still there"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unexpected result (-want +got):\n%s", diff)
	}
	if failures := got.Failures(); failures != "step \"complete\": assert: Ready: Invalid value: \"False\"\ndelete: still there" {
		t.Errorf("Failures() is %q", failures)
	}
}

func TestReadResultRefuses(t *testing.T) {
	for name, test := range map[string]struct{ content, want string }{
		"cut off":        {`{"tests": [`, "unexpected end of JSON input"},
		"no test":        {`{}`, "holds 0 tests"},
		"another test":   {`{"tests": [{"name": "roll-back", "status": "passed"}]}`, "want the one test roll-forward"},
		"skipped":        {`{"tests": [{"name": "roll-forward", "status": "skipped"}]}`, "must run"},
		"unknown status": {`{"tests": [{"name": "roll-forward", "status": "passed", "steps": [{"name": "given", "status": "odd"}]}]}`, `step "given": unknown status "odd"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			write(t, file, test.content)
			if _, err := readResult(file, "roll-forward"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want the words %q", err, test.want)
			}
		})
	}
}
