package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// compiledSchema is the schema as an editor reads it.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	content, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("compatibility.schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("compatibility.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON is the content of a YAML file as a schema sees it.
func asJSON(data []byte) (any, error) {
	var content any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
}

func TestPublishedSchemaIsInSync(t *testing.T) {
	want, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", filepath.FromSlash(SchemaFile))
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not what the types say: run `go run ./tools/matrix report` (-want +got):\n%s", SchemaFile, diff)
	}
}

func TestSchemaAcceptsValidFiles(t *testing.T) {
	schema := compiledSchema(t)
	for _, path := range append(testFiles(t, "testdata/valid/*.yaml"), "../../compatibility.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		content, err := asJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(content); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// beyondSchema are the invalid files that a schema can't refuse: it knows neither YAML nor what other parts of the file
// say.
var beyondSchema = []string{
	"combination-range-bad", "combination-twice", "combination-unlisted", "encoding", "from-unlisted", "from-unlisted-far",
	"image-tag-of-another", "key-duplicate", "key-not-text", "known-defect-fixed-earlier", "known-defect-twice", "kubernetes-version-below-floor", "merge-key",
	"operator-not-json", "operator-release-twice", "row-id-derived-twice", "row-twice", "runtime-chart-twice", "runtime-release-twice", "second-document",
	"superseded-by-earlier", "superseded-by-unlisted", "syntax", "syntax-tab", "tag-binary", "target-is-baseline", "target-unlisted",
	"through-backwards", "through-unlisted",
}

func TestSchemaRefusesInvalidFiles(t *testing.T) {
	schema := compiledSchema(t)
	for _, path := range testFiles(t, "testdata/invalid/*.yaml") {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content, err := asJSON(data)
			refused := err == nil && schema.Validate(content) != nil
			if beyond := slices.Contains(beyondSchema, name); refused == beyond {
				t.Errorf("refused by the schema: %v, thought to be beyond it: %v", refused, beyond)
			}
		})
	}
}

// place is a node of a valid file and what the schema says of it.
type place struct {
	path   string
	node   *yaml.Node
	schema *jsonschema.Schema
}

// places are all nodes below n, but for those whose keys are free.
func places(t *testing.T, path string, n *yaml.Node, schema *jsonschema.Schema) []place {
	t.Helper()
	if n.Kind == yaml.MappingNode && len(schema.Properties) == 0 && schema.AdditionalProperties != false {
		return nil
	}
	all := []place{{path, n, schema}}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			property := schema.Properties[key]
			if property == nil {
				t.Fatalf("%s: the schema has no %q, which the loader accepts", path, key)
			}
			all = append(all, places(t, strings.TrimPrefix(path+"."+key, "."), n.Content[i+1], property)...)
		}
	case yaml.SequenceNode:
		items, ok := schema.Items2020, schema.Items2020 != nil
		if !ok {
			t.Fatalf("%s: the schema knows no list here", path)
		}
		for i, item := range n.Content {
			all = append(all, places(t, fmt.Sprintf("%s[%d]", path, i), item, items)...)
		}
	}
	return all
}

