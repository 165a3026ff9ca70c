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

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
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
		{"no release", test, "since: \"0.5.0\"", "until: \"0.5.0\"", "label since"},
		{"unknown release", test, "since: \"0.5.0\"", "since: \"0.5.1\"", "label since"},
		{"no README", "roll-forward/README.md", "", "", "README.md"},
		{"two sentences in the README", "roll-forward/README.md", "end.", "end. And it is fast.", "one sentence"},
		{"unnamed step", test, "- name: given a runtime\n    use", "- use", "step has no name"},
		{"missing template", test, "../steps/settle-time.yaml", "../steps/setle-time.yaml", "setle-time.yaml"},
		{"unused template", "steps/idle.yaml", "", "kind: StepTemplate", "no scenario uses it"},
		{"unused binding", test, "  steps:", "  - name: idle\n    value: idle\n  steps:", "binding idle"},
		{"timeout not named", ".chainsaw.yaml", "    delete: 2m\n", "", "timeout delete"},
		{"timeout in a step", "steps/settled.yaml", "assert:", "assert:\n      timeout: 5s", "timeout belongs"},
		{"timeouts in a test", test, "  steps:", "  timeouts: {assert: 5s}\n  steps:", "timeouts belongs"},
		{"script", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "script:\n      content: sleep 3", "operation script"},
		{"command", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "command:\n      entrypoint: sleep", "operation command"},
		{"wait", "steps/settle-time.yaml", "sleep:\n      duration: 3s", "wait:\n      apiVersion: v1\n      kind: Pod", "operation wait"},
		{"pod logs on failure", "steps/settle-time.yaml", "spec:\n", "spec:\n  catch:\n  - podLogs: {name: rt}\n", "operation podLogs"},
		{"image", "steps/set-image.yaml", "image:\n            repository: ($values.repository)", "image:\n            repository: ghcr.io/trussiumhq/trussium", "image reference"},
		{"tag", "steps/set-image.yaml", "tag: ($tag)", "tag: 1.28.0", "image reference"},
		{"image in an expression", "steps/given-runtime.yaml", "repository: $values.repository, tag", "repository: 'docker.io/library/trussium', tag", "image reference"},
		{"tag in the values", "values.yaml", "provider:\n", "from: 1.27.0\nprovider:\n", "image reference"},
		{"time of its own", "steps/set-image.yaml", "try:\n", "try:\n  - sleep:\n      duration: 1s\n", "sleep belongs"},
		{"line break in an expression", "steps/given-runtime.yaml", "          && {image", "            && {image", "line break"},
		{"namespace", "steps/settled.yaml", "name: ($runtime)", "name: ($runtime)\n          namespace: default", "namespace"},
		{"function of an absent status", "steps/settled.yaml", "readyReplicas: ($object.spec.replicas)", "(length(conditions)): 6", "absent"},
		{"function of an absent field of a list", "steps/serving.yaml", "metadata.labels", "starts_with(metadata.name, $runtime) && metadata.labels", "absent"},
		{"function of an absent condition", "steps/upgrade-state.yaml", "message | [0] || ''", "message | [0]", "absent"},
		{"unknown variable", "steps/settled.yaml", "desiredImage: ($image)", "desiredImage: ($images)", "variable not defined: $images"},
		{"unknown function", "steps/settled.yaml", "desiredImage: ($image)", "desiredImage: (uper($image))", "uper"},
		{"map as an argument", "chain-a-b-c/chainsaw-test.yaml", "value: '({replicas: `2`})'", "value: {replicas: 2}", "invalid type for: map"},
		{"broken expression", "steps/settled.yaml", "desiredImage: ($image)", "desiredImage: ($image ||)", "expression in error"},
		{"drift of another type", "drift-correction/chainsaw-test.yaml", "targetPort: drifted", "targetPort: 1", "another type"},
		{"not before a path", "steps/serving.yaml", "!(metadata.deletionTimestamp)", "!metadata.deletionTimestamp", "binds before the dot"},
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

