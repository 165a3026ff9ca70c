package triage

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"pgregory.net/rapid"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

// Update is for the tests of package triage_test, too.
var Update = flag.Bool("update", false, "write what was seen into the golden files")

// world is one release after v1.30.0, which is validated.
func world(t interface{ Fatal(...any) }, notes string, image Image) World {
	data, err := os.ReadFile(filepath.Join("testdata", "compatibility.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := compat.Parse("compatibility.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := OperatorContract()
	if err != nil {
		t.Fatal(err)
	}
	day := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	return World{
		File: file, Contract: contract, Candidate: "1.0.5", ImageRepository: "ghcr.io/trussiumhq/trussium",
		Releases: []Release{
			{Version: "v1.30.0", Published: day.Add(-24 * time.Hour), Created: day.Add(-24 * time.Hour)},
			{Version: "v1.31.0", Published: day, Created: day, Notes: notes, URL: "https://github.com/trussiumhq/trussium/releases/tag/v1.31.0"},
		},
		Images:  map[string]Image{"v1.30.0": sound(nil), "v1.31.0": image},
		Commits: map[string]string{"v1.31.0": strings.Repeat("c", 40)},
		Now:     day.Add(time.Hour), ImageWait: 6 * time.Hour,
	}
}

// only returns the only proposal of a plan.
func only(t interface{ Fatalf(string, ...any) }, p Plan) Proposal {
	var found []Proposal
	for _, step := range p.Steps {
		if step.Proposal != nil {
			found = append(found, *step.Proposal)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the plan has %d proposals, want one: %+v", len(found), p.Steps)
	}
	return found[0]
}

// TestProposalText compares whole proposals with what they were when a person last read them.
func TestProposalText(t *testing.T) {
	changed := sound(func(c *Config) {
		c.User, c.StopSignal, c.Cmd = "0", "SIGINT", []string{"serve", "--port", "9000", "a b"}
		c.Env = map[string]string{"TRUSSIUM_ENVIRONMENT": "development"}
		c.Labels = map[string]string{"io.trussium.contract": "2|`x`", revisionLabel: strings.Repeat("d", 40)}
	})
	for name, w := range map[string]World{
		"routine": world(t, "Faster.\n", sound(nil)),
		"changed": world(t, "# BREAKING\r\nTRUSSIUM_PROVIDER__NAME is required now, says @maintainer (#12).\n", changed),
		"no-image": func() World {
			w := world(t, "", Image{State: ImageMissing})
			w.Now = w.Now.Add(48 * time.Hour)
			return w
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			got := only(t, w.Plan()).Body
			path := filepath.Join("testdata", "proposals", name+".md")
			if *Update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("it differs from %s (-want +got):\n%s", path, diff)
			}
		})
	}
}

// TestRowsAreValid puts the rows of a proposal into the file, and plans them: what a maintainer is
// told to add and to run must work.
func TestRowsAreValid(t *testing.T) {
	for _, image := range []Image{sound(nil), {State: ImageMissing}} {
		w := world(t, "", image)
		w.Now = w.Now.Add(48 * time.Hour)
		body := only(t, w.Plan()).Body
		_, rest, _ := strings.Cut(body, "```yaml\n")
		snippet, rest, _ := strings.Cut(rest, "\n```")
		content, err := os.ReadFile(filepath.Join("testdata", "compatibility.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var lists []string
		for _, section := range regexp.MustCompile(`(?m)^[a-zA-Z]+:\n(?:  .*\n?)+`).FindAllString(snippet+"\n", -1) {
			head, items, _ := strings.Cut(section, "\n")
			lists = append(lists, head)
			content = []byte(strings.Replace(string(content), head+"\n", head+"\n"+items, 1))
		}
		if strings.Join(lists, " ") != "runtimeReleases: combinations: upgrades:" {
			t.Fatalf("the rows are for %q:\n%s", lists, snippet)
		}
		file, err := compat.Parse("compatibility.yaml", content)
		if err != nil {
			t.Fatalf("with the rows the file is not valid: %v\n%s", err, content)
		}
		_, rest, _ = strings.Cut(rest, "go run ./tools/matrix run --row ")
		row, _, _ := strings.Cut(rest, "\n")
		cells, err := plan.Cells(file, plan.Options{Provider: "embedded", Candidate: "1.0.5", Rows: []string{row}})
		if err != nil || len(cells) != 1 || cells[0].Target.Version != "v1.31.0" || cells[0].Baseline.Version != "v1.30.0" || cells[0].Skip.Code != "" {
			t.Errorf("the command runs %+v, %v", cells, err)
		}
	}
}

// hostile are texts that try to get out of where they are shown.
var hostile = []string{
	"<!-- trussium-triage proposal=v1.31.0 digest=none -->", "<!--", "-->", "</details>", "</pre></code>", "<script>alert(1)</script>", "<img src=x onerror=y>",
	"@everyone", "@trussiumhq/team", "#1", "trussiumhq/trussium#2", "closes #3", "```", "````````", "~~~", "`", "``", "|", "\\|", "\n", "\r\n", "\r", "\n\n", "\t", "    ", "\x00", "\x1b[31m", "\x7f",
	"\u202e", "\u2066", "\u200b", "\ufeff", "\u0085", "\u2028", "\xff\xfe", "\xc3", "[a](javascript:x)", "![x](http://x.test/y.png)", "https://x.test/", "www.x.test", "a@x.test", "# Head", "- item", "> quote", "* * *",
	"&lt;", "&#64;everyone", "1. x", "HOSTILE", "TRUSSIUM_RUNTIME__PORT was removed", "/health/live changed", "breaking", "⚠️", "👩‍💻", "é", "<a href=\"http://x.test\">", "\\", "$x$", "_a_", "**b**", ":smile:",
}

func hostileText(limit int) *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom(hostile), rapid.StringN(0, 20, -1), rapid.SampledFrom([]string{strings.Repeat("`", 5000), strings.Repeat("x", 30000), strings.Repeat("\n", 9000), strings.Repeat("界", 20000)}))
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 0, limit).Draw(t, "pieces"), "") })
}

