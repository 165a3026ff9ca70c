package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// suiteDir is the suite of this repository.
const suiteDir = "../../chainsaw"

func TestSuiteFollowsItsRules(t *testing.T) {
	for _, finding := range lint(t, suiteDir) {
		t.Error(finding)
	}
}

// Each rule is shown to find what it is for: the suite is copied, and one thing is spoiled.
func TestLintFinds(t *testing.T) {
	const test = "roll-forward/chainsaw-test.yaml"
	for _, spoiled := range []struct {
		name     string
		file     string
		old, new string
		want     string
	}{
		{"no level", test, "level: smoke", "other: smoke", "label level"},
		{"unknown level", test, "level: smoke", "level: quick", "label level"},
		{"no feature", test, "    feature: runtime-image\n", "", "label feature"},
		{"no README", "roll-forward/README.md", "", "", "README.md"},
		{"two sentences in the README", "roll-forward/README.md", "end.", "end. And it is fast.", "one sentence"},
		{"unnamed step", test, "- name: given a runtime\n    use", "- use", "step has no name"},
		{"missing template", test, "../steps/rolling.yaml", "../steps/roling.yaml", "roling.yaml"},
		{"timeout not named", ".chainsaw.yaml", "    delete: 2m\n", "", "timeout delete"},
		{"timeout in a step", "steps/rolling.yaml", "assert:", "assert:\n      timeout: 5s", "timeout belongs"},
		{"timeouts in a test", test, "  steps:", "  timeouts: {assert: 5s}\n  steps:", "timeouts belongs"},
		{"script", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "script:\n      content: sleep 3", "operation script"},
		{"command", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "command:\n      entrypoint: sleep", "operation command"},
		{"wait", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "wait:\n      apiVersion: v1\n      kind: Pod", "operation wait"},
		{"pod logs on failure", "steps/settle-time.yaml", "spec:\n", "spec:\n  catch:\n  - podLogs: {name: rt}\n", "operation podLogs"},
		{"image", "steps/set-image.yaml", "image:\n            repository: ($values.repository)", "image:\n            repository: ghcr.io/trussiumhq/trussium", "image reference"},
		{"tag", "steps/set-image.yaml", "tag: ($tag)", "tag: 1.28.0", "image reference"},
		{"image in an expression", "steps/given-runtime.yaml", "repository: $values.repository, tag", "repository: 'docker.io/library/trussium', tag", "image reference"},
		{"tag in the values", "values.yaml", "provider:\n", "from: 1.27.0\nprovider:\n", "image reference"},
		{"line break in an expression", "steps/given-runtime.yaml", "          && {image", "            && {image", "line break"},
		{"namespace", "steps/rolling.yaml", "name: ($runtime)", "name: ($runtime)\n          namespace: default", "namespace"},
	} {
		t.Run(spoiled.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(suiteDir)); err != nil {
				t.Fatal(err)
			}
			spoil(t, filepath.Join(dir, spoiled.file), spoiled.old, spoiled.new)
			findings := lint(t, dir)
			if len(findings) != 1 || !strings.Contains(findings[0], spoiled.want) {
				t.Errorf("found %q, want one finding with the words %q", findings, spoiled.want)
			}
		})
	}
}

