package workflows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
)

// workflow is what the tests read of a workflow.
type workflow struct {
	Permissions yaml.Node      `yaml:"permissions"`
	Jobs        map[string]job `yaml:"jobs"`
}

type job struct {
	Permissions map[string]string `yaml:"permissions"`
	Timeout     int               `yaml:"timeout-minutes"`
	Steps       []step            `yaml:"steps"`
}

type step struct {
	Uses yaml.Node `yaml:"uses"`
	Run  yaml.Node `yaml:"run"`
	With map[string]any
}

func TestWorkflows(t *testing.T) {
	root := repository(t)
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there are no workflows")
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems(content, root, string(makefile), pins) {
			t.Errorf("%s:%s", filepath.Base(file), problem)
		}
	}
}

// problems are what is wrong with a workflow, each beginning with a line. Pins are the commits of actions that were
// seen so far.
func problems(content []byte, root, makefile string, pins map[string]string) []string {
	var parsed workflow
	if err := yaml.Unmarshal(content, &parsed); err != nil {
		return []string{"1: " + err.Error()}
	}
	var found []string
	complain := func(line int, format string, args ...any) {
		found = append(found, fmt.Sprintf("%d: ", line)+fmt.Sprintf(format, args...))
	}
	var all map[string]string
	if err := parsed.Permissions.Decode(&all); err != nil || len(all) != 1 || all["contents"] != "read" {
		complain(parsed.Permissions.Line, "the permissions of all jobs are not contents: read; give a job what it needs beyond that")
	}
	for name, job := range parsed.Jobs {
		if job.Timeout == 0 {
			complain(1, "the job %s has no timeout-minutes", name)
		}
		for _, step := range job.Steps {
			if !step.Run.IsZero() {
				if problem := runProblem(step.Run.Value, root, makefile); problem != "" {
					complain(step.Run.Line, "%s: %q", problem, step.Run.Value)
				}
				continue
			}
			if problem := usesProblem(step, pins); problem != "" {
				complain(step.Uses.Line, "%s: %q", problem, step.Uses.Value)
			}
		}
	}
	slices.Sort(found)
	return found
}

var (
	// logic is what makes a command more than one command.
	logic = regexp.MustCompile("[;|&<>(){}`\n\\\\]")
	// toOutput is how a step hands a value to other jobs.
	toOutput = regexp.MustCompile(` >> "\$GITHUB_OUTPUT"$`)
	target   = regexp.MustCompile(`^[a-z-]+$`)
	pinned   = regexp.MustCompile(`^([\w.-]+/[\w.-]+)@([0-9a-f]{40})$`)
	tagged   = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
)

// runProblem is what is wrong with a command; empty if nothing is.
func runProblem(command, root, makefile string) string {
	command = toOutput.ReplaceAllString(strings.TrimSuffix(command, "\n"), "")
	if strings.Contains(command, "${{") {
		return "an expression in a command is run as code, whatever it holds: hand it over by env"
	}
	if logic.MatchString(command) {
		return "a step is one command: put more into a make target"
	}
	words := strings.Fields(command)
	switch {
	case len(words) == 0:
		return "there is no command"
	case words[0] == "make":
		return makeProblem(words[1:], makefile)
	case words[0] == "go" && len(words) > 2 && words[1] == "run":
		if info, err := os.Stat(filepath.Join(root, words[2])); err != nil || !info.IsDir() {
			return "there is no such program"
		}
		return ""
	case words[0] == "gh", slices.Equal(words[:min(2, len(words))], []string{"sudo", "sysctl"}):
		return ""
	default:
		return "a step is a make target, a program of this repository, or gh"
	}
}

func makeProblem(words []string, makefile string) string {
	targets := 0
	for _, word := range words {
		switch {
		case strings.HasPrefix(word, "--"), strings.Contains(word, "="):
		case target.MatchString(word) && strings.Contains(makefile, "\n"+word+":"):
			targets++
		default:
			return "the Makefile has no target " + word
		}
	}
	if targets != 1 {
		return "a step is one make target"
	}
	return ""
}

