package compat

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// names are the names that items of one kind have in the file. They are unique, and other
// items refer to them.
type names struct {
	r       *reader
	kind    string
	known   []string
	lines   map[string]int
	pending []func()
}

func (r *reader) names(kind string) *names {
	return &names{r: r, kind: kind, lines: map[string]int{}}
}

// add notes the name that the node gives to an item. An empty name was a problem before.
func (s *names) add(name string, n *yaml.Node) {
	if name == "" {
		return
	}
	if first, ok := s.lines[name]; ok {
		advice := "keep one of them"
		if s.kind == "row" {
			advice = "give one of them another id"
		}
		s.r.problem(n, advice, "%s %q is listed twice, first in line %d", s.kind, name, first)
		return
	}
	s.lines[name] = n.Line
	s.known = append(s.known, name)
}

// refer returns the name that the node refers to. A name that is not known is a problem.
func (s *names) refer(path string, n *yaml.Node) string {
	name, ok := s.r.text(path, n)
	if !ok {
		return ""
	}
	s.check(path, n, name)
	return name
}

// referLater checks the reference when all names are known.
func (s *names) referLater(path string, n *yaml.Node, name string) {
	s.pending = append(s.pending, func() { s.check(path, n, name) })
}

// resolve checks the references that had to wait.
func (s *names) resolve() {
	for _, check := range s.pending {
		check()
	}
}

func (s *names) check(path string, n *yaml.Node, name string) {
	if name == "" || slices.Contains(s.known, name) {
		return
	}
	otherwise := "list it, or use one of " + strings.Join(s.known, ", ")
	if len(s.known) == 0 {
		otherwise = "list it"
	}
	s.r.problem(n, suggest(name, s.known, otherwise), "%s names the %s %q, which the file does not list", path, s.kind, name)
}
