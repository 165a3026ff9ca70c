package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func TestJobSummaryEqualsGolden(t *testing.T) {
	golden(t, "summary.md", JobSummary(results(t)))
}

func TestJobSummaryStaysSmall(t *testing.T) {
	document := hostile(t, results(t)[3], strings.Repeat("x ", 10000))
	document.Reproduce = "again"
	for _, step := range document.Steps[:6] {
		document.Disruption(step.ID).FailedRequests = new(7)
	}
	var many []*evidence.Cell
	for range 1000 {
		many = append(many, document)
	}
	if size := len(JobSummary(many)); size > 1<<20 {
		t.Errorf("the summary of 1000 failed cells has %d bytes, more than GitHub takes", size)
	}
	if got := string(JobSummary(nil)); !strings.Contains(got, "no cells") {
		t.Errorf("the summary of nothing is %q", got)
	}
}

// command is a workflow command as the runner reads it.
type command struct {
	name       string
	properties map[string]string
	message    string
}

// readCommand follows the runner: the command ends at the first colons after its name, properties at commas.
func readCommand(t *testing.T, line string) command {
	t.Helper()
	rest, ok := strings.CutPrefix(line, "::")
	if !ok || strings.ContainsAny(line, "\r\n") {
		t.Fatalf("%q is not a command in a line", line)
	}
	info, message, _ := strings.Cut(rest, "::")
	name, list, _ := strings.Cut(info, " ")
	read := command{name: name, properties: map[string]string{}, message: strings.NewReplacer("%0D", "\r", "%0A", "\n", "%25", "%").Replace(message)}
	for _, property := range strings.Split(list, ",") {
		key, value, _ := strings.Cut(property, "=")
		read.properties[key] = strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(value)
	}
	return read
}

func TestAnnotationsPointAtTheRow(t *testing.T) {
	in := input(t)
	lines := Annotations("compatibility.yaml", in.Planned, in.Documents)
	want := []command{
		{"error", map[string]string{"file": "compatibility.yaml", "line": "26", "col": "5", "title": "0.5.0--checkout--k8s-1.34.4--embedded is failed"},
			"traffic: 3 of 79 requests failed (first: <b>no</b> | [answer](https://example.org))\nagain: " + in.Documents[3].Reproduce},
		{"error", map[string]string{"file": "compatibility.yaml", "line": "26", "col": "5", "title": "0.5.0--checkout--k8s-1.34.4--kind is not judged: infrastructure"},
			"cluster: no space left on device\nagain: " + in.Documents[4].Reproduce},
	}
	var got []command
	for _, line := range lines {
		got = append(got, readCommand(t, line))
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(command{})); diff != "" {
		t.Error(diff)
	}
}

func TestAnnotationsHoldAnyText(t *testing.T) {
	for _, payload := range append(payloads, "%0A::warning::x", "::error::x", "a,b=c:d", "\r\n::set-env name=X::y", "100%25") {
		document := results(t)[3]
		document.Reason, document.Reproduce = payload, payload
		got := readCommand(t, Annotations(payload, nil, []*evidence.Cell{document})[0])
		if got.name != "error" || got.properties["file"] != payload || len(got.properties) != 2 || got.message != payload+"\nagain: "+payload {
			t.Errorf("%q reads as %+v", payload, got)
		}
	}
}

func TestProblemAnnotations(t *testing.T) {
	lines := ProblemAnnotations("compatibility.yaml", []compat.Problem{
		{File: "x", Line: 7, Column: 3, Message: "the runtime is wrong", Advice: "write it right"}, {File: "x", Line: 9, Column: 1, Message: "100% wrong"},
	})
	want := []string{
		"::error file=compatibility.yaml,line=7,col=3,title=compatibility file::the runtime is wrong; write it right",
		"::error file=compatibility.yaml,line=9,col=1,title=compatibility file::100%25 wrong",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}
