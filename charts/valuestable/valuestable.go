// Package valuestable makes a table of a chart's values for its documentation: what they
// are for from the comments in values.yaml, what they may be from values.schema.json.
package valuestable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Row is what is told about one value.
type Row struct {
	// Key is the path of the value, as --set takes it.
	Key string
	// Type is what the value may be.
	Type string
	// Default is the value's default in YAML, on one line.
	Default string
	// Text is what the value is for.
	Text string
}

// Rows reads the values of the chart in dir, in the order of values.yaml. A value that the
// schema does not know, a value that has no default, and one that has no comment are errors
// that name the place.
func Rows(dir string) ([]Row, error) {
	file := filepath.Join(dir, "values.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the chart's values: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("read the chart's values from %s: %w", file, err)
	}
	if document.Kind != yaml.DocumentNode || document.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("read the chart's values from %s: it is no mapping of names to values", file)
	}
	root, err := readSchema(filepath.Join(dir, "values.schema.json"))
	if err != nil {
		return nil, err
	}
	reader := reader{file: file, definitions: root.Definitions}
	return reader.rows("", root, document.Content[0])
}

type reader struct {
	file        string
	definitions map[string]schema
}

func (r reader) rows(prefix string, parent schema, values *yaml.Node) ([]Row, error) {
	var rows []Row
	var seen []string
	for i := 0; i < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		path := prefix + key.Value
		seen = append(seen, key.Value)
		property, known := parent.Properties[key.Value]
		if !known {
			return nil, r.problem(key, "%s is not in values.schema.json", path)
		}
		property = r.resolve(property)
		if property.isSection() && value.Kind == yaml.MappingNode {
			below, err := r.rows(path+".", property, value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
			continue
		}
		text := comment(key)
		if text == "" {
			return nil, r.problem(key, "%s has no comment above it that says what it is for", path)
		}
		defaultValue, err := oneLine(value)
		if err != nil {
			return nil, r.problem(value, "%s can't be written on one line: %v", path, err)
		}
		rows = append(rows, Row{Key: path, Type: property.describe(), Default: defaultValue, Text: text})
	}
	for name := range parent.Properties {
		if !slices.Contains(seen, name) && prefix+name != reserved {
			return nil, r.problem(values, "%s%s is in values.schema.json and has no default here", prefix, name)
		}
	}
	return rows, nil
}

// reserved is the value that Helm itself hands to every chart that is part of another one.
const reserved = "global"

func (r reader) resolve(s schema) schema {
	name, isReference := strings.CutPrefix(s.Ref, "#/definitions/")
	if !isReference {
		return s
	}
	return r.definitions[name]
}

func (r reader) problem(at *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %s", r.file, at.Line, at.Column, fmt.Sprintf(format, args...))
}

// comment is the text of the comment above a key, without what other paragraphs say.
func comment(key *yaml.Node) string {
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}

// oneLine is a value in YAML's flow style, without comments.
func oneLine(value *yaml.Node) (string, error) {
	content, err := yaml.Marshal(flow(value))
	return strings.TrimSpace(string(content)), err
}

func flow(value *yaml.Node) *yaml.Node {
	result := &yaml.Node{Kind: value.Kind, Tag: value.Tag, Value: value.Value, Style: value.Style}
	if value.Kind != yaml.ScalarNode {
		result.Style = yaml.FlowStyle
	}
	for _, child := range value.Content {
		result.Content = append(result.Content, flow(child))
	}
	return result
}

// schema is the part of a JSON schema that the table tells.
type schema struct {
	Ref         string            `json:"$ref"`
	Title       string            `json:"title"`
	Type        types             `json:"type"`
	Enum        []any             `json:"enum"`
	Minimum     *int              `json:"minimum"`
	Maximum     *int              `json:"maximum"`
	Properties  map[string]schema `json:"properties"`
	Definitions map[string]schema `json:"definitions"`
}

// types are the types that a value may have: one, or a list.
type types []string

// UnmarshalJSON reads both forms.
func (t *types) UnmarshalJSON(content []byte) error {
	var one string
	if json.Unmarshal(content, &one) == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(content, (*[]string)(t))
}

func readSchema(file string) (schema, error) {
	var root schema
	content, err := os.ReadFile(file)
	if err != nil {
		return root, fmt.Errorf("read the schema of the chart's values: %w", err)
	}
	if err := json.Unmarshal(content, &root); err != nil {
		return root, fmt.Errorf("read the schema of the chart's values from %s: %w", file, err)
	}
	return root, nil
}

// isSection tells a group of values of the chart from a value that is a type of Kubernetes,
// which the schema gives a title.
func (s schema) isSection() bool { return s.Title == "" && len(s.Properties) > 0 }

// describe leaves out null, which every value may be.
func (s schema) describe() string {
	if s.Title != "" {
		return s.Title
	}
	var choices []string
	for _, choice := range s.Enum {
		if text, isText := choice.(string); isText && text != "" {
			choices = append(choices, "`"+text+"`")
		}
	}
	if len(choices) > 0 {
		return strings.Join(choices, ", ")
	}
	var names []string
	for _, name := range s.Type {
		if name != "null" {
			names = append(names, name)
		}
	}
	text := strings.Join(names, " or ")
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return fmt.Sprintf("%s, %d to %d", text, *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		return fmt.Sprintf("%s, at least %d", text, *s.Minimum)
	default:
		return text
	}
}

// Markdown is the table of rows.
func Markdown(rows []Row) string {
	var out strings.Builder
	out.WriteString("| Value | Type | Default | Meaning |\n| --- | --- | --- | --- |\n")
	for _, row := range rows {
		fmt.Fprintf(&out, "| `%s` | %s | `%s` | %s |\n", row.Key, row.Type, row.Default, strings.ReplaceAll(row.Text, "|", `\|`))
	}
	return out.String()
}

// The markers that stand around the table in a document, each on a line of its own.
const (
	Begin = "<!-- values: begin -->"
	End   = "<!-- values: end -->"
)

// Insert puts the table between the markers of a document, in the place of what is there. A
// document without one Begin followed by one End is an error.
func Insert(document []byte, table string) ([]byte, error) {
	before, rest, hasBegin := bytes.Cut(document, []byte(Begin+"\n"))
	_, after, hasEnd := bytes.Cut(rest, []byte(End+"\n"))
	if !hasBegin || !hasEnd || bytes.Contains(after, []byte(Begin)) {
		return nil, fmt.Errorf("the document needs one line %q and one line %q after it", Begin, End)
	}
	return slices.Concat(before, []byte(Begin+"\n\n"+table+"\n"+End+"\n"), after), nil
}
