package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// TestResultsAreToldWhereCILooks gives a run's results to the part that follows a run.
func TestResultsAreToldWhereCILooks(t *testing.T) {
	c := newClone(t)
	summary := filepath.Join(t.TempDir(), "summary.md")
	if err := os.WriteFile(summary, []byte("# Before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_WORKSPACE", c.dir)
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	cell := proven(c.commit)
	failed(cell)
	s := &settings{provider: "embedded", jobs: 1, junit: filepath.Join(t.TempDir(), "junit.xml")}
	options, err := s.options()
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	if err := s.tell(t.Context(), options, []*evidence.Cell{cell}, &progress); err != nil {
		t.Fatal(err)
	}
	want := "::error file=compatibility.yaml,line=15,col=5,title=" + rowID + " is failed::roll-forward: 3 of 9 requests failed%0Aagain: " + cell.Reproduce + "\n"
	if progress.String() != want {
		t.Errorf("annotations are %q, want %q", progress.String(), want)
	}
	content, err := os.ReadFile(summary)
	if err != nil || !strings.HasPrefix(string(content), "# Before\n## Upgrade matrix: 1 failed\n") {
		t.Errorf("the job summary is %q, %v", content, err)
	}
	content, err = os.ReadFile(s.junit)
	if err != nil {
		t.Fatal(err)
	}
	var suites junit.Testsuites
	if err := xml.Unmarshal(content, &suites); err != nil || suites.Failures != 1 {
		t.Errorf("JUnit has %d failures, %v", suites.Failures, err)
	}
}

func TestResultsAreToldOnlyWhereAsked(t *testing.T) {
	c := newClone(t)
	s := &settings{provider: "embedded", jobs: 1}
	options, err := s.options()
	if err != nil {
		t.Fatal(err)
	}
	cell := proven(c.commit)
	failed(cell)
	var progress bytes.Buffer
	if err := s.tell(t.Context(), options, []*evidence.Cell{cell}, &progress); err != nil || progress.Len() > 0 {
		t.Errorf("it prints %q, %v", progress.String(), err)
	}
	s.junit = filepath.Join(t.TempDir(), "nowhere", "junit.xml")
	if err := s.tell(t.Context(), options, []*evidence.Cell{cell}, &progress); err == nil {
		t.Error("a JUnit file that can't be written is no error")
	}
}

func TestCommandsAreHeld(t *testing.T) {
	t.Setenv("GITHUB_ACTIONS", "true")
	var out bytes.Buffer
	release := holdCommands(&out)
	out.WriteString("::error::from a pod\n")
	release()
	lines := strings.Split(out.String(), "\n")
	token, ok := strings.CutPrefix(lines[0], "::stop-commands::")
	if !ok || len(token) < 20 || lines[2] != "::"+token+"::" {
		t.Errorf("it prints %q", lines)
	}
	t.Setenv("GITHUB_ACTIONS", "")
	out.Reset()
	holdCommands(&out)()
	if out.Len() > 0 {
		t.Errorf("away from GitHub it prints %q", out.String())
	}
}

func TestRunResultForPrograms(t *testing.T) {
	good, bad, unknown := proven("c"), proven("c"), proven("c")
	failed(bad)
	unknown.Verdict, unknown.Reason = evidence.Infrastructure, "no space"
	for want, cells := range map[string][]*evidence.Cell{"green": {good}, "red": {good, unknown, bad}, "infrastructure": {unknown, good}} {
		content, err := json.Marshal(newRunResult(cells))
		if err != nil {
			t.Fatal(err)
		}
		var result runResult
		if err := json.Unmarshal(content, &result); err != nil || result.Verdict != want || len(result.Cells) != len(cells) {
			t.Errorf("got %s, %v, want %s", content, err, want)
		}
	}
	got := newRunResult([]*evidence.Cell{bad}).Cells[0]
	if got.Seconds != 108 || len(got.Failed) != 1 || got.Failed[0] != "roll-forward" || got.Evidence != "evidence/"+rowID+".json" {
		t.Errorf("got %+v", got)
	}
	if content, _ := json.Marshal(newRunResult(nil)); string(content) != `{"verdict":"green","cells":[]}` {
		t.Errorf("without cells: %s", content)
	}
}

func TestRunRefusesWhatItCouldNotTell(t *testing.T) {
	c := newClone(t)
	for _, args := range [][]string{{"run", "-o", "xml"}, {"--output=xml"}, {"run", "--junit", "nowhere/junit.xml"}} {
		code, stdout, stderr := c.matrix(args...)
		if code != exitInput || stdout != "" || !strings.Contains(stderr, "matrix: --") {
			t.Errorf("matrix %q: exit code %d, %s%s", args, code, stdout, stderr)
		}
	}
}
