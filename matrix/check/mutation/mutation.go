// Package mutation records which damage turned which check red. A check that nothing turns red
// proves nothing; `matrix selftest` runs the tests and demands a mutation of every check.
package mutation

import (
	"fmt"
	"strings"
	"testing"
)

// mark begins the line in a test's log that records a mutation.
const mark = "mutation turned red: "

// Record notes that the check of that id was red because of what, told in a few words. It fails
// the test if the check was not red, or if nothing of what it said contains says.
func Record(t testing.TB, check, what string, red bool, told []string, says string) {
	t.Helper()
	switch {
	case !red:
		t.Errorf("%s is green in spite of: %s", check, what)
	case !strings.Contains(strings.Join(told, "\n"), says):
		t.Errorf("%s says %q because of %s, want something with %q", check, told, what, says)
	default:
		t.Logf("%s%s: %s", mark, check, what)
	}
}

// Parse finds the mutation in a line of a test's output.
func Parse(line string) (check, what string, found bool) {
	_, text, found := strings.Cut(strings.TrimRight(line, "\n"), mark)
	if !found {
		return "", "", false
	}
	return strings.Cut(text, ": ")
}

// Missing names the checks without a mutation; the error tells what to do.
func Missing(checks []string, mutations map[string][]string) error {
	var missing []string
	for _, check := range checks {
		if len(mutations[check]) == 0 {
			missing = append(missing, check)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("nothing turns these checks red: %s; add a test that damages what they guard, with mutation.Record", strings.Join(missing, ", "))
}