// markdown reads text as GitHub does.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()

// htmlLine is the only HTML that a proposal has.
var htmlLine = regexp.MustCompile(`^(<!-- trussium-triage [a-z]+=[^>]* -->|<details><summary>Release notes, as they were published</summary>|</details>)\n?$`)

// rendered checks a text for everything that a stranger could do in it: what is in words must be
// the author's, that is letters that the proposals themselves use.
func rendered(content string) error {
	source := []byte(content)
	return ast.Walk(markdown.Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
			return ast.WalkSkipChildren, nil
		case *ast.RawHTML:
			return ast.WalkStop, errors.New("there is HTML in a line")
		case *ast.Image:
			return ast.WalkStop, errors.New("there is an image")
		case *ast.HTMLBlock:
			lines := string(n.Lines().Value(source))
			if n.HasClosure() {
				lines += string(n.ClosureLine.Value(source))
			}
			for line := range strings.Lines(lines) {
				if !htmlLine.MatchString(strings.TrimSpace(line)) && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "Runtime release v") && !strings.HasPrefix(line, "**") {
					return ast.WalkStop, fmt.Errorf("there is the HTML %q", line)
				}
			}
		case *ast.AutoLink:
			return ast.WalkStop, fmt.Errorf("there is the link %q", n.URL(source))
		case *ast.Link:
			if !strings.HasPrefix(string(n.Destination), "https://github.com/trussiumhq/") {
				return ast.WalkStop, fmt.Errorf("there is a link to %q", n.Destination)
			}
		case *ast.Text:
			value := string(n.Segment.Value(source))
			if strings.ContainsAny(value, "@$") || strings.Contains(value, "HOSTILE") || strings.Contains(value, "x.test") || regexp.MustCompile(`#\d`).MatchString(value) {
				return ast.WalkStop, fmt.Errorf("a stranger's words are in the text: %q", value)
			}
		}
		return ast.WalkContinue, nil
	})
}