// fullFile is a file with every key, as nodes that can be changed.
func fullFile(t *testing.T) (root *yaml.Node) {
	t.Helper()
	data, err := os.ReadFile("testdata/valid/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

// problemsOf are the loader's problems with the file as it is now.
func problemsOf(t *testing.T, root *yaml.Node) []Problem {
	t.Helper()
	data, err := yaml.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse("compatibility.yaml", data)
	var invalid *Error
	if err != nil && !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	if invalid == nil {
		return nil
	}
	return invalid.Problems
}

// choicesIn are the names that the advice of the loader lists.
func choicesIn(problem Problem) []string {
	list, _ := strings.CutPrefix(problem.Advice, "use one of ")
	names := strings.Split(list, ", ")
	slices.Sort(names)
	return names
}

// find is the only problem with such a message.
func find(t *testing.T, problems []Problem, message string) Problem {
	t.Helper()
	i := slices.IndexFunc(problems, func(p Problem) bool { return strings.Contains(p.Message, message) })
	if i < 0 {
		t.Fatalf("the loader does not say %q, but %v", message, problems)
	}
	return problems[i]
}

// nonsense is near to no name, so that the loader lists those that it knows.
const nonsense = "zz"

// TestSchemaHasTheKeysOfTheLoader asks the loader for the keys of every mapping, and which of them are required.
func TestSchemaHasTheKeysOfTheLoader(t *testing.T) {
	root := fullFile(t)
	seen := 0
	for _, p := range places(t, "", root, compiledSchema(t)) {
		if p.node.Kind != yaml.MappingNode {
			continue
		}
		seen++
		content := p.node.Content
		p.node.Content = append(slices.Clone(content), &yaml.Node{Kind: yaml.ScalarNode, Value: nonsense}, &yaml.Node{Kind: yaml.ScalarNode, Value: nonsense})
		known := choicesIn(find(t, problemsOf(t, root), fmt.Sprintf("%s has the unknown key %q", subject(p.path), nonsense)))
		p.node.Content = content
		var have []string
		for key := range p.schema.Properties {
			have = append(have, key)
		}
		slices.Sort(have)
		if diff := cmp.Diff(known, have); diff != "" {
			t.Errorf("keys of %s (-loader +schema):\n%s", subject(p.path), diff)
		}
		if p.schema.AdditionalProperties != false {
			t.Errorf("the schema allows other keys in %s", subject(p.path))
		}
		for i := 0; i+1 < len(content); i += 2 {
			key := content[i].Value
			p.node.Content = slices.Delete(slices.Clone(content), i, i+2)
			required := slices.ContainsFunc(problemsOf(t, root), func(problem Problem) bool {
				return strings.Contains(problem.Message, fmt.Sprintf("%s lacks the required key %q", subject(p.path), key))
			})
			p.node.Content = content
			if has := slices.Contains(p.schema.Required, key); has != required {
				t.Errorf("%s of %s: required by the loader: %v, by the schema: %v", key, subject(p.path), required, has)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d mappings were looked at", seen)
	}
}

// samples are texts of which each kind of text accepts some.
var samples = []string{
	"1.2.3", "v1.2.3", "1.2", "v1.2", "1.2.3.4", "01.2.3", "1.2.3-rc.1", "v1.2.3-rc.1", "1.2.3-01", "1.2.3-0a", "1.2.3-", "1.2.3+b", "1.2.3-rc+b", "V1.2.3", " 1.2.3",
	"a", "A", "a-b", "a--b", "a.b", ".a", "a.", "-", strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("0a", 20), strings.Repeat("0A", 20), strings.Repeat("a", 39), "sha256:" + strings.Repeat("0", 64), "sha256:" + strings.Repeat("0", 63), "sha512:" + strings.Repeat("0", 64),
	">=1.25", "a sentence", " blanks around \n", "two\nlines", "a\ttab", "", " ", "\n", "ü",
}

// TestSchemaJudgesTextLikeTheLoader gives every text of a valid file other values. The schema must accept what the
// loader accepts. What the loader refuses for its form, the schema must refuse too.
func TestSchemaJudgesTextLikeTheLoader(t *testing.T) {
	root := fullFile(t)
	accepted, refused := 0, 0
	judged := map[string]bool{}
	for _, p := range places(t, "", root, compiledSchema(t)) {
		if p.node.Kind != yaml.ScalarNode || judged[p.schema.Location] {
			continue
		}
		judged[p.schema.Location] = true
		original := *p.node
		if p.schema.Enum != nil {
			*p.node = yaml.Node{Kind: yaml.ScalarNode, Value: nonsense}
			known := choicesIn(find(t, problemsOf(t, root), fmt.Sprintf("%s is %q, which is not a known value", p.path, nonsense)))
			var have []string
			for _, value := range p.schema.Enum.Values {
				have = append(have, value.(string))
			}
			slices.Sort(have)
			if diff := cmp.Diff(known, have); diff != "" {
				t.Errorf("values of %s (-loader +schema):\n%s", p.path, diff)
			}
		}
		for _, sample := range samples {
			*p.node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: sample, Style: yaml.DoubleQuotedStyle}
			problems := problemsOf(t, root)
			// Problems of form are about the value alone.
			form := slices.ContainsFunc(problems, func(problem Problem) bool {
				return strings.HasPrefix(problem.Message, p.path+" ") && !strings.Contains(p.path, "combinations") &&
					!strings.Contains(problem.Message, "which the file does not list") && !strings.Contains(problem.Message, "which is below") &&
					!strings.Contains(problem.Message, "which is not later") && !strings.Contains(problem.Message, "which is not the tag of")
			})
			refuses := p.schema.Validate(sample) != nil
			switch {
			case len(problems) == 0 && refuses:
				t.Errorf("%s: %q: the schema refuses what the loader accepts", p.path, sample)
			case form && !refuses:
				t.Errorf("%s: %q: the schema accepts what the loader refuses: %v", p.path, sample, problems)
			case refuses:
				refused++
			default:
				accepted++
			}
		}
		// YAML reads an unquoted 1.30 as a number.
		if p.schema.Validate(1.3) == nil {
			t.Errorf("%s: the schema accepts a number", p.path)
		}
		*p.node = original
	}
	t.Logf("%d values accepted, %d refused", accepted, refused)
	if accepted < 50 || refused < 500 {
		t.Errorf("only %d values were accepted and %d refused: the samples don't test much", accepted, refused)
	}
}