// usesProblem is what is wrong with the use of an action; empty if nothing is.
func usesProblem(step step, pins map[string]string) string {
	match := pinned.FindStringSubmatch(step.Uses.Value)
	if match == nil || !tagged.MatchString(step.Uses.LineComment) {
		return "an action is pinned by its commit, with its version as a comment"
	}
	action, commit := match[1], match[2]+" "+step.Uses.LineComment
	if before, seen := pins[action]; seen && before != commit {
		return "the action is pinned to another commit elsewhere"
	}
	pins[action] = commit
	if action == "actions/checkout" && step.With["persist-credentials"] != false {
		return "the token stays in the checkout, where every program finds it: set persist-credentials: false"
	}
	return ""
}

// TestProblems checks that what must not be in a workflow is found.
func TestProblems(t *testing.T) {
	root := repository(t)
	const sound = `permissions:
  contents: read
jobs:
  one:
    timeout-minutes: 5
    permissions:
      issues: write
    steps:
      - uses: actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2
        with:
          persist-credentials: false
      - run: make --silent test X="$Y" >> "$GITHUB_OUTPUT"
      - run: go run ./tools/release 1.0.0
`
	makefile := "\ntest: ## Run the tests\n\trun\n"
	if found := problems([]byte(sound), root, makefile, map[string]string{}); len(found) != 0 {
		t.Fatalf("nothing is wrong, but it says %q", found)
	}
	for _, test := range []struct{ old, new, says string }{
		{"contents: read", "contents: write", "2: the permissions of all jobs"},
		{"permissions:\n  contents: read\n", "", "the permissions of all jobs"},
		{"permissions:\n  contents: read\n", "permissions: write-all\n", "the permissions of all jobs"},
		{"    timeout-minutes: 5\n", "", "the job one has no timeout"},
		{"@de0fac2e4500dabe0009e67214ff5f5447ce83dd", "@v6", "9: an action is pinned"},
		{" # v6.0.2", " # v6", "9: an action is pinned"},
		{"@de0fac2e4500dabe0009e67214ff5f5447ce83dd", "@8e8c483db84b4bee98b60c0593521ed34d9990e8", "9: the action is pinned to another commit"},
		{"persist-credentials: false", "fetch-depth: 0", "9: the token stays"},
		{"make --silent test", "make --silent test && true", "12: a step is one command"},
		{"make --silent test", "make test release", "12: the Makefile has no target release"},
		{"make --silent test", "make test test", "12: a step is one make target"},
		{"make --silent test", "make", "12: a step is one make target"},
		{`X="$Y"`, `X="$(cat y)"`, "12: a step is one command"},
		{`X="$Y"`, `X=${{ github.event.title }}`, "12: an expression in a command"},
		{`>> "$GITHUB_OUTPUT"`, "> file", "12: a step is one command"},
		{"./tools/release", "./tools/missing", "13: there is no such program"},
		{"go run ./tools/release 1.0.0", "curl https://example.com", "13: a step is a make target"},
		{"go run ./tools/release 1.0.0", "|\n          make test\n          make test", "13: a step is one command"},
	} {
		if !strings.Contains(sound, test.old) {
			t.Fatalf("the workflow does not hold %q", test.old)
		}
		pins := map[string]string{"actions/checkout": "de0fac2e4500dabe0009e67214ff5f5447ce83dd # v6.0.2"}
		found := problems([]byte(strings.Replace(sound, test.old, test.new, 1)), root, makefile, pins)
		if len(found) != 1 || !strings.Contains(found[0], test.says) {
			t.Errorf("%q for %q: it says %q, want %q", test.new, test.old, found, test.says)
		}
	}
}

func repository(t *testing.T) string {
	t.Helper()
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	root, err := checkout.Root(working)
	if err != nil {
		t.Fatal(err)
	}
	return root
}
