package report

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func readJUnit(t *testing.T, results []*evidence.Cell) junit.Testsuites {
	t.Helper()
	content, err := JUnit(results)
	if err != nil {
		t.Fatal(err)
	}
	var suites junit.Testsuites
	if err := xml.Unmarshal(content, &suites); err != nil {
		t.Fatalf("not XML: %v\n%s", err, content)
	}
	return suites
}

func TestJUnitEqualsGolden(t *testing.T) {
	content, err := JUnit(results(t))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "junit.xml", content)
}

// TestJUnitIsRedWhenTheCellIs checks that no cell that needs attention looks as if it passed, whatever its steps say.
func TestJUnitIsRedWhenTheCellIs(t *testing.T) {
	for verdict, want := range map[evidence.Verdict]struct{ failures, errors, skipped int }{
		evidence.Proven: {}, evidence.NotRun: {skipped: 1}, evidence.Refuted: {failures: 1}, evidence.BaselineBroken: {failures: 1},
		evidence.Infrastructure: {errors: 1}, evidence.Unfinished: {errors: 1}, "nonsense": {errors: 1},
	} {
		silent, failed := sample(t), sample(t)
		silent.Verdict = verdict
		fail(failed, verdict, "quiet", "a write")
		suites := readJUnit(t, []*evidence.Cell{silent})
		if suites.Failures != want.failures || suites.Errors != want.errors || suites.Skipped != want.skipped {
			t.Errorf("%s: %d failures, %d errors, %d skipped, want %+v", verdict, suites.Failures, suites.Errors, suites.Skipped, want)
		}
		if want.failures+want.errors == 0 {
			continue
		}
		if suites := readJUnit(t, []*evidence.Cell{failed}); suites.Failures != want.failures || suites.Errors != want.errors {
			t.Errorf("%s with a failed step: %d failures, %d errors, want %+v", verdict, suites.Failures, suites.Errors, want)
		}
	}
}

func TestJUnitHoldsAnyText(t *testing.T) {
	for _, payload := range append(payloads, "]]>", "<![CDATA[", "&amp;", "\xff\xfe", "\ufffe\uffff") {
		document := hostile(t, results(t)[3], payload)
		document.Reason = payload // not every payload survives JSON
		document.Step("traffic").Reason, document.Step("traffic").Seen = payload, []string{payload}
		suites := readJUnit(t, []*evidence.Cell{document, document})
		if len(suites.Suites) != 2 || len(suites.Suites[1].Testcases) != len(document.Steps) || suites.Failures != 2 {
			t.Errorf("%q: the report reads as %d suites with %d failures", payload, len(suites.Suites), suites.Failures)
		}
		// What XML can hold is held.
		for _, test := range suites.Suites[0].Testcases {
			if test.Failure != nil && xmlText(payload) == payload && !strings.Contains(payload, "\r") && !strings.Contains(test.Failure.Data, payload) {
				t.Errorf("%q reads as %q", payload, test.Failure.Data)
			}
		}
	}
}

func TestJUnitIsTheSameEachTime(t *testing.T) {
	first, err := JUnit(results(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := JUnit(results(t))
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same results give other bytes, %v", err)
	}
}
