package report

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	goldtext "github.com/yuin/goldmark/text"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

func TestUpgradeMatrixEqualsGolden(t *testing.T) {
	golden(t, "UPGRADE-MATRIX.md", UpgradeMatrix(input(t)))
}

func TestDocumentsDoNotDependOnTheOrderOfTheEvidence(t *testing.T) {
	in := input(t)
	marked := []byte(allTables)
	filled := func() []byte {
		content, err := fillTables(in, "README.md", marked)
		if err != nil {
			t.Fatal(err)
		}
		return append(content, UpgradeMatrix(in)...)
	}
	want := filled()
	slices.Reverse(in.Documents)
	if !bytes.Equal(want, filled()) {
		t.Error("the same evidence in another order gives other bytes")
	}
}

func TestNoEvidence(t *testing.T) {
	in := input(t)
	in.Documents = nil
	for _, content := range [][]byte{UpgradeMatrix(in), UpgradeMatrix(Input{File: in.File, EvidenceDir: "evidence"})} {
		if text := string(content); strings.Contains(text, "✅") || strings.Contains(strings.ReplaceAll(text, "not said to be tested here was not tested", ""), "tested") {
			t.Errorf("without evidence something is said to be tested:\n%s", text)
		}
	}
	if text := string(UpgradeMatrix(in)); strings.Count(text, "there is no evidence yet") < 8 {
		t.Errorf("not every empty cell has its reason:\n%s", text)
	}
}

// Whatever the evidence says, the word "tested" is for cells that are proven as the file has them.
func TestOnlyProvenCellsAreCalledTested(t *testing.T) {
	for name, change := range map[string]func(*evidence.Cell){
		"failed":     func(d *evidence.Cell) { d.Verdict = evidence.Refuted },
		"broken":     func(d *evidence.Cell) { d.Verdict = evidence.BaselineBroken },
		"no cluster": func(d *evidence.Cell) { d.Verdict = evidence.Infrastructure },
		"not run":    func(d *evidence.Cell) { d.Verdict = evidence.NotRun },
		"unfinished": func(d *evidence.Cell) { d.Verdict = evidence.Unfinished },
		"nonsense":   func(d *evidence.Cell) { d.Verdict = "nonsense" },
		"dirty":      func(d *evidence.Cell) { d.To.Dirty = true },
		"outdated":   func(d *evidence.Cell) { d.To.Version = "1.0.4" },
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			document := sample(t)
			change(document)
			in.Documents = []*evidence.Cell{document}
			tables, err := fillTables(in, "README.md", []byte(allTables))
			if err != nil {
				t.Fatal(err)
			}
			for _, content := range [][]byte{UpgradeMatrix(in), tables, JobSummary([]*evidence.Cell{document})} {
				if name == "outdated" && bytes.HasPrefix(content, []byte("## Upgrade")) {
					continue // the summary is about the run itself
				}
				if regexp.MustCompile(`✅ \[?tested`).Match(content) {
					t.Errorf("it is called tested:\n%.2000s", content)
				}
			}
		})
	}
}

var payloads = []string{
	"a | b\n| c | d |", "](https://example.org) [x](https://example.org)", "![x](https://example.org/x.png)", "<script>alert(1)</script><br>", "<!-- --> # x",
	"`code` `` `", "\\| \\[x](https://example.org) \\`", "**bold** *it*", "&lt;b&gt; &#60;", "a\x00\x1b[31m\u202eb\u2066", "\n\n# heading\n\n- list\n\n```\nfence", "https://example.org", "<https://example.org>", "x\u2028y\u0085z\r\nw",
}

// TestTextsStayTexts reads the documents as GitHub would, with evidence that tries to be markup.
func TestTextsStayTexts(t *testing.T) {
	for _, payload := range payloads {
		t.Run(fmt.Sprintf("%.20q", payload), func(t *testing.T) {
			in := input(t)
			in.Planned = nil // the plan would hide what the evidence says of itself
			for _, document := range in.Documents {
				for i := range document.Steps {
					document.Steps[i].Claim = "It holds."
				}
			}
			plain, plainSummary := shape(t, UpgradeMatrix(in)), shape(t, JobSummary(in.Documents))
			if plain.links == 0 || plain.headings < len(in.Documents) || plainSummary.tables != 2 {
				t.Fatalf("the documents are not read as they should: %+v, %+v", plain, plainSummary)
			}
			for i := range in.Documents {
				in.Documents[i] = hostile(t, in.Documents[i], payload)
			}
			if got := shape(t, UpgradeMatrix(in)); got != plain {
				t.Errorf("the upgrade matrix has the shape %+v, and should have %+v", got, plain)
			}
			if got := shape(t, JobSummary(in.Documents)); got != plainSummary {
				t.Errorf("the summary has the shape %+v, and should have %+v", got, plainSummary)
			}
		})
	}
}

type documentShape struct{ headings, tables, links, codes int }

// shape parses a document and reports markup that the report does not write itself.
func shape(t *testing.T, content []byte) documentShape {
	t.Helper()
	var seen documentShape
	if bytes.ContainsFunc(content, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' || r == '\u2066' }) {
		t.Error("the document has characters that can't be seen")
	}
	root := goldmark.New(goldmark.WithExtensions(extension.Table)).Parser().Parse(goldtext.NewReader(content))
	columns := 0
	err := ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			seen.headings++
		case *ast.Image, *ast.AutoLink, *ast.FencedCodeBlock, *ast.CodeBlock, *ast.Blockquote:
			t.Errorf("there is a %s: %s", n.Kind(), lineAround(content, n))
		case *ast.CodeSpan:
			seen.codes++
		case *ast.Link:
			seen.links++
			if dest := string(n.Destination); !strings.HasPrefix(dest, "#") && !strings.HasPrefix(dest, "evidence/") {
				t.Errorf("there is a link to %s", dest)
			}
		case *ast.RawHTML:
			if html := string(n.Segments.Value(content)); html != "<br>" {
				t.Errorf("there is HTML: %s", html)
			}
		case *ast.HTMLBlock:
			if html := string(n.Lines().Value(content)); !strings.HasPrefix(html, "<!-- Generated by") || strings.Count(html, "<") != 1 {
				t.Errorf("there is HTML: %s", html)
			}
		case *extast.Table:
			seen.tables++
		case *extast.TableHeader:
			columns = n.ChildCount()
		case *extast.TableRow:
			if n.ChildCount() != columns {
				t.Errorf("a row of %d values in a table of %d columns", n.ChildCount(), columns)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// A row with too many values loses them, so that the bars count.
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "|") && !strings.HasSuffix(line, " |\n") && !strings.HasSuffix(line, "---|\n") {
			t.Errorf("a row that does not end: %s", line)
		}
	}
	return seen
}

func lineAround(content []byte, n ast.Node) string {
	if n.Type() != ast.TypeBlock || n.Lines().Len() == 0 {
		return ""
	}
	return string(n.Lines().Value(content))
}

func TestSimulatedAndDigestsAreShown(t *testing.T) {
	document := sample(t)
	in := input(t)
	in.Documents = []*evidence.Cell{document}
	text := string(UpgradeMatrix(in))
	for _, want := range []string{", simulated runtime", document.From.Chart.Digest, document.To.Image.Digest, document.Runtime.Target.Digest, document.Cluster.Kubernetes, "provider `embedded`", document.Tool.Commit, document.Reproduce, "(evidence/" + document.ID + ".json)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not show %q", want)
		}
	}
}
