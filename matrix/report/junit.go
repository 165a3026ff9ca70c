package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// JUnit is the result of a run as JUnit XML: a test suite for each cell, a test case for each step. What the product did
// wrong is a failure; what could not be judged is an error.
func JUnit(results []*evidence.Cell) ([]byte, error) {
	suites := junit.Testsuites{Name: "matrix"}
	for id, document := range results {
		suite := suiteOf(document)
		suite.ID = id
		suites.AddSuite(suite)
	}
	var out bytes.Buffer
	out.WriteString(xml.Header)
	if err := suites.WriteXML(&out); err != nil {
		return nil, fmt.Errorf("encode the JUnit report: %w", err)
	}
	return out.Bytes(), nil
}

func suiteOf(document *evidence.Cell) junit.Testsuite {
	suite := junit.Testsuite{Name: document.ID, Time: "0.000"}
	suite.SetTimestamp(document.Started.UTC())
	if document.Finished != nil {
		suite.Time = fmt.Sprintf("%.3f", document.Finished.Sub(document.Started).Seconds())
	}
	for _, property := range [][2]string{
		{"provider", document.Cluster.Provider}, {"kubernetes", document.Cluster.Kubernetes},
		{"from", document.From.Version}, {"to", document.To.Version}, {"commit", document.Tool.Commit},
		{"chart", document.To.Chart.Digest}, {"image", document.To.Image.Digest}, {"reproduce", document.Reproduce},
	} {
		suite.AddProperty(property[0], property[1])
	}
	red := false
	for _, step := range document.Steps {
		test := junit.Testcase{Name: step.ID, Classname: document.ID, Time: fmt.Sprintf("%.3f", step.Seconds)}
		switch step.Outcome {
		case evidence.Skipped:
			test.Skipped = &junit.Result{Message: step.Reason}
		case evidence.Failed:
			red = true
			notPassed(&test, document.Verdict, step.Reason, fmt.Sprintf("%s\n\nseen:\n%s\n\nagain: %s\n", step.Claim, strings.Join(step.Seen, "\n"), document.Reproduce))
		}
		suite.AddTestcase(test)
	}
	// A cell that is not green must not look so because no step says why.
	test := junit.Testcase{Name: "cell", Classname: document.ID, Time: "0.000"}
	switch {
	case document.Verdict == evidence.NotRun:
		test.Skipped = &junit.Result{Message: document.Reason}
		suite.AddTestcase(test)
	case !document.Verdict.Green() && !red:
		notPassed(&test, document.Verdict, strings.TrimSuffix(string(document.Verdict)+": "+document.Reason, ": "), "again: "+document.Reproduce+"\n")
		suite.AddTestcase(test)
	}
	return suite
}

func notPassed(test *junit.Testcase, verdict evidence.Verdict, message, details string) {
	result := &junit.Result{Message: message, Type: string(verdict), Data: xmlText(details)}
	if verdict == evidence.Refuted || verdict == evidence.BaselineBroken {
		test.Failure = result
	} else {
		test.Error = result
	}
}

// xmlText replaces what no XML document may hold, and no CDATA section can escape.
func xmlText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r >= ' ' && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 {
			return r
		}
		return '\ufffd'
	}, text)
}
