package compat

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// around puts rows of runtimeReleases, which begin with a dash in the first column, into a valid
// file; v1.27.0 and v1.30.0 must be among them.
func around(rows string) string {
	return `# The head of the file.
apiVersion: compatibility.trussium.io/v1

operatorReleases:   # odd   spacing stays
    - version: '0.3.1'
      commit:  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa

runtimeReleases:
` + rows + `
# A comment between the sections.
kubernetes: {floor: "1.25", versions: {default: ["1.34.4"]}}
upgrades:
- from: "0.3.1"
  runtime: {baseline: v1.27.0, target: v1.30.0}
  rollback: chart
  crds: apply   # the end, without a line break`
}

const digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

const plainRows = `# The first release.
- version: v1.27.0
  imageTag: "1.27.0"
  contractImpact: representative # kept
  decision: validated   # since 2026
  # A note that belongs to v1.27.0.

# The release after it.
- version: v1.30.0
  imageTag: "1.30.0"
  contractImpact: representative
  decision: validated
`

func TestDecide(t *testing.T) {
	for _, test := range []struct {
		name     string
		rows     string
		decision RuntimeDecision
		old, new string // what changes in the rows
	}{
		{
			"a new release goes behind the earlier one and its comments", plainRows,
			RuntimeDecision{Version: "v1.28.0", Decision: DecisionNotSelected, Reason: "Nothing new: it is routine."},
			"  # A note that belongs to v1.27.0.\n",
			"  # A note that belongs to v1.27.0.\n- version: v1.28.0\n  imageTag: \"1.28.0\"\n  contractImpact: routine\n  decision: not-selected\n  reason: 'Nothing new: it is routine.'\n",
		},
		{
			"the newest release goes last", plainRows,
			RuntimeDecision{Version: "v1.31.0", Decision: DecisionValidated, Digest: digestA, ContractImpact: ImpactContractChange},
			"- version: v1.30.0\n  imageTag: \"1.30.0\"\n  contractImpact: representative\n  decision: validated\n",
			"- version: v1.30.0\n  imageTag: \"1.30.0\"\n  contractImpact: representative\n  decision: validated\n" +
				"- version: v1.31.0\n  imageTag: \"1.31.0\"\n  digest: " + digestA + "\n  contractImpact: contract-change\n  decision: validated\n",
		},
		{
			"the oldest release goes first, above the comment of the one that was", plainRows,
			RuntimeDecision{Version: "v1.2.0", Decision: DecisionSuperseded, SupersededBy: "v1.27.0"},
			"# The first release.\n",
			"- version: v1.2.0\n  imageTag: \"1.2.0\"\n  contractImpact: routine\n  decision: superseded\n  supersededBy: v1.27.0\n# The first release.\n",
		},
		{
			"a decision changes, and gets a key", plainRows,
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionSuperseded, SupersededBy: "v1.30.0", Reason: "Newer is better."},
			"  decision: validated   # since 2026\n",
			"  decision: superseded   # since 2026\n  supersededBy: v1.30.0\n  reason: Newer is better.\n",
		},
		{
			"a digest is added", plainRows,
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionValidated, Digest: digestA},
			"  imageTag: \"1.27.0\"\n", "  imageTag: \"1.27.0\"\n  digest: " + digestA + "\n",
		},
		{
			"keys go, one of them with a block",
			"- version: v1.27.0\n  imageTag: 1.27.0\n  reason: >-\n    It was\n    # no comment\n    superseded.\n  contractImpact: routine\n  supersededBy: v1.30.0 # gone\n  decision: superseded\n- {version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated}\n",
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionValidated, Reason: "It was tested."},
			"  reason: >-\n    It was\n    # no comment\n    superseded.\n  contractImpact: routine\n  supersededBy: v1.30.0 # gone\n  decision: superseded\n",
			"  reason: It was tested.\n  contractImpact: routine\n  decision: validated\n",
		},
		{
			"the first key goes",
			"-   supersededBy: v1.30.0\n    version: v1.27.0\n    imageTag: 1.27.0\n    contractImpact: routine\n    decision: superseded\n-   {version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated}\n",
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionNotSelected},
			"-   supersededBy: v1.30.0\n    version: v1.27.0\n    imageTag: 1.27.0\n    contractImpact: routine\n    decision: superseded\n",
			"-   version: v1.27.0\n    imageTag: 1.27.0\n    contractImpact: routine\n    decision: not-selected\n",
		},
		{
			"a row in braces",
			"- {version: v1.27.0, imageTag: '1.27.0', contractImpact: routine, decision: not-selected, reason: \"a \\\" b\" } # x\n- { version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated }\n",
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionSuperseded, SupersededBy: "v1.30.0", Reason: "One, two: [three]."},
			"decision: not-selected, reason: \"a \\\" b\" }", "decision: superseded, supersededBy: v1.30.0, reason: \"One, two: [three].\" }",
		},
		{
			"a row in braces loses a key",
			"- {version: v1.27.0, supersededBy: v1.30.0, imageTag: 1.27.0, contractImpact: routine, decision: superseded}\n- { version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated }\n",
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionValidated},
			"v1.27.0, supersededBy: v1.30.0, imageTag: 1.27.0, contractImpact: routine, decision: superseded}", "v1.27.0, imageTag: 1.27.0, contractImpact: routine, decision: validated}",
		},
		{
			"a new release behind a row in braces",
			"  - {version: v1.27.0,\n     imageTag: 1.27.0, contractImpact: routine, decision: validated,\n    }\n  - {version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated}\n",
			RuntimeDecision{Version: "v1.28.0", Decision: DecisionValidated},
			"    }\n", "    }\n  - version: v1.28.0\n    imageTag: \"1.28.0\"\n    contractImpact: representative\n    decision: validated\n",
		},
		{
			"a reason over several lines is replaced",
			"- version: v1.27.0\n  imageTag: 1.27.0\n  contractImpact: routine\n  decision: not-selected\n  reason: It does\n    not   matter\n    at all. # here\n- {version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated}\n",
			RuntimeDecision{Version: "v1.27.0", Decision: DecisionNotSelected, Reason: "It's nothing."},
			"It does\n    not   matter\n    at all. # here", "It's nothing. # here",
		},
		{
			"the same decision again changes nothing", plainRows,
			RuntimeDecision{Version: "v1.30.0", Decision: DecisionValidated}, "", "",
		},
	} {
		for _, newline := range []string{"\n", "\r\n"} {
			t.Run(test.name+map[string]string{"\n": "", "\r\n": ", CRLF"}[newline], func(t *testing.T) {
				before := strings.ReplaceAll(around(test.rows), "\n", newline)
				want := strings.ReplaceAll(around(strings.Replace(test.rows, test.old, test.new, 1)), "\n", newline)
				got, err := Decide("compatibility.yaml", []byte(before), test.decision)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, string(got)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				again, err := Decide("compatibility.yaml", got, test.decision)
				if err != nil || !bytes.Equal(again, got) {
					t.Errorf("deciding the same again gives %v and\n%s", err, cmp.Diff(string(got), string(again)))
				}
			})
		}
	}
}

