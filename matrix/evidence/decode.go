package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error is what is wrong with an evidence document, and where.
type Error struct {
	// Line and Column count from 1, columns in bytes.
	Line, Column int
	Message      string
	// Err is the cause, if there is one.
	Err error
}

// Error begins with the position, so that a file name before it makes what editors read.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

func (e *Error) Unwrap() error { return e.Err }

// Unmarshal reads a document strictly: another format version, unknown and repeated fields, anything after the
// document, and a verdict that the steps contradict are errors. They are of type *Error.
func Unmarshal(content []byte) (*Cell, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, decodeError(content, err)
	}
	if head.APIVersion != APIVersion || head.Kind != Kind {
		field := jsontext.Pointer("/apiVersion")
		if head.APIVersion == APIVersion {
			field = "/kind"
		}
		return nil, errorAt(content, field, fmt.Sprintf("an evidence document of %s %q is wanted, this one is %s %q: run the cell again with this version of the tool",
			APIVersion, Kind, head.APIVersion, head.Kind))
	}
	cell := &Cell{}
	if err := json.Unmarshal(content, cell, json.RejectUnknownMembers(true)); err != nil {
		return nil, decodeError(content, err)
	}
	if field, message := cell.mistake(); message != "" {
		return nil, errorAt(content, field, message+": run the cell again")
	}
	return cell, nil
}

// decodeError gives an error of the JSON library a position in lines and columns.
func decodeError(content []byte, err error) *Error {
	var offset int64
	var field jsontext.Pointer
	cause := err
	var syntax *jsontext.SyntacticError
	var meaning *json.SemanticError
	switch {
	case errors.As(err, &syntax):
		offset, field, cause = syntax.ByteOffset, syntax.JSONPointer, syntax.Err
	case errors.As(err, &meaning):
		offset, field = meaning.ByteOffset, meaning.JSONPointer
		cause = meaning.Err
		if cause == nil {
			cause = fmt.Errorf("a JSON %s is not what belongs here", meaning.JSONKind)
		}
	}
	message := "not an evidence document: "
	if field != "" {
		quoted := strconv.Quote(string(field)) // names may hold anything
		message += quoted[1:len(quoted)-1] + ": "
	}
	line, column := lineColumn(content, offset)
	return &Error{Line: line, Column: column, Message: message + cause.Error(), Err: err}
}

// errorAt is an error about a field. If the document lacks the field, it is about the innermost object that should have
// it.
func errorAt(content []byte, field jsontext.Pointer, message string) *Error {
	decoder := jsontext.NewDecoder(bytes.NewReader(content))
	offset, best := int64(0), jsontext.Pointer("")
	for {
		before := decoder.InputOffset()
		if _, err := decoder.ReadToken(); err != nil {
			break
		}
		if at := decoder.StackPointer(); len(at) > len(best) && (at == field || field.Contains(at)) {
			// The first token with the pointer of a member is its name.
			offset, best = before, at
		}
	}
	line, column := lineColumn(content, offset)
	return &Error{Line: line, Column: column, Message: message}
}

// lineColumn is the position of the first token at or after the offset.
func lineColumn(content []byte, offset int64) (line, column int) {
	at := int(min(max(offset, 0), int64(len(content))))
	for at < len(content) && bytes.IndexByte([]byte(" \t\r\n,:"), content[at]) >= 0 {
		at++
	}
	before := content[:at]
	return bytes.Count(before, []byte("\n")) + 1, at - bytes.LastIndexByte(before, '\n')
}

// idForm keeps ids safe in file names, links and commands.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// mistake is what the document says that can't be, and the field that says it. The message is empty if there is none.
func (c *Cell) mistake() (field jsontext.Pointer, message string) {
	if !idForm.MatchString(c.ID) {
		return "/id", fmt.Sprintf("the id is %q, which is not the name of a cell", c.ID)
	}
	seen := map[string]bool{}
	checks := 0
	for i, step := range c.Steps {
		at := jsontext.Pointer("").AppendToken("steps").AppendToken(strconv.Itoa(i))
		switch {
		case step.ID == "":
			return at, "a step has no id"
		case seen[step.ID]:
			return at.AppendToken("id"), fmt.Sprintf("the step %s is there twice", step.ID)
		case !slices.Contains([]Outcome{Passed, Failed, Skipped}, step.Outcome):
			return at.AppendToken("outcome"), fmt.Sprintf("the outcome of the step %s is %q, which is none", step.ID, step.Outcome)
		case step.Outcome != Passed && step.Reason == "":
			return at, fmt.Sprintf("the step %s is %s without a reason", step.ID, step.Outcome)
		case step.Seconds < 0:
			return at.AppendToken("seconds"), fmt.Sprintf("the step %s took less than no time", step.ID)
		case step.Outcome == Failed && c.Verdict == Proven:
			return "/verdict", fmt.Sprintf("the verdict is %s, although the step %s failed", c.Verdict, step.ID)
		}
		seen[step.ID] = true
		if step.Check && step.Outcome == Passed {
			checks++
		}
	}
	for i, d := range c.Disruptions {
		if message := d.mistake(); message != "" {
			return jsontext.Pointer("").AppendToken("disruptions").AppendToken(strconv.Itoa(i)), message
		}
	}
	switch c.Verdict {
	case Proven:
		if checks == 0 {
			return "/verdict", "the verdict is passed, although no check passed"
		}
	case NotRun, Refuted, BaselineBroken, Infrastructure:
		if c.Reason == "" {
			return "/verdict", fmt.Sprintf("the verdict is %s without a reason", c.Verdict)
		}
	case Unfinished:
		return "", ""
	default:
		return "/verdict", fmt.Sprintf("the verdict is %q, which is none", c.Verdict)
	}
	if c.Finished == nil {
		return "/verdict", fmt.Sprintf("the verdict is %s, although the cell has not ended", c.Verdict)
	}
	return "", ""
}

func (d Disruption) mistake() string {
	for _, count := range []*int{d.Requests, d.FailedRequests, d.PodsReplaced} {
		if count != nil && *count < 0 {
			return "a count of a disruption is negative"
		}
	}
	for _, seconds := range []*float64{d.LongestGapSeconds, d.HandoverSeconds} {
		if seconds != nil && *seconds < 0 {
			return "a time of a disruption is negative"
		}
	}
	if d.Requests != nil && d.FailedRequests != nil && *d.FailedRequests > *d.Requests {
		return fmt.Sprintf("%d of %d requests failed", *d.FailedRequests, *d.Requests)
	}
	return ""
}