// spoil replaces a text in a file, or removes the file if there is no text to replace.
func spoil(t *testing.T, file, old, replacement string) {
	t.Helper()
	if old == "" {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), old, replacement, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// usableOperations need nothing but the API server. All others of chainsaw's operations run
// a shell, a command or kubectl: command, describe, events, get, podLogs, proxy, script, wait.
var usableOperations = []string{"apply", "assert", "create", "delete", "error", "patch", "sleep", "update"}

// operationFields stand beside the operation in an entry of try, catch, finally or cleanup.
var operationFields = []string{"compiler", "continueOnError", "description"}

// timeoutNames are chainsaw's kinds of timeouts.
var timeoutNames = []string{"apply", "assert", "cleanup", "delete", "error", "exec"}

// imageFields hold parts of an image reference.
var imageFields = []string{"digest", "from", "image", "repository", "tag", "to"}

// imageReference is a registry's host followed by a path.
var imageReference = regexp.MustCompile(`\b[a-z0-9-]+\.(io|com|dev)/[a-z0-9]+/[a-z0-9]`)

// linter collects findings in the form file:line: text.
type linter struct {
	dir      string
	findings []string
}

func lint(t *testing.T, dir string) []string {
	t.Helper()
	l := &linter{dir: dir}
	l.configuration(l.parse(t, configurationFile))
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err != nil || file == configurationFile {
			return err
		}
		document := l.parse(t, file)
		if filepath.Base(file) == testFile {
			l.test(file, document)
		}
		l.walk(file, document)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return l.findings
}

func (l *linter) parse(t *testing.T, file string) *yaml.Node {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(l.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return document.Content[0]
}

func (l *linter) find(file string, node *yaml.Node, format string, args ...any) {
	l.findings = append(l.findings, fmt.Sprintf("%s:%d: %s", file, node.Line, fmt.Sprintf(format, args...)))
}

// configuration wants every timeout to have its name in one place.
func (l *linter) configuration(document *yaml.Node) {
	timeouts := at(document, "spec", "timeouts")
	for _, name := range timeoutNames {
		if at(timeouts, name) == nil {
			l.find(configurationFile, document, "timeout %s is missing from spec.timeouts", name)
		}
	}
}

// test wants labels, a README sentence, and steps with names and templates that exist.
func (l *linter) test(file string, document *yaml.Node) {
	labels := at(document, "metadata", "labels")
	if level := text(at(labels, "level")); level != "smoke" && level != "full" {
		l.find(file, document, "label level is %q, want smoke or full", level)
	}
	if text(at(labels, "feature")) == "" {
		l.find(file, document, "label feature is missing: say which feature the scenario is about")
	}
	readme, err := os.ReadFile(filepath.Join(l.dir, filepath.Dir(file), "README.md"))
	if err != nil {
		l.find(file, document, "README.md is missing: say in one sentence what the scenario proves")
	} else if sentence := strings.TrimSpace(string(readme)); !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, ". ") {
		l.find(file, document, "README.md must be one sentence")
	}
	for _, step := range items(at(document, "spec", "steps")) {
		if text(at(step, "name")) == "" {
			l.find(file, step, "a step has no name: the report shows it")
		}
		if template := at(step, "use", "template"); template != nil {
			if _, err := os.Stat(filepath.Join(l.dir, filepath.Dir(file), template.Value)); err != nil {
				l.find(file, template, "template %s does not exist", template.Value)
			}
		}
	}
}

// walk looks at every field of a document, whatever its place.
func (l *linter) walk(file string, node *yaml.Node) {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			l.field(file, node.Content[i], node.Content[i+1])
			l.walk(file, node.Content[i])
			l.walk(file, node.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, item := range node.Content {
			l.walk(file, item)
		}
	case yaml.ScalarNode:
		// Deeper indentation in a folded text keeps the line break.
		if strings.HasPrefix(node.Value, "(") && strings.Contains(node.Value, "\n") {
			l.find(file, node, "expression with a line break: chainsaw takes it for a text; fold it, with one indentation")
		}
		// The repository has its default in the values, and only there.
		if imageReference.MatchString(node.Value) && file != valuesFile {
			l.find(file, node, "image reference %s: take it from the values", node.Value)
		}
	}
}

func (l *linter) field(file string, key, value *yaml.Node) {
	literal := value.Kind == yaml.ScalarNode && !strings.HasPrefix(value.Value, "(")
	switch name := key.Value; {
	case name == "timeout" || name == "timeouts":
		l.find(file, key, "%s belongs into %s, where every timeout has its name", name, configurationFile)
	case name == "try" || name == "catch" || name == "finally" || name == "cleanup":
		l.operations(file, value)
	case name == "namespace" && literal:
		l.find(file, key, "namespace %s: leave it out, the run decides", value.Value)
	case literal && slices.Contains(imageFields, name) && !imageReference.MatchString(value.Value):
		l.find(file, key, "%s: %s is part of an image reference: take it from the values", name, value.Value)
	}
}

func (l *linter) operations(file string, list *yaml.Node) {
	for _, entry := range items(list) {
		for i := 0; i < len(entry.Content); i += 2 {
			name := entry.Content[i].Value
			if !slices.Contains(usableOperations, name) && !slices.Contains(operationFields, name) {
				l.find(file, entry.Content[i], "operation %s needs a shell or kubectl: use only %s", name, strings.Join(usableOperations, ", "))
			}
		}
	}
}

// at follows keys through mappings and returns nil where one is missing.
func at(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if node == nil || node.Kind != yaml.MappingNode {
			return nil
		}
		i := 0
		for i < len(node.Content) && node.Content[i].Value != key {
			i += 2
		}
		if i >= len(node.Content) {
			return nil
		}
		node = node.Content[i+1]
	}
	return node
}

func items(node *yaml.Node) []*yaml.Node {
	if node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	return node.Content
}

func text(node *yaml.Node) string {
	if node == nil {
		return ""
	}
	return node.Value
}
