package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
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
	// Failure says in several lines what was asserted and what was seen, in chainsaw's words;
	// empty if the step passed.
	Failure string
	// Differences are the parts of the failure that are comparisons.
	Differences []Difference
}

// Difference is one assertion that did not hold.
type Difference struct {
	// Object is what was looked at, as apiVersion/kind/namespace/name; empty if the assertion
	// is about several objects.
	Object string
	// Field is the path of a field or an expression.
	Field string
	// Asserted and Seen are the two values.
	Asserted, Seen string
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

// Lines tell every step with its duration, and of a failed one what was asserted and what was
// seen instead, for evidence.
func (r Result) Lines() []string {
	var lines []string
	for _, step := range r.Steps {
		outcome := "passed"
		if !step.Passed {
			outcome = "failed"
		}
		lines = append(lines, fmt.Sprintf("%s: %s: %s in %s", r.Name, step.Name, outcome, step.Duration.Round(time.Millisecond)))
		for _, d := range step.Differences {
			lines = append(lines, fmt.Sprintf("%s: %s: %s: asserted %s, seen %s", r.Name, step.Name, strings.TrimPrefix(d.Object+" "+d.Field, " "), d.Asserted, d.Seen))
		}
		if !step.Passed && len(step.Differences) == 0 {
			lines = append(lines, fmt.Sprintf("%s: %s: %s", r.Name, step.Name, strings.ReplaceAll(step.Failure, "\n", " ")))
		}
	}
	return lines
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

// readResults reads the report in file, which must hold the named tests, run to an end, and
// returns them in the order of names.
func readResults(file string, names []string) ([]Result, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read chainsaw's report: %w", err)
	}
	var parsed report
	if err := json.Unmarshal(content, &parsed); err != nil {
		return nil, fmt.Errorf("read chainsaw's report %s: %w", file, err)
	}
	var results []Result
	for _, name := range names {
		// Chainsaw leaves a test out that it can't load.
		i := slices.IndexFunc(parsed.Tests, func(test testReport) bool { return test.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("chainsaw's report %s does not hold the test %s", file, name)
		}
		result, err := readResult(parsed.Tests[i])
		if err != nil {
			return nil, fmt.Errorf("chainsaw's report %s: test %s: %w", file, name, err)
		}
		results = append(results, result)
	}
	return results, nil
}

func readResult(test testReport) (Result, error) {
	result := Result{Name: test.Name, Duration: test.EndTime.Sub(test.StartTime)}
	var err error
	if result.Passed, err = passed(test.Status); err != nil {
		return Result{}, err
	}
	for _, step := range test.Steps {
		read := Step{Name: step.Name, Duration: step.EndTime.Sub(step.StartTime)}
		if read.Passed, err = passed(step.Status); err != nil {
			return Result{}, fmt.Errorf("step %q: %w", step.Name, err)
		}
		read.Failure, read.Differences = failure(step.Operations)
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

// failure joins the failed operations of a step, and the differences that they found.
func failure(operations []operationReport) (string, []Difference) {
	var failed []string
	var found []Difference
	for _, operation := range operations {
		if operation.Failure != nil {
			text := strings.TrimSpace(operation.Failure.Error)
			failed = append(failed, operation.Type+": "+text)
			found = append(found, differences(text)...)
		}
	}
	return strings.Join(failed, "\n"), found
}

var (
	// objectLine names the object that the lines after it are about, between two rules.
	objectLine = regexp.MustCompile(`^[a-z][^ ]*/[A-Z]\w*/\S+$`)
	// differenceLine is how chainsaw writes an assertion that does not hold.
	differenceLine = regexp.MustCompile(`^(?:\* )?(.+?): Invalid value: (.*): Expected value: (.*)$`)
)

// differences finds the comparisons in the failure of an operation.
func differences(failure string) []Difference {
	var found []Difference
	object := ""
	for line := range strings.Lines(failure) {
		line = strings.TrimSuffix(line, "\n")
		if objectLine.MatchString(line) {
			object = line
		} else if match := differenceLine.FindStringSubmatch(line); match != nil {
			found = append(found, Difference{Object: object, Field: match[1], Seen: match[2], Asserted: match[3]})
		}
	}
	return found
}