// spoil replaces a text in a file. Without a text to replace it makes the file, or removes it
// if there is nothing to put into it.
func spoil(t *testing.T, file, old, replacement string) {
	t.Helper()
	if old == "" && replacement != "" {
		write(t, file, replacement)
		return
	}
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

// sleepFile is where the one settle time is, so that it has a name, too.
const sleepFile = "steps/settle-time.yaml"

var (
	// quoted are the texts and literals in an expression.
	quoted = regexp.MustCompile("'[^']*'|`[^`]*`|\"[^\"]*\"")
	// notPath is a negation that takes only the first part of the path that follows.
	notPath = regexp.MustCompile(`!\w+\.`)
)

// imageReference is a registry's host followed by a path.
var imageReference = regexp.MustCompile(`\b[a-z0-9-]+\.(io|com|dev)/[a-z0-9]+/[a-z0-9]`)

// linter collects findings in the form file:line: text.
type linter struct {
	dir      string
	findings []string
	// documents are the files that were read, by name.
	documents map[string]*yaml.Node
	// unused are the templates that no scenario has used yet.
	unused map[string]bool
}

// templateDir holds the steps that scenarios share.
const templateDir = "steps"

func lint(t *testing.T, dir string) []string {
	t.Helper()
	l := &linter{dir: dir, documents: map[string]*yaml.Node{}, unused: map[string]bool{}}
	l.configuration(l.parse(t, configurationFile))
	templates, err := filepath.Glob(filepath.Join(dir, templateDir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, template := range templates {
		l.unused[filepath.Join(templateDir, filepath.Base(template))] = true
	}
	releases := releases(t)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		file, err := filepath.Rel(dir, path)
		if err != nil || file == configurationFile {
			return err
		}
		document := l.parse(t, file)
		if filepath.Base(file) == testFile {
			l.labels(file, document, releases)
			l.test(t, file, document)
		}
		l.walk(file, document)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for template := range l.unused {
		l.findings = append(l.findings, template+": no scenario uses it")
	}
	slices.Sort(l.findings)
	return slices.Compact(l.findings) // a template is looked at in each of its uses
}

// releases are the versions that a scenario can say it is for: those that are declared, and the
// candidate.
func releases(t *testing.T) []string {
	t.Helper()
	file, err := compat.Load(filepath.Join(suiteDir, "..", "compatibility.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := artifact.CheckoutVersion(filepath.Join(suiteDir, ".."))
	if err != nil {
		t.Fatal(err)
	}
	versions := []string{candidate}
	for _, release := range file.OperatorReleases {
		versions = append(versions, release.Version)
	}
	return versions
}

func (l *linter) text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(l.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (l *linter) parse(t *testing.T, file string) *yaml.Node {
	t.Helper()
	if known := l.documents[file]; known != nil {
		return known
	}
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(l.text(t, file)), &document); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	l.documents[file] = document.Content[0]
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

func (l *linter) labels(file string, document *yaml.Node, releases []string) {
	labels := at(document, "metadata", "labels")
	if level := text(at(labels, "level")); level != "smoke" && level != "full" {
		l.find(file, document, "label level is %q, want smoke or full", level)
	}
	if text(at(labels, "feature")) == "" {
		l.find(file, document, "label feature is missing: say which feature the scenario is about")
	}
	if since := text(at(labels, sinceLabel)); !slices.Contains(releases, since) {
		l.find(file, document, "label since is %q: name the first release that has the feature, one of %s", since, strings.Join(releases, ", "))
	}
}

// test wants a README sentence, steps with names, templates that exist, bindings that are used,
// and expressions that can be evaluated.
func (l *linter) test(t *testing.T, file string, document *yaml.Node) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(l.dir, filepath.Dir(file), "README.md"))
	if err != nil {
		l.find(file, document, "README.md is missing: say in one sentence what the scenario proves")
	} else if sentence := strings.TrimSpace(string(readme)); !strings.HasSuffix(sentence, ".") || strings.Contains(sentence, ". ") {
		l.find(file, document, "README.md must be one sentence")
	}
	complete := true
	uses := l.text(t, file)
	for _, step := range items(at(document, "spec", "steps")) {
		if text(at(step, "name")) == "" {
			l.find(file, step, "a step has no name: the report shows it")
		}
		template := at(step, "use", "template")
		if template == nil {
			continue
		}
		path := filepath.Join(filepath.Dir(file), template.Value)
		if _, err := os.Stat(filepath.Join(l.dir, path)); err != nil {
			l.find(file, template, "template %s does not exist", template.Value)
			complete = false
			continue
		}
		delete(l.unused, path)
		uses += l.text(t, path)
	}
	for _, bound := range items(at(document, "spec", "bindings")) {
		name := text(at(bound, "name"))
		if !regexp.MustCompile(`\$` + name + `\b`).MatchString(uses) {
			l.find(file, bound, "binding %s is used nowhere", name)
		}
	}
	if complete {
		l.evaluate(t, file, document)
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
		if isExpression(node) && notPath.MatchString(quoted.ReplaceAllString(node.Value, "")) {
			l.find(file, node, "! binds before the dot: write !(a.b)")
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
	case name == "sleep" && file != sleepFile:
		l.find(file, key, "sleep belongs into %s", sleepFile)
	case name == "try" || name == "catch" || name == "finally" || name == "cleanup":
		l.operations(file, value)
	case name == "namespace" && literal:
		l.find(file, key, "namespace %s: leave it out, the run decides", value.Value)
	case literal && slices.Contains(imageFields, name) && !imageReference.MatchString(value.Value):
		l.find(file, key, "%s: %s is part of an image reference: take it from the values", name, value.Value)
	}
}

func (l *linter) operations(file string, list *yaml.Node) {
	var patched []*yaml.Node
	for _, entry := range items(list) {
		if resource := at(entry, "patch", "resource"); resource != nil {
			patched = append(patched, resource)
		}
		for _, before := range patched {
			if resource := at(entry, "assert", "resource"); text(at(resource, "kind")) == text(at(before, "kind")) {
				l.sameTypes(file, before, resource)
			}
		}
		for i := 0; i < len(entry.Content); i += 2 {
			name := entry.Content[i].Value
			if !slices.Contains(usableOperations, name) && !slices.Contains(operationFields, name) {
				l.find(file, entry.Content[i], "operation %s needs a shell or kubectl: use only %s", name, strings.Join(usableOperations, ", "))
			}
		}
	}
}

// sameTypes wants a field that is patched and then asserted to have values of one type: an assertion that still sees the
// patched one can't compare it with another type, and fails at once instead of trying again.
func (l *linter) sameTypes(file string, patched, asserted *yaml.Node) {
	switch {
	case asserted.Kind == yaml.MappingNode:
		for i := 0; i < len(asserted.Content); i += 2 {
			if before := at(patched, asserted.Content[i].Value); before != nil {
				l.sameTypes(file, before, asserted.Content[i+1])
			}
		}
	case asserted.Kind == yaml.SequenceNode:
		before := items(patched)
		for i, item := range asserted.Content[:min(len(asserted.Content), len(before))] {
			l.sameTypes(file, before[i], item)
		}
	case patched.Kind == yaml.ScalarNode && patched.Tag != "!!null" && !isExpression(patched) && !isExpression(asserted) && patched.Tag != asserted.Tag:
		l.find(file, patched, "%s is patched where %s is asserted, which is of another type", patched.Value, asserted.Value)
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
