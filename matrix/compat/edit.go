package compat

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// RuntimeDecision is a decision about a runtime release, to be written into a compatibility file.
type RuntimeDecision struct {
	// Version is the release: vX.Y.Z. If the file does not list it, it gets a row.
	Version string
	// Decision is the outcome, SupersededBy the later listed release if that is superseded.
	Decision     Decision
	SupersededBy string
	// Reason, Digest and ContractImpact stay as they are if empty. A new row has neither reason nor
	// digest then, and the impact representative if it is validated, else routine.
	Reason         string
	Digest         string
	ContractImpact Impact
}

// ErrDecision marks a decision that does not fit the file: a mistake of who decides.
var ErrDecision = errors.New("the decision does not fit")

// Decide returns the content of a compatibility file with the decision written into it. Every
// byte that the decision does not concern stays: comments, order, blank lines, quotes. If the
// content is wrong, the error is an *Error; if the decision does not fit, it is ErrDecision.
func Decide(path string, content []byte, d RuntimeDecision) ([]byte, error) {
	file, err := Parse(path, content)
	if err != nil {
		return nil, err
	}
	old, listed := file.RuntimeRelease(d.Version)
	release, err := file.decided(old, listed, d)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(content) {
		return nil, fmt.Errorf("edit %s: it is not UTF-8: save it as UTF-8", path)
	}
	e, err := newEditor(content)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	if listed {
		err = e.change(release)
	} else {
		err = e.insert(release)
	}
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", path, err)
	}
	edited := e.result()
	if err := checkEdit(content, edited, release); err != nil {
		return nil, fmt.Errorf("edit %s:%d:%d: the row of %s can't be written without touching more (%w): write it by hand", path, e.releases.Line, e.releases.Column, release.Version, err)
	}
	return edited, nil
}

// decided is the row as it must be after the decision.
func (f *File) decided(old RuntimeRelease, listed bool, d RuntimeDecision) (RuntimeRelease, error) {
	unfit := func(format string, args ...any) (RuntimeRelease, error) {
		return RuntimeRelease{}, fmt.Errorf("decide %s: %s%w", d.Version, fmt.Sprintf(format, args...), causeOnly{ErrDecision})
	}
	bare, hasV := strings.CutPrefix(d.Version, "v")
	if !hasV || !validVersion(bare) {
		return unfit("that is not the name of a runtime release: write vX.Y.Z, as in v1.30.0")
	}
	if d.Digest != "" && !digestForm.MatchString(d.Digest) {
		return unfit("the digest %q is none: write sha256: and 64 hexadecimal digits", d.Digest)
	}
	d.Reason = strings.TrimSpace(d.Reason)
	if strings.ContainsFunc(d.Reason, unicode.IsControl) || !utf8.ValidString(d.Reason) {
		return unfit("the reason is not one line of text")
	}
	if (d.Decision == DecisionSuperseded) != (d.SupersededBy != "") {
		return unfit("say by which release it is superseded, and only then")
	}
	if d.SupersededBy != "" {
		if _, ok := f.RuntimeRelease(d.SupersededBy); !ok {
			return unfit("the file does not list %s, by which it would be superseded: decide that one first", d.SupersededBy)
		}
		if order, ok := compareVersions(d.SupersededBy, d.Version); ok && order <= 0 {
			return unfit("%s is not later: name the release that was selected in its place", d.SupersededBy)
		}
	}
	release := old
	if !listed {
		release = RuntimeRelease{Version: d.Version, ImageTag: bare, ContractImpact: ImpactRoutine}
		if d.Decision == DecisionValidated {
			release.ContractImpact = ImpactRepresentative
		}
	}
	if old.Reason != "" && d.Reason == "" && (old.Decision != d.Decision || old.SupersededBy != d.SupersededBy) {
		return unfit("the reason in the file is that of another decision (%q): give the new one", old.Reason)
	}
	release.Decision, release.SupersededBy = d.Decision, d.SupersededBy
	replace(&release.Reason, d.Reason)
	replace(&release.Digest, d.Digest)
	replace(&release.ContractImpact, d.ContractImpact)
	return release, nil
}

// causeOnly marks an error without adding to its text.
type causeOnly struct{ error }

func (causeOnly) Error() string   { return "" }
func (c causeOnly) Unwrap() error { return c.error }

func replace[T ~string](value *T, with T) {
	if with != "" {
		*value = with
	}
}

