package mutation

import (
	"fmt"
	"strings"
	"testing"
)

// recorder is a test whose failures and log are kept.
type recorder struct {
	testing.TB
	failed bool
	log    string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func (r *recorder) Logf(format string, args ...any) { r.log = fmt.Sprintf(format, args...) }

func TestRecord(t *testing.T) {
	for _, test := range []struct {
		name   string
		red    bool
		told   []string
		failed bool
	}{
		{"red for the reason", true, []string{"x", "the pod restarted"}, false},
		{"red for another reason", true, []string{"no answer"}, true},
		{"green", false, nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &recorder{TB: t}
			Record(r, "quiet", "a restart", test.red, test.told, "restarted")
			if r.failed != test.failed {
				t.Errorf("failed: %t", r.failed)
			}
			if recorded := strings.Contains(r.log, mark); recorded == test.failed {
				t.Errorf("recorded: %t", recorded)
			}
		})
	}
}

func TestParse(t *testing.T) {
	check, what, found := Parse("    x_test.go:9: " + mark + "live-rbac: a right: missing\n")
	if !found || check != "live-rbac" || what != "a right: missing" {
		t.Errorf("got %q %q %t", check, what, found)
	}
	if _, _, found := Parse("=== RUN TestX"); found {
		t.Error("found a mutation in another line")
	}
}

func TestMissing(t *testing.T) {
	if err := Missing([]string{"a"}, map[string][]string{"a": {"x"}}); err != nil {
		t.Error(err)
	}
	err := Missing([]string{"a", "b"}, map[string][]string{"a": {"x"}, "b": nil})
	if err == nil || !strings.Contains(err.Error(), "red: b;") {
		t.Errorf("got %v", err)
	}
}
