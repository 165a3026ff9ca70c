package valuestable_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/charts/valuestable"
)

func TestTheDocumentationIsUpToDate(t *testing.T) {
	rows, err := valuestable.Rows("../trussium-operator")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/operator/chart-values.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := valuestable.Insert(got, valuestable.Markdown(rows))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/operator/chart-values.md is out of date; run make generate (-generated +file):\n%s", diff)
	}
}

func TestRows(t *testing.T) {
	rows, err := valuestable.Rows(write(t, `# A heading.

# How many; one
# works.
count: 1
image:
  # Name.
  tag: ""
  # When | how.
  policy: Always
# Labels.
labels: {}
# Limits.
limits:
  # not a value of the chart
  cpu: 1
  list: [a, b]
# Open.
open: null
`, `{
  "properties": {
    "global": {"type": "object"},
    "count": {"type": ["integer", "null"], "minimum": 0},
    "image": {"properties": {
      "tag": {"type": "string"},
      "policy": {"enum": ["", "Always", "Never", null]}
    }},
    "labels": {"$ref": "#/definitions/texts"},
    "limits": {"title": "Limits", "properties": {"cpu": {}}},
    "open": {"type": ["integer", "string"], "minimum": 1, "maximum": 9}
  },
  "definitions": {"texts": {"title": "map of strings"}}
}`))
	if err != nil {
		t.Fatal(err)
	}
	want := "| Value | Type | Default | Meaning |\n" +
		"| --- | --- | --- | --- |\n" +
		"| `count` | integer, at least 0 | `1` | How many; one works. |\n" +
		"| `image.tag` | string | `\"\"` | Name. |\n" +
		"| `image.policy` | `Always`, `Never` | `Always` | When \\| how. |\n" +
		"| `labels` | map of strings | `{}` | Labels. |\n" +
		"| `limits` | Limits | `{cpu: 1, list: [a, b]}` | Limits. |\n" +
		"| `open` | integer or string, 1 to 9 | `null` | Open. |\n"
	if diff := cmp.Diff(want, valuestable.Markdown(rows)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestRowsNameTheMistake(t *testing.T) {
	const schema = `{"properties": {"image": {"properties": {"tag": {"type": "string"}}}}}`
	for _, test := range []struct{ name, values, schema, want string }{
		{"a value without a comment", "image:\n  tag: a\n", schema, "values.yaml:2:3: image.tag has no comment"},
		{"a value that the schema lacks", "image:\n  # Tag.\n  tag: a\n  other: b\n", schema, "values.yaml:4:3: image.other is not in values.schema.json"},
		{"a value without a default", "image: {}\n", schema, "values.yaml:1:8: image.tag is in values.schema.json and has no default"},
		{"values that are a list", "- a\n", schema, "values.yaml: it is no mapping"},
		{"no values", "", schema, "values.yaml: it is no mapping"},
		{"values that are no YAML", "{", schema, "values.yaml: yaml: line 1"},
		{"a schema that is no JSON", "image: {}\n", "{", "values.schema.json: unexpected end"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := valuestable.Rows(write(t, test.values, test.schema))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func write(t *testing.T, values, schema string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"values.yaml": values, "values.schema.json": schema} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInsert(t *testing.T) {
	document := "before\n" + valuestable.Begin + "\nold\n" + valuestable.End + "\nafter\n"
	want := "before\n" + valuestable.Begin + "\n\ntable\n\n" + valuestable.End + "\nafter\n"
	for range 2 {
		got, err := valuestable.Insert([]byte(document), "table\n")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("document (-want +got):\n%s", diff)
		}
		document = string(got)
	}
	for _, broken := range []string{"", valuestable.Begin + "\n", valuestable.End + "\n" + valuestable.Begin + "\n", document + document} {
		if _, err := valuestable.Insert([]byte(broken), "table\n"); err == nil {
			t.Errorf("%q is accepted", broken)
		}
	}
}