// TestDecideAtTheEnd checks a list that is the last thing in a file without a last line break.
func TestDecideAtTheEnd(t *testing.T) {
	head, rest, _ := strings.Cut(around(plainRows), "runtimeReleases:\n")
	_, tail, _ := strings.Cut(rest, "# A comment between")
	content := "\ufeff" + head + "# A comment between" + tail + "\nruntimeReleases:\n" + strings.TrimSuffix(plainRows, "\n")
	got, err := Decide("compatibility.yaml", []byte(content), RuntimeDecision{Version: "v1.31.0", Decision: DecisionNotSelected})
	if err != nil {
		t.Fatal(err)
	}
	want := content + "\n- version: v1.31.0\n  imageTag: \"1.31.0\"\n  contractImpact: routine\n  decision: not-selected"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecideRefuses(t *testing.T) {
	reasoned := strings.Replace(plainRows, "# since 2026", "\n  reason: It was first.", 1)
	for name, test := range map[string]struct {
		rows     string
		decision RuntimeDecision
		want     string
	}{
		"no version":           {plainRows, RuntimeDecision{Version: "1.31.0", Decision: DecisionValidated}, "decide 1.31.0: that is not the name of a runtime release: write vX.Y.Z, as in v1.30.0"},
		"no digest":            {plainRows, RuntimeDecision{Version: "v1.31.0", Decision: DecisionValidated, Digest: "latest"}, `decide v1.31.0: the digest "latest" is none: write sha256: and 64 hexadecimal digits`},
		"lines in the reason":  {plainRows, RuntimeDecision{Version: "v1.31.0", Decision: DecisionValidated, Reason: "a\nb"}, "decide v1.31.0: the reason is not one line of text"},
		"superseded by what":   {plainRows, RuntimeDecision{Version: "v1.28.0", Decision: DecisionSuperseded}, "decide v1.28.0: say by which release it is superseded, and only then"},
		"by an unlisted one":   {plainRows, RuntimeDecision{Version: "v1.28.0", Decision: DecisionSuperseded, SupersededBy: "v1.29.0"}, "decide v1.28.0: the file does not list v1.29.0, by which it would be superseded: decide that one first"},
		"by an earlier one":    {plainRows, RuntimeDecision{Version: "v1.28.0", Decision: DecisionSuperseded, SupersededBy: "v1.27.0"}, "decide v1.28.0: v1.27.0 is not later: name the release that was selected in its place"},
		"the old reason stays": {reasoned, RuntimeDecision{Version: "v1.27.0", Decision: DecisionNotSelected}, `decide v1.27.0: the reason in the file is that of another decision ("It was first."): give the new one`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decide("compatibility.yaml", []byte(around(test.rows)), test.decision)
			if !errors.Is(err, ErrDecision) || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
	var invalid *Error
	if _, err := Decide("compatibility.yaml", []byte("apiVersion: x\n"), RuntimeDecision{}); !errors.As(err, &invalid) {
		t.Errorf("a wrong file: got %v", err)
	}
	brackets := around("  [{version: v1.27.0, imageTag: 1.27.0, contractImpact: routine, decision: validated}, {version: v1.30.0, imageTag: 1.30.0, contractImpact: routine, decision: validated}]\n")
	if _, err := Decide("compatibility.yaml", []byte(brackets), RuntimeDecision{Version: "v1.31.0", Decision: DecisionValidated}); err == nil || !strings.Contains(err.Error(), "one dash for each release") {
		t.Errorf("a list in brackets: got %v", err)
	}
	tagged := around(strings.Replace(plainRows, "decision: validated ", "decision: !!str validated ", 1))
	if _, err := Decide("compatibility.yaml", []byte(tagged), RuntimeDecision{Version: "v1.27.0", Decision: DecisionNotSelected}); err == nil || !strings.Contains(err.Error(), "YAML tag") {
		t.Errorf("a tagged value: got %v", err)
	}
}

// TestDecideInTheRepositoryFile checks that in a real file only whole lines of the row are added.
func TestDecideInTheRepositoryFile(t *testing.T) {
	content, err := os.ReadFile("../../compatibility.yaml")
	if err != nil {
		t.Fatal(err)
	}
	edited, err := Decide("compatibility.yaml", content, RuntimeDecision{Version: "v1.28.3", Decision: DecisionNotSelected})
	if err != nil {
		t.Fatal(err)
	}
	added := []string{"  - version: v1.28.3", `    imageTag: "1.28.3"`, "    contractImpact: routine", "    decision: not-selected"}
	before, after := strings.Split(string(content), "\n"), strings.Split(string(edited), "\n")
	at := slices.Index(after, added[0])
	if at < 0 || !slices.Equal(after[at:at+len(added)], added) || !slices.Equal(slices.Delete(after, at, at+len(added)), before) {
		t.Errorf("it became\n%s", edited)
	}
}

// FuzzDecide checks that no valid file makes Decide panic, and that what it writes says what was
// decided and is otherwise what it was.
func FuzzDecide(f *testing.F) {
	for _, path := range testFiles(f, "testdata/valid/*.yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "v1.28.0", "a: b", true)
		f.Add(data, "v1.27.0", "", false)
	}
	f.Add([]byte(around(plainRows)), "v1.30.0", "# x", true)
	f.Add([]byte(around("- {version: v1.27.0,\n   imageTag: '1.27.0', contractImpact: routine, reason: \"a \\\" b\", decision: validated }\n"+
		"- version: v1.30.0\n  reason: |-\n    # x\n  imageTag: 1.30.0\n  supersededBy: v1.31.0\n  contractImpact: routine\n  decision: superseded\n"+
		"- version: v1.31.0\n  imageTag: 1.31.0\n  contractImpact: routine\n  decision: validated\n")), "v1.30.0", "it's", true)
	f.Fuzz(func(t *testing.T, data []byte, version, reason string, digest bool) {
		decision := RuntimeDecision{Version: version, Decision: DecisionNotSelected, Reason: reason}
		if digest {
			decision.Digest = digestA
		}
		edited, err := Decide("compatibility.yaml", data, decision)
		if err != nil {
			return
		}
		file, err := Parse("compatibility.yaml", edited)
		if err != nil {
			t.Fatalf("the result is not valid: %v", err)
		}
		release, _ := file.RuntimeRelease(version)
		if release.Decision != DecisionNotSelected || strings.TrimSpace(reason) != "" && release.Reason != strings.TrimSpace(reason) || digest && release.Digest != digestA {
			t.Errorf("the row is %+v", release)
		}
		if bytes.Count(edited, []byte("#")) < bytes.Count(data, []byte("#"))-strings.Count(string(data), "supersededBy")-strings.Count(string(data), "reason") {
			t.Errorf("comments are gone:\n%s", edited)
		}
	})
}