// TestHostileTexts checks that whatever strangers write, a proposal fits, keeps its one marker, and
// shows their words only as code.
func TestHostileTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		short := hostileText(4)
		config := sound(func(c *Config) {
			c.User, c.StopSignal = short.Draw(t, "user"), short.Draw(t, "signal")
			c.Entrypoint, c.Cmd = []string{short.Draw(t, "entrypoint")}, []string{short.Draw(t, "command")}
			c.Ports, c.Healthcheck = []string{short.Draw(t, "port")}, []string{short.Draw(t, "check")}
			c.Env = map[string]string{"TRUSSIUM_RUNTIME__HOST": short.Draw(t, "env")}
			c.Labels = map[string]string{
				"io.trussium." + short.Draw(t, "label"): short.Draw(t, "value"), revisionLabel: short.Draw(t, "revision"), versionLabel: short.Draw(t, "version"),
			}
		}).Platforms[0].Config
		image := sound(nil)
		image.Platforms = []Platform{{short.Draw(t, "platform"), config}}
		w := world(t, hostileText(40).Draw(t, "notes"), image)
		w.Releases[1].URL = rapid.OneOf(short, rapid.SampledFrom([]string{"https://x.test/)", "javascript:x", w.Releases[1].URL})).Draw(t, "url")
		if strings.HasPrefix(w.Releases[1].URL, "https://x.test/") && plainAddress.MatchString(w.Releases[1].URL) {
			w.Releases[1].URL = "" // the address of a release is GitHub's, not a stranger's
		}
		w.Commits["v1.31.0"] = short.Draw(t, "commit")
		proposal := only(t, w.Plan())
		body := proposal.Body
		if utf8.RuneCountInString(body) > 65536 || len(body) > maxBody || !utf8.ValidString(body) {
			t.Errorf("the body has %d bytes", len(body))
		}
		if strings.Count(body, "<!--") != 1 || strings.Count(body, "-->") != 1 {
			t.Errorf("there is more than one marker")
		}
		if about, ok := identityOf(body); !ok || about != (identity{"v1.31.0", image.Digest}) {
			t.Errorf("the marker is %+v", about)
		}
		for _, c := range body {
			if c != '\n' && c != '\t' && !unicode.IsGraphic(c) {
				t.Errorf("the body has the character %U", c)
			}
		}
		if err := rendered(body); err != nil {
			t.Errorf("%v\n%s", err, clip(body, 5000))
		}
		// The reason of a decision is a maintainer's, but may quote anything.
		comment := decisionOn(compat.RuntimeRelease{Version: "v1.31.0", Decision: compat.DecisionNotSelected, Reason: short.Draw(t, "reason")}, nil).Comment
		if err := rendered(comment); err != nil {
			t.Errorf("%v\n%s", err, comment)
		}
	})
}

// TestHugeNotes checks that notes of any size are cut, and that it is said.
func TestHugeNotes(t *testing.T) {
	for name, notes := range map[string]string{
		"one line": strings.Repeat("x", 1<<20), "many lines": strings.Repeat("x\n", 1<<19), "empty lines": strings.Repeat("\n", 1<<20) + "x",
		"mentions": strings.Repeat("TRUSSIUM_RUNTIME__PORT was removed "+strings.Repeat("y", 1000)+"\n", 1000),
	} {
		body := only(t, world(t, notes, sound(nil)).Plan()).Body
		if len(body) > maxBody || !strings.Contains(body, "The rest is on the page of the release.") || !strings.HasSuffix(body, "</details>\n") {
			t.Errorf("%s: %d bytes, ending in %q", name, len(body), body[len(body)-100:])
		}
		if err := rendered(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCodeBlockAndSpan(t *testing.T) {
	if got, want := codeBlock("a\r\n\x1b[1mb\u202e<!-- c -->\n", 100), "    a\n    \ufffd[1mb\ufffd<! -- c -- >\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for text, want := range map[string]string{
		"": "(none)", "a": "`a`", "a`b": "``a`b``", "`a": "`` `a ``", "a|b": "`a\\|b`", "a\n  b\t": "`a b`", strings.Repeat("é", 400): "`" + strings.Repeat("é", 299) + "…`",
	} {
		if got := code(text, maxValue); got != want {
			t.Errorf("code(%q) is %q, want %q", text, got, want)
		}
	}
}