// field is a key of a row of runtimeReleases; an empty value is a key that the row lacks.
type field struct{ key, value string }

// fields are the keys of the row in the order in which new ones are written.
func (r RuntimeRelease) fields() []field {
	return []field{
		{"version", r.Version}, {"imageTag", r.ImageTag}, {"digest", r.Digest}, {"contractImpact", string(r.ContractImpact)},
		{"decision", string(r.Decision)}, {"supersededBy", r.SupersededBy}, {"reason", r.Reason},
	}
}

// YAML is the row as the lines of a YAML mapping, without indentation.
func (r RuntimeRelease) YAML() []string {
	var lines []string
	for _, f := range r.fields() {
		if f.value != "" {
			lines = append(lines, f.key+": "+scalar(f.key, f.value, false))
		}
	}
	return lines
}

// scalar is the value as YAML. Tags are always quoted: some look like numbers. In flow style
// commas and brackets end a plain value, so a sentence is quoted.
func scalar(key, value string, flow bool) string {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
	if key == "imageTag" || flow && key == "reason" {
		node.Style = yaml.DoubleQuotedStyle
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		panic(fmt.Sprintf("a text can't be written as YAML: %v", err)) // any valid UTF-8 can
	}
	return strings.TrimSuffix(string(text), "\n")
}

// checkEdit makes sure that nothing but the row differs.
func checkEdit(before, after []byte, release RuntimeRelease) error {
	if _, err := Parse("the result", after); err != nil {
		return err
	}
	want, err := decodeReleases(before)
	if err != nil {
		return err
	}
	got, err := decodeReleases(after)
	if err != nil {
		return err
	}
	row := map[string]any{}
	for _, f := range release.fields() {
		if f.value != "" {
			row[f.key] = f.value
		}
	}
	if i := want.index(release.Version); i >= 0 {
		want.rows[i] = row
	} else if i := got.index(release.Version); i >= 0 && i <= len(want.rows) {
		want.rows = slices.Insert(want.rows, i, any(row))
	}
	for _, d := range []decoded{want, got} {
		d.trimReasons()
	}
	if !reflect.DeepEqual(want, got) {
		return errors.New("another part would change its meaning")
	}
	return nil
}

// decoded is a whole file without positions, and its runtime releases.
type decoded struct {
	rest map[string]any
	rows []any
}

func decodeReleases(content []byte) (decoded, error) {
	var rest map[string]any
	if err := yaml.Unmarshal(content, &rest); err != nil {
		return decoded{}, err
	}
	rows, _ := rest["runtimeReleases"].([]any)
	delete(rest, "runtimeReleases")
	return decoded{rest: rest, rows: rows}, nil
}

func (d decoded) index(version string) int {
	return slices.IndexFunc(d.rows, func(row any) bool {
		fields, _ := row.(map[string]any)
		return fields["version"] == version
	})
}

// trimReasons takes away the line break at the end of folded blocks, which means nothing.
func (d decoded) trimReasons() {
	for _, row := range d.rows {
		fields, _ := row.(map[string]any)
		if reason, ok := fields["reason"].(string); ok {
			fields["reason"] = strings.TrimSpace(reason)
		}
	}
}

// editor changes the text of a file at the places that its YAML nodes name. It never writes
// nodes: that would lose blank lines, indentation and quotes.
type editor struct {
	content []byte
	// lines are the offsets at which lines begin.
	lines    []int
	newline  string
	releases *yaml.Node
	splices  []splice
}

// splice replaces content[start:end].
type splice struct {
	start, end int
	text       string
}

// newEditor expects content that Parse accepted.
func newEditor(content []byte) (*editor, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	e := &editor{content: content, lines: lineStarts(content), newline: "\n"}
	if bytes.Contains(content, []byte("\r\n")) {
		e.newline = "\r\n"
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "runtimeReleases" {
			e.releases = root.Content[i+1]
		}
	}
	return e, nil
}

// lineStarts counts lines as the YAML parser does.
func lineStarts(content []byte) []int {
	starts := []int{0}
	for i := 0; i < len(content); {
		c, size := utf8.DecodeRune(content[i:])
		i += size
		if c == '\r' && i < len(content) && content[i] == '\n' {
			continue
		}
		if strings.ContainsRune("\n\r\u0085\u2028\u2029", c) {
			starts = append(starts, i)
		}
	}
	return starts
}

