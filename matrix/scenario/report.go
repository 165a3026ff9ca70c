package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Result is what one scenario found.
type Result struct {
	// Name is the name of the scenario.
	Name string
	// Passed tells whether every step passed, cleanup included.
	Passed bool
	// Duration is the time from the first step to the last, cleanup excluded.
	Duration time.Duration
	// Steps are the steps that ran, in their order; those after a failed one don't run.
	Steps []Step
}

// Step is one named step of a scenario.
type Step struct {
	Name     string
	Passed   bool
	Duration time.Duration
	// Failure says what was asserted and what was seen, in several lines; empty if the step
	// passed.
	Failure string
}

// Failures are the failed steps in words, one paragraph each.
func (r Result) Failures() string {
	var failed []string
	for _, step := range r.Steps {
		if !step.Passed {
			failed = append(failed, fmt.Sprintf("step %q: %s", step.Name, step.Failure))
		}
	}
	return strings.Join(failed, "\n\n")
}

// The values of a status in chainsaw's report.
const (
	statusPassed  = "passed"
	statusFailed  = "failed"
	statusSkipped = "skipped"
)

// report is the part of chainsaw's JSON report that is read here.
type report struct {
	Tests []testReport `json:"tests"`
}

type testReport struct {
	Name      string       `json:"name"`
	Status    string       `json:"status"`
	StartTime time.Time    `json:"startTime"`
	EndTime   time.Time    `json:"endTime"`
	Steps     []stepReport `json:"steps"`
}

type stepReport struct {
	Name       string            `json:"name"`
	Status     string            `json:"status"`
	StartTime  time.Time         `json:"startTime"`
	EndTime    time.Time         `json:"endTime"`
	Operations []operationReport `json:"operations"`
}

type operationReport struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Failure *struct {
		Error string `json:"error"`
	} `json:"failure"`
}

// readResult reads the report in file, which must hold the one named test, run to an end.
func readResult(file, name string) (Result, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return Result{}, fmt.Errorf("read chainsaw's report: %w", err)
	}
	var parsed report
	if err := json.Unmarshal(content, &parsed); err != nil {
		return Result{}, fmt.Errorf("read chainsaw's report %s: %w", file, err)
	}
	// Chainsaw leaves a test out that it can't load.
	if len(parsed.Tests) != 1 || parsed.Tests[0].Name != name {
		return Result{}, fmt.Errorf("chainsaw's report %s holds %d tests, want the one test %s", file, len(parsed.Tests), name)
	}
	test := parsed.Tests[0]
	result := Result{Name: name, Duration: test.EndTime.Sub(test.StartTime)}
	if result.Passed, err = passed(test.Status); err != nil {
		return Result{}, fmt.Errorf("chainsaw's report %s: test %s: %w", file, name, err)
	}
	for _, step := range test.Steps {
		read := Step{Name: step.Name, Duration: step.EndTime.Sub(step.StartTime), Failure: failure(step.Operations)}
		if read.Passed, err = passed(step.Status); err != nil {
			return Result{}, fmt.Errorf("chainsaw's report %s: step %q: %w", file, step.Name, err)
		}
		result.Steps = append(result.Steps, read)
	}
	return result, nil
}

func passed(status string) (bool, error) {
	switch status {
	case statusPassed:
		return true, nil
	case statusFailed:
		return false, nil
	case statusSkipped:
		return false, errors.New("status is skipped: a scenario that is asked for must run")
	default:
		return false, fmt.Errorf("unknown status %q: want passed, failed or skipped", status)
	}
}

// failure joins the failed operations of a step.
func failure(operations []operationReport) string {
	var failed []string
	for _, operation := range operations {
		if operation.Failure != nil {
			failed = append(failed, operation.Type+": "+strings.TrimSpace(operation.Failure.Error))
		}
	}
	return strings.Join(failed, "\n")
}
