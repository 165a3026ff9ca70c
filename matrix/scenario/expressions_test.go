package scenario

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/jmespath-community/go-jmespath/pkg/binding"
	"github.com/jmespath-community/go-jmespath/pkg/functions"
	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"
	"gopkg.in/yaml.v3"
)

// Chainsaw tries an assertion again that does not hold, but ends the scenario at once when an
// expression can't be evaluated. So every expression is evaluated in an empty world: objects
// have no fields, lists hold such an object, and only what the suite itself sets is there.

// evaluator evaluates the expressions of one scenario, in the order of their use.
type evaluator struct {
	*linter
	file     string
	bindings binding.Bindings
}

// emptyWorld are chainsaw's functions as far as scenarios use them, and those of the language.
var emptyWorld = interpreter.NewFunctionCaller(append(functions.GetDefaultFunctions(),
	stub("regex_match", false, functions.JpString, functions.JpString),
	stub("x_k8s_exists", false, functions.JpAny, functions.JpString, functions.JpString, functions.JpString, functions.JpString),
	stub("x_k8s_get", map[string]any{}, functions.JpAny, functions.JpString, functions.JpString, functions.JpString, functions.JpString),
	stub("x_k8s_list", map[string]any{"items": []any{map[string]any{}}}, functions.JpAny, functions.JpString, functions.JpString, functions.JpString),
)...)

// stub is a function that checks the types of its arguments and always returns the result.
func stub(name string, result any, arguments ...functions.JpType) functions.FunctionEntry {
	entry := functions.FunctionEntry{Name: name, Handler: func([]any) (any, error) { return result, nil }}
	for _, argument := range arguments {
		entry.Arguments = append(entry.Arguments, functions.ArgSpec{Types: []functions.JpType{argument}})
	}
	return entry
}

// evaluate follows a test through its steps, and reads the templates where they are used.
func (l *linter) evaluate(t *testing.T, file string, document *yaml.Node) {
	var values map[string]any
	if err := l.parse(t, valuesFile).Decode(&values); err != nil {
		t.Fatal(err)
	}
	e := evaluator{linter: l, file: file, bindings: binding.NewBindings()}
	name := text(at(document, "metadata", "name"))
	for variable, value := range map[string]any{
		"values": values, "namespace": "namespace", "client": map[string]any{},
		"test": map[string]any{"metadata": map[string]any{"name": name}},
	} {
		e.set(variable, value)
	}
	e = e.bind(at(document, "spec", "bindings"))
	for _, step := range items(at(document, "spec", "steps")) {
		inner, operations := e, at(step, "try")
		if template := at(step, "use", "template"); template != nil {
			path := filepath.Join(filepath.Dir(file), template.Value)
			used := l.parse(t, path)
			operations = at(used, "spec", "try")
			inner = e.in(path).bind(at(used, "spec", "bindings")).in(file).bind(at(step, "use", "with", "bindings")).in(path)
		}
		inner = inner.bind(at(step, "bindings"))
		for _, operation := range items(operations) {
			for i := 1; i < len(operation.Content); i += 2 {
				inner.operation(operation.Content[i])
			}
		}
	}
}

// in returns the evaluator for another file, with the same bindings.
func (e evaluator) in(file string) evaluator {
	e.file = file
	return e
}

// operation evaluates what is in one operation. A check of its outcome sees its error.
func (e evaluator) operation(operation *yaml.Node) {
	e = e.bind(at(operation, "bindings"))
	e.tree(at(operation, "resource"))
	e.tree(at(operation, "ref"))
	e.set("error", nil)
	for _, expected := range items(at(operation, "expect")) {
		e.tree(at(expected, "check"))
	}
}

// bind returns the evaluator with a list of bindings added.
func (e evaluator) bind(list *yaml.Node) evaluator {
	for _, entry := range items(list) {
		e.set(text(at(entry, "name")), e.value(at(entry, "value")))
	}
	return e
}

func (e *evaluator) set(name string, value any) {
	e.bindings = e.bindings.Register("$"+name, binding.NewBinding(value))
}

// value is what a binding stands for. A map that is written in YAML is not what functions of
// the language call an object.
func (e evaluator) value(node *yaml.Node) any {
	switch {
	case node == nil:
		return nil
	case node.Kind == yaml.MappingNode:
		mapping := map[any]any{}
		for i := 0; i < len(node.Content); i += 2 {
			mapping[node.Content[i].Value] = e.value(node.Content[i+1])
		}
		return mapping
	case node.Kind == yaml.SequenceNode:
		list := []any{}
		for _, item := range node.Content {
			list = append(list, e.value(item))
		}
		return list
	case isExpression(node):
		return e.result(node, nil)
	}
	var literal any
	if err := node.Decode(&literal); err != nil {
		e.find(e.file, node, "%v", err)
	}
	return literal
}

// tree evaluates every expression in a tree, whether key or value, where it stands on nothing
// and where it stands on an empty object.
func (e evaluator) tree(node *yaml.Node) {
	if node == nil {
		return
	}
	if isExpression(node) {
		e.result(node, nil)
		e.result(node, map[string]any{})
	}
	for _, child := range node.Content {
		e.tree(child)
	}
}

func (e evaluator) result(node *yaml.Node, input any) any {
	parsed, err := parsing.NewParser().Parse(node.Value)
	if err != nil {
		e.find(e.file, node, "expression in error: %v", err)
		return nil
	}
	result, err := interpreter.NewInterpreter(input, e.bindings).Execute(parsed, input, interpreter.WithFunctionCaller(emptyWorld))
	if err != nil {
		e.find(e.file, node, "expression fails where something is absent: %v", err)
	}
	return result
}

// expression is chainsaw's form of one.
var expression = regexp.MustCompile(`^\(.+\)$`)

func isExpression(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && expression.MatchString(node.Value)
}
