package report

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// writer writes Markdown.
type writer struct {
	bytes.Buffer
}

func (w *writer) line(format string, args ...any) {
	if len(args) == 0 {
		w.WriteString(format)
	} else {
		fmt.Fprintf(w, format, args...)
	}
	w.WriteByte('\n')
}

// table writes values that are Markdown already, but for bars.
func (w *writer) table(head []string, rows [][]string) {
	w.row(head)
	w.line("|%s", strings.Repeat(" --- |", len(head)))
	for _, row := range rows {
		w.row(row)
	}
}

func (w *writer) row(values []string) {
	w.WriteByte('|')
	for _, value := range values {
		w.WriteString(" " + strings.ReplaceAll(value, "|", `\|`) + " |")
	}
	w.WriteByte('\n')
}

// text makes Markdown of a text of any origin: one line that shows what it says, and is no markup. It must not begin a
// line, where more characters have a meaning.
func text(plain string) string {
	return markup.Replace(oneLine(plain))
}

var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "<", "&lt;", "&", "&amp;")

// claimText makes Markdown of a sentence of the matrix itself, whose code spans stay.
func claimText(sentence string) string {
	return strings.NewReplacer(`\`, `\\`, "<", "&lt;", "[", `\[`).Replace(oneLine(sentence))
}

// code makes a code span. There is no empty one.
func code(plain string) string {
	if plain == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(oneLine(plain), "`", "'") + "`"
}

// oneLine joins the lines of a text, and drops what is not to be seen: control characters, and those that change the
// direction of the text around them.
func oneLine(plain string) string {
	visible := func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}
	return strings.Join(strings.Fields(strings.Map(visible, plain)), " ")
}

// shorten cuts a text that is longer than so many characters.
func shorten(plain string, limit int) string {
	runes := []rune(plain)
	if len(runes) <= limit {
		return plain
	}
	return string(runes[:limit]) + "…"
}

// anchor is the heading's anchor as GitHub makes it.
func anchor(heading string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
			out.WriteRune(r)
		case r == ' ':
			out.WriteByte('-')
		}
	}
	return out.String()
}

func rows[T any](items []T, row func(T) []string) [][]string {
	var out [][]string
	for _, item := range items {
		out = append(out, row(item))
	}
	return out
}
