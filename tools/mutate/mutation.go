package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// none is the id of no mutation.
const none = -1

// mutation is one change.
type mutation struct {
	id   int
	file *file
	line int
	what string
	// alone is set for a change that needs a build of its own.
	alone *edit
}

func (m mutation) String() string { return fmt.Sprintf("%s:%d: %s", m.file.name, m.line, m.what) }

// file is one source file, and the edits that switch its mutations.
type file struct {
	name      string
	content   []byte
	positions *token.FileSet
	edits     []edit
	add       func(mutation) (id int)
}

// mutationsOf are the files of a package and the mutations of all, those last that take
// a build each.
func mutationsOf(folder string) (files []*file, all []mutation, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	add := func(m mutation) int {
		m.id = len(all)
		all = append(all, m)
		return m.id
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		f := &file{name: name, content: content, positions: token.NewFileSet(), add: add}
		tree, err := parser.ParseFile(f.positions, name, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		ast.Inspect(tree, f.visit)
		files = append(files, f)
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("there is nothing to change in %s", folder)
	}
	slices.SortStableFunc(all, func(a, b mutation) int {
		switch {
		case a.alone == nil && b.alone != nil:
			return -1
		case a.alone != nil && b.alone == nil:
			return 1
		}
		return 0
	})
	return files, all, nil
}

// operators are what a comparison or a logical operator is replaced by.
var operators = map[token.Token]token.Token{
	token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.LSS: token.LEQ, token.LEQ: token.LSS,
	token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.LAND: token.LOR, token.LOR: token.LAND,
}

func (f *file) visit(node ast.Node) bool {
	switch node := node.(type) {
	case *ast.GenDecl:
		if node.Tok == token.IMPORT {
			return false
		}
	case *ast.BinaryExpr:
		if other, ok := operators[node.Op]; ok {
			with := f.text(node.X) + other.String() + f.text(node.Y)
			f.condition(node, with, fmt.Sprintf("%s for %s in %s", other, node.Op, brief(f.text(node))))
		}
	case *ast.UnaryExpr:
		if node.Op == token.NOT {
			f.condition(node, f.text(node.X), "without ! in "+brief(f.text(node)))
		}
	case *ast.Ident:
		if other, ok := map[string]string{"true": "false", "false": "true"}[node.Name]; ok {
			f.condition(node, other, other+" for "+node.Name)
		}
	case *ast.BasicLit:
		if number, err := strconv.Atoi(node.Value); node.Kind == token.INT && err == nil {
			f.alone(node, node.Pos(), node.End(), strconv.Itoa(number+1), fmt.Sprintf("%d for %d", number+1, number))
		}
	case *ast.IfStmt:
		if condition := f.text(node.Cond); !comparison(node.Cond) {
			f.condition(node.Cond, "!("+condition+")", "the opposite of if "+brief(condition))
		}
		f.body(node.Body, "if "+f.text(node.Cond))
	case *ast.RangeStmt:
		f.body(node.Body, "the loop over "+f.text(node.X))
	case *ast.ForStmt:
		f.body(node.Body, "the loop")
	case *ast.SwitchStmt:
		for _, clause := range node.Body.List {
			f.clause(clause.(*ast.CaseClause), node.Tag != nil)
		}
	case *ast.BlockStmt:
		f.statements(node.List)
	case *ast.CaseClause:
		f.statements(node.Body)
	case *ast.CallExpr:
		f.chain(node)
	}
	return true
}

// comparison says that the opposite of the condition is among the mutations anyway.
func comparison(condition ast.Expr) bool {
	switch condition := condition.(type) {
	case *ast.BinaryExpr:
		return condition.Op == token.EQL || condition.Op == token.NEQ
	case *ast.UnaryExpr:
		return condition.Op == token.NOT
	}
	return false
}

// condition evaluates with instead of a boolean expression.
func (f *file) condition(node ast.Expr, with, what string) {
	id := f.mutation(node, what)
	f.around(node.Pos(), node.End(), fmt.Sprintf("(mutated(%d) && (%s) || !mutated(%[1]d) && (", id, with), "))")
}

func (f *file) body(body *ast.BlockStmt, of string) {
	if len(body.List) > 0 {
		id := f.mutation(body, "without the body of "+brief(of))
		f.around(body.Lbrace+1, body.Rbrace, fmt.Sprintf("if !mutated(%d) {", id), "}")
	}
}

// statements removes those that can be done without as far as the compiler can tell.
func (f *file) statements(list []ast.Stmt) {
	for _, statement := range list {
		switch statement := statement.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
		case *ast.AssignStmt:
			if statement.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		id := f.mutation(statement, "without "+brief(f.text(statement)))
		f.around(statement.Pos(), statement.End(), fmt.Sprintf("if !mutated(%d) { ", id), " }")
	}
}

func (f *file) clause(clause *ast.CaseClause, tagged bool) {
	what := "without " + brief(f.text(clause))
	if tagged || clause.List == nil {
		f.alone(clause, clause.Pos(), clause.End(), "", what)
		return
	}
	id := f.mutation(clause, what)
	for _, condition := range clause.List {
		f.around(condition.Pos(), condition.End(), fmt.Sprintf("!mutated(%d) && (", id), ")")
	}
}

// chain leaves a call out of a chain of builder calls: x().With(y) becomes x().
func (f *file) chain(call *ast.CallExpr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(method.Sel.Name, "With") {
		return
	}
	if _, ok := method.X.(*ast.CallExpr); !ok {
		return
	}
	arguments := string(f.content[f.offset(call.Lparen)+1 : f.offset(call.Rparen)])
	what := "without ." + method.Sel.Name + "(" + brief(arguments) + ")"
	if call.Ellipsis.IsValid() {
		f.alone(method.Sel, method.X.End(), call.End(), "", what)
		return
	}
	id := f.mutation(method.Sel, what)
	f.around(method.X.Pos(), method.X.End(), fmt.Sprintf("chained(%d, ", id), "")
	f.edits = append(f.edits, edit{start: f.offset(method.X.End()), end: f.offset(call.Lparen) + 1,
		text: fmt.Sprintf(", %q, ", method.Sel.Name)})
}

func (f *file) mutation(node ast.Node, what string) (id int) {
	return f.add(mutation{file: f, line: f.positions.Position(node.Pos()).Line, what: what})
}

func (f *file) alone(node ast.Node, start, end token.Pos, with, what string) {
	f.add(mutation{file: f, line: f.positions.Position(node.Pos()).Line, what: what,
		alone: &edit{start: f.offset(start), end: f.offset(end), text: with}})
}

func (f *file) around(start, end token.Pos, before, after string) {
	f.edits = append(f.edits,
		edit{start: f.offset(start), end: f.offset(start), text: before},
		edit{start: f.offset(end), end: f.offset(end), text: after, closes: true})
}

func (f *file) offset(position token.Pos) int { return f.positions.Position(position).Offset }

func (f *file) text(node ast.Node) string {
	return string(f.content[f.offset(node.Pos()):f.offset(node.End())])
}

// brief fits source text into a line.
func brief(text string) string {
	const most = 70
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