func (e *editor) result() []byte {
	slices.SortStableFunc(e.splices, func(a, b splice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	var out []byte
	end := 0
	for _, s := range e.splices {
		out = append(append(out, e.content[end:s.start]...), s.text...)
		end = s.end
	}
	return append(out, e.content[end:]...)
}

func (e *editor) replace(start, end int, text string) {
	e.splices = append(e.splices, splice{start, end, text})
}

// offset is where a node begins.
func (e *editor) offset(n *yaml.Node) int {
	at := e.lines[min(n.Line, len(e.lines))-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(e.content[at:])
		at += size
	}
	return at
}

// lineStart and lineEnd are the ends of the line that at is in, without its line break.
func (e *editor) lineStart(at int) int {
	i, found := slices.BinarySearch(e.lines, at)
	if !found {
		i--
	}
	return e.lines[i]
}

func (e *editor) lineEnd(at int) int {
	if i := bytes.IndexAny(e.content[at:], "\r\n"); i >= 0 {
		return at + i
	}
	return len(e.content)
}

// change writes what differs from the row of the release.
func (e *editor) change(release RuntimeRelease) error {
	var row *yaml.Node
	for _, item := range e.releases.Content {
		if value := valueOf(item, "version"); value != nil && value.Value == release.Version {
			row = item
		}
	}
	anchor := "version"
	var added []field
	for _, f := range release.fields() {
		value := valueOf(row, f.key)
		switch {
		case value == nil && f.value == "":
			continue
		case value == nil:
			added = append(added, f)
			continue
		case f.value == "":
			if err := e.remove(row, f.key); err != nil {
				return err
			}
			continue
		case strings.TrimSpace(value.Value) != f.value:
			end, err := e.scalarEnd(value, row)
			if err != nil {
				return err
			}
			e.replace(e.offset(value), end, scalar(f.key, f.value, flow(row)))
		}
		if err := e.add(row, anchor, added); err != nil {
			return err
		}
		anchor, added = f.key, nil
	}
	return e.add(row, anchor, added)
}

// add writes keys that the row lacks after that of the anchor.
func (e *editor) add(row *yaml.Node, anchor string, fields []field) error {
	if len(fields) == 0 {
		return nil
	}
	end, err := e.scalarEnd(valueOf(row, anchor), row)
	if err != nil {
		return err
	}
	separator := ", "
	if !flow(row) {
		// A comment behind the value stays with it.
		end = e.lineEnd(end)
		separator = e.newline + strings.Repeat(" ", row.Column-1)
	}
	text := ""
	for _, f := range fields {
		text += separator + f.key + ": " + scalar(f.key, f.value, flow(row))
	}
	e.replace(end, end, text)
	return nil
}

// remove takes a key and its value out of the row.
func (e *editor) remove(row *yaml.Node, key string) error {
	i := slices.IndexFunc(row.Content, func(n *yaml.Node) bool { return n.Value == key })
	end, err := e.scalarEnd(row.Content[i+1], row)
	if err != nil {
		return err
	}
	switch {
	case i == 0:
		// What the row begins with stays: the dash, or the brace.
		e.replace(e.offset(row.Content[0]), e.offset(row.Content[2]), "")
	case flow(row):
		start, err := e.scalarEnd(row.Content[i-1], row)
		if err != nil {
			return err
		}
		e.replace(start, end, "")
	default:
		start := e.lineStart(e.offset(row.Content[i]))
		end = e.lineEnd(end)
		// The line break before it goes, that behind it stays.
		before := bytes.TrimSuffix(bytes.TrimSuffix(e.content[:start], []byte("\n")), []byte("\r"))
		e.replace(len(before), end, "")
	}
	return nil
}

// insert adds a row for the release behind the last one that is earlier.
func (e *editor) insert(release RuntimeRelease) error {
	if flow(e.releases) {
		return errors.New("runtimeReleases is a list in brackets: write it with one dash for each release")
	}
	var before *yaml.Node
	for _, item := range e.releases.Content {
		if order, ok := compareVersions(valueOf(item, "version").Value, release.Version); ok && order < 0 {
			before = item
		}
	}
	like := before
	if like == nil {
		like = e.releases.Content[0]
	}
	dash := e.dash(like)
	dashColumn := utf8.RuneCount(e.content[e.lineStart(dash):dash])
	keyColumn := dashColumn + 2
	if !flow(like) && like.Column-1 > keyColumn {
		keyColumn = like.Column - 1
	}
	lines := release.YAML()
	for i := range lines {
		lead := strings.Repeat(" ", keyColumn)
		if i == 0 {
			lead = strings.Repeat(" ", dashColumn) + "-" + strings.Repeat(" ", keyColumn-dashColumn-1)
		}
		lines[i] = lead + lines[i]
	}
	text := strings.Join(lines, e.newline)
	if before == nil {
		start := e.commentsAbove(e.lineStart(dash))
		e.replace(start, start, text+e.newline)
		return nil
	}
	end, err := e.rowEnd(before, dashColumn)
	if err != nil {
		return err
	}
	e.replace(end, end, e.newline+text)
	return nil
}

// dash is the offset of the dash of a list item.
func (e *editor) dash(item *yaml.Node) int {
	return bytes.LastIndexByte(e.content[:e.offset(item)], '-')
}

// commentsAbove is the start of the comment lines right above a line: they speak of it.
func (e *editor) commentsAbove(start int) int {
	for start > 0 {
		above := e.lineStart(start - 1)
		if !bytes.HasPrefix(bytes.TrimLeft(e.content[above:start], " "), []byte("#")) {
			break
		}
		start = above
	}
	return start
}

// rowEnd is the end of the last line of a list item, comments that are indented like its keys
// included.
func (e *editor) rowEnd(row *yaml.Node, dashColumn int) (int, error) {
	end, err := e.scalarEnd(row.Content[len(row.Content)-1], row)
	if err != nil {
		return 0, err
	}
	if flow(row) {
		closing := bytes.IndexByte(e.content[end:], '}')
		if closing < 0 || len(bytes.Trim(e.content[end:end+closing], ", \t\r\n")) > 0 {
			return 0, fmt.Errorf("the end of the row of %s is not clear", valueOf(row, "version").Value)
		}
		end += closing + 1
	}
	end = e.lineEnd(end)
	for _, start := range e.lines {
		if start <= end {
			continue
		}
		text := e.content[start:e.lineEnd(start)]
		bare := bytes.TrimLeft(text, " ")
		if !bytes.HasPrefix(bare, []byte("#")) || len(text)-len(bare) <= dashColumn {
			break
		}
		end = e.lineEnd(start)
	}
	return end, nil
}

// scalarEnd is the offset behind a scalar of the row.
func (e *editor) scalarEnd(n, row *yaml.Node) (int, error) {
	start := e.offset(n)
	text := e.content[start:]
	unclear := fmt.Errorf("line %d: the end of the value is not clear", n.Line)
	switch {
	case n.Anchor != "" || n.Style&yaml.TaggedStyle != 0:
		return 0, fmt.Errorf("line %d: the value has a YAML tag or anchor: write it without", n.Line)
	case n.Style&yaml.DoubleQuotedStyle != 0:
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return start + i + 1, nil
			}
		}
		return 0, unclear
	case n.Style&yaml.SingleQuotedStyle != 0:
		for i := 1; i < len(text); i++ {
			if text[i] != '\'' {
				continue
			}
			if i+1 == len(text) || text[i+1] != '\'' {
				return start + i + 1, nil
			}
			i++
		}
		return 0, unclear
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return e.blockEnd(start, row.Column-1), nil
	}
	// A plain value may go on in further lines, which are joined by one space.
	at := 0
	for _, c := range n.Value {
		if unicode.IsSpace(c) {
			at += len(text[at:]) - len(bytes.TrimLeftFunc(text[at:], unicode.IsSpace))
			continue
		}
		seen, size := utf8.DecodeRune(text[at:])
		if seen != c {
			return 0, unclear
		}
		at += size
	}
	return start + at, nil
}

// blockEnd is the end of the last line of a block scalar whose key is indented by so many
// spaces.
func (e *editor) blockEnd(start, indent int) int {
	end := e.lineEnd(start)
	for _, line := range e.lines {
		if line <= end {
			continue
		}
		text := e.content[line:e.lineEnd(line)]
		switch spaces := len(text) - len(bytes.TrimLeft(text, " ")); {
		case len(bytes.TrimSpace(text)) == 0:
			continue
		case spaces <= indent:
			return end
		}
		end = e.lineEnd(line)
	}
	return end
}

func flow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// valueOf returns the value of a key of a mapping, or nil.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
