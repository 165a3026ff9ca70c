package compat

import (
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// reader turns YAML nodes into values and collects the problems on the way. A nil node is
// one that the file lacks; whether it may is decided where the mapping is read.
type reader struct {
	file     string
	lines    int
	problems []Problem
}

func (r *reader) problem(n *yaml.Node, advice, format string, args ...any) {
	r.problemAt(position(n), advice, format, args...)
}

func (r *reader) problemAt(at Position, advice, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		File:    r.file,
		Line:    min(at.Line, r.lines), // a value that is missing at the very end is placed behind it
		Column:  at.Column,
		Message: fmt.Sprintf(format, args...),
		Advice:  advice,
	})
}

func position(n *yaml.Node) Position {
	return Position{Line: n.Line, Column: n.Column}
}

// keys are the keys that a mapping may have.
type keys struct {
	required []string
	optional []string
}

// mapping returns the value nodes of a mapping by key. It returns false if n is no mapping;
// missing, unknown and repeated keys are problems, but the others can be read nevertheless.
func (r *reader) mapping(path string, n *yaml.Node, allowed keys) (map[string]*yaml.Node, bool) {
	if n.Kind != yaml.MappingNode {
		r.wrongKind(path, n, "a mapping of keys to values")
		return nil, false
	}
	known := slices.Concat(allowed.required, allowed.optional)
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.problem(key, oneOf(known), "%s has a key that is not text", subject(path))
		case !slices.Contains(known, key.Value):
			r.problem(key, suggest(key.Value, known, oneOf(known)), "%s has the unknown key %q", subject(path), key.Value)
		case values[key.Value] != nil:
			r.problem(key, "keep one of them", "%s has the key %q twice, first in line %d", subject(path), key.Value, values[key.Value].Line)
		default:
			values[key.Value] = value
		}
	}
	for _, key := range allowed.required {
		if values[key] == nil {
			r.problem(n, "add it", "%s lacks the required key %q", subject(path), key)
		}
	}
	return values, true
}

// list calls read for each item of a list. An empty list is a problem if required.
func (r *reader) list(path string, n *yaml.Node, required bool, read func(path string, n *yaml.Node)) {
	if n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		r.wrongKind(path, n, "a list")
		return
	}
	if required && len(n.Content) == 0 {
		r.problem(n, "add at least one item", "%s is empty", path)
	}
	for i, item := range n.Content {
		read(fmt.Sprintf("%s[%d]", path, i), item)
	}
}

// text returns the text of a scalar. Numbers, booleans and dates are problems: YAML reads an
// unquoted 1.30 as the number 1.3.
func (r *reader) text(path string, n *yaml.Node) (string, bool) {
	if n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode {
		r.wrongKind(path, n, "text")
		return "", false
	}
	tag := n.ShortTag()
	switch {
	case tag == "!!null" || tag == "!!str" && strings.TrimSpace(n.Value) == "":
		r.problem(n, "give it a value or remove the key", "%s is empty", path)
		return "", false
	case tag != "!!str":
		r.problem(n, fmt.Sprintf("quote it: %q", n.Value), "%s is unquoted, and YAML reads %q as %s, not as text", path, n.Value, scalarName(tag))
		return "", false
	}
	return n.Value, true
}

// sentence returns a text of one line.
func (r *reader) sentence(path string, n *yaml.Node) string {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	// Folded blocks end in a newline that means nothing.
	value = strings.TrimSpace(value)
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.problem(n, "write it as one line of text", "%s holds a line break or another control character", path)
		return ""
	}
	return value
}

// choice returns a text that must be one of the choices.
func choice[T ~string](r *reader, path string, n *yaml.Node, choices ...T) T {
	value, ok := r.text(path, n)
	if !ok {
		return ""
	}
	if slices.Contains(choices, T(value)) {
		return T(value)
	}
	names := make([]string, len(choices))
	for i, c := range choices {
		names[i] = string(c)
	}
	r.problem(n, suggest(value, names, oneOf(names)), "%s is %q, which is not a known value", path, value)
	return ""
}

func (r *reader) wrongKind(path string, n *yaml.Node, want string) {
	if n.Kind == yaml.AliasNode {
		r.problem(n, "write the value out", "%s is a YAML alias, which this file does not allow", subject(path))
		return
	}
	r.problem(n, "write "+want, "%s is %s, not %s", subject(path), kindName(n), want)
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return scalarName(n.ShortTag())
	}
}

func scalarName(tag string) string {
	switch tag {
	case "!!str":
		return "text"
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "a boolean"
	case "!!timestamp":
		return "a date"
	default:
		return "a value of type " + tag
	}
}

// subject is the path, or a name for the whole file, which has no path.
func subject(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
