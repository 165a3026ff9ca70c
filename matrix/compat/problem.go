package compat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a compatibility file.
type Problem struct {
	// File is the path as it was given to Load.
	File string
	// Line and Column count from 1.
	Line   int
	Column int
	// Message says what is wrong.
	Message string
	// Advice says what to do about it. It may be empty.
	Advice string
}

// String is the problem in one line: file:line:column: what is wrong; what to do.
func (p Problem) String() string {
	text := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	if p.Advice != "" {
		text += "; " + p.Advice
	}
	return text
}

// Error lists everything that is wrong with a compatibility file. It is bad input, never a
// fault of the machine.
type Error struct {
	// Problems are sorted by position. There is at least one.
	Problems []Problem
}

// Error returns one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// asError returns nil if there are no problems.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: problems}
}
