package report

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
)

const allTables = `# Title

<!-- BEGIN matrix: combinations -->
old
<!-- END matrix: combinations -->
Between.
<!-- BEGIN matrix: upgrades -->
<!-- END matrix: upgrades -->
<!-- BEGIN matrix: operator-releases -->
<!-- END matrix: operator-releases -->
<!-- BEGIN matrix: runtime-releases -->
<!-- END matrix: runtime-releases -->
After.
`

func TestTablesEqualGolden(t *testing.T) {
	got, err := fillTables(input(t), "docs/COMPATIBILITY.md", []byte(allTables))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tables.md", got)
	again, err := fillTables(input(t), "docs/COMPATIBILITY.md", got)
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(got) {
		t.Error("filling the tables again changes them")
	}
}

func TestLinksLeadToTheRoot(t *testing.T) {
	for path, want := range map[string]string{"README.md": "](UPGRADE-MATRIX.md#", "docs/a/b.md": "](../../UPGRADE-MATRIX.md#"} {
		got, err := fillTables(input(t), path, []byte(allTables))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), want) {
			t.Errorf("%s has no %s", path, want)
		}
	}
}

func TestMarkersThatDoNotMatch(t *testing.T) {
	begin, end := "<!-- BEGIN matrix: upgrades -->\n", "<!-- END matrix: upgrades -->\n"
	for name, test := range map[string]struct{ content, want string }{
		"unknown":     {"\n<!-- BEGIN matrix: upgrade -->\n", `x.md:2:1: there is no table "upgrade": use one of combinations, operator-releases, runtime-releases, upgrades`},
		"not ended":   {"a\n" + begin + "b\n", "x.md:2:1: the table upgrades does not end"},
		"not begun":   {end, "x.md:1:1: the table upgrades ends here, and did not begin"},
		"nested":      {begin + begin + end, "x.md:2:1: the table upgrades begins within the table upgrades of line 1"},
		"other's end": {begin + "<!-- END matrix: combinations -->\n", "x.md:2:1: the table combinations ends here"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := fillTables(input(t), "x.md", []byte(test.content)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestWriteAndStale(t *testing.T) {
	root := t.TempDir()
	in := input(t)
	readme := filepath.Join(root, "README.md")
	if err := os.WriteFile(readme, []byte(allTables), 0o600); err != nil {
		t.Fatal(err)
	}
	documents := func() map[string][]byte {
		documents, err := Documents(root, in)
		if err != nil {
			t.Fatal(err)
		}
		return documents
	}
	want := []string{"README.md", "UPGRADE-MATRIX.md", compat.SchemaFile}
	if stale, err := Stale(root, documents()); err != nil || !slices.Equal(stale, want) {
		t.Errorf("stale are %q, %v, want %q", stale, err, want)
	}
	if written, err := Write(root, documents()); err != nil || !slices.Equal(written, want) {
		t.Errorf("written were %q, %v, want %q", written, err, want)
	}
	if written, err := Write(root, documents()); err != nil || written != nil {
		t.Errorf("written again were %q, %v", written, err)
	}
	// What people write around the tables is theirs.
	content, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(readme, []byte(strings.Replace(string(content), "Between.", "Else.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if stale, err := Stale(root, documents()); err != nil || stale != nil {
		t.Errorf("after a change of the prose stale are %q, %v", stale, err)
	}
	if err := os.WriteFile(readme, []byte(strings.Replace(string(content), "✅ tested", "✅ well tested", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if stale, err := Stale(root, documents()); err != nil || !slices.Equal(stale, []string{"README.md"}) {
		t.Errorf("after a change within a table stale are %q, %v", stale, err)
	}
	left, err := filepath.Glob(filepath.Join(root, ".report-*"))
	if err != nil || left != nil {
		t.Errorf("left over: %q, %v", left, err)
	}
}
