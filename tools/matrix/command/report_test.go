package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/git/gittest"
)

const rowID = "0.3.1--checkout--k8s-1.37.2--embedded"

// checkoutFile is the compatibility file of the checkout below, but for the commit.
const checkoutFile = `apiVersion: compatibility.trussium.io/v1
operatorReleases:
  - {version: 0.3.1, commit: "COMMIT"}
  - {version: 0.5.0, commit: "COMMIT"}
runtimeReleases:
  - {version: v1.27.0, imageTag: 1.27.0, contractImpact: representative, decision: validated}
  - {version: v1.30.0, imageTag: 1.30.0, contractImpact: representative, decision: validated}
runtimeCharts: [{version: 1.3.1}]
kubernetes:
  floor: "1.25"
  versions: {default: [1.37.2]}
combinations:
  - {operator: 1.0.5, runtime: v1.30.0, runtimeChart: 1.3.1, kubernetes: ">=1.25", status: tested}
upgrades:
  - {from: 0.3.1, runtime: {baseline: v1.27.0, target: v1.30.0}, rollback: chart, crds: hook}
`

// clone is a repository of its own that the command works on.
type clone struct {
	t      *testing.T
	dir    string
	commit string
}

// newClone has one commit, evidence that proves everything, and generated documents that are up to date. The working
// directory is in it, and the cache is empty.
func newClone(t *testing.T) *clone {
	t.Helper()
	for _, name := range []string{"GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	c := &clone{t: t, dir: t.TempDir()}
	c.write("go.mod", "module github.com/trussiumhq/trussium-operator\n")
	c.write("charts/trussium-operator/Chart.yaml", "apiVersion: v2\nname: trussium-operator\nversion: 1.0.5\n")
	c.write("README.md", "# Title\n<!-- BEGIN matrix: combinations -->\n<!-- END matrix: combinations -->\n")
	c.git("init", "--quiet", "--initial-branch=main")
	c.git("add", "--all")
	c.git("commit", "--quiet", "--message=first")
	c.commit = c.git("rev-parse", "HEAD")
	c.write("compatibility.yaml", strings.ReplaceAll(checkoutFile, "COMMIT", c.commit))
	c.save(func(*evidence.Cell) {})
	t.Chdir(c.dir)
	if code, _, stderr := c.matrix("report"); code != exitGreen {
		t.Fatalf("report: exit code %d: %s", code, stderr)
	}
	return c
}

func (c *clone) write(path, content string) {
	c.t.Helper()
	file := filepath.Join(c.dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clone) read(path string) string {
	c.t.Helper()
	content, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(path)))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(content)
}

func (c *clone) git(args ...string) string {
	c.t.Helper()
	return gittest.Run(c.t, c.dir, args...)
}

// save writes the evidence of the row, changed in one way.
func (c *clone) save(change func(*evidence.Cell)) {
	c.t.Helper()
	cell := proven(c.commit)
	change(cell)
	if err := (evidence.Store{Dir: filepath.Join(c.dir, "evidence")}).Save(cell); err != nil {
		c.t.Fatal(err)
	}
}

// matrix runs the command in the checkout.
func (c *clone) matrix(args ...string) (code int, stdout, stderr string) {
	c.t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), args, &out, &err)
	return code, out.String(), err.String()
}

// proven is evidence of the row.
func proven(commit string) *evidence.Cell {
	finished := time.Date(2026, 11, 30, 1, 2, 0, 0, time.UTC)
	image := func(name, tag string) evidence.Artifact {
		return evidence.Artifact{Ref: "ghcr.io/trussiumhq/" + name + ":" + tag, Digest: "sha256:" + tag, Simulated: name == "trussium"}
	}
	return &evidence.Cell{
		APIVersion: evidence.APIVersion, Kind: evidence.Kind, ID: rowID, Key: "k",
		Upgrade: evidence.Upgrade{Row: "0.3.1", Values: "default", CRDs: "hook", Rollback: "chart"},
		From:    evidence.Release{Version: "0.3.1", Source: "source", Commit: commit, Image: image("trussium-operator", "0.3.1")},
		To:      evidence.Release{Version: "1.0.5", Source: "checkout", Commit: commit, Image: image("trussium-operator", "1.0.5")},
		Runtime: evidence.RuntimeImages{Baseline: image("trussium", "1.27.0"), Target: image("trussium", "1.30.0")},
		Cluster: evidence.Cluster{Provider: "embedded", Kubernetes: "v1.37.2", Control: "c"},
		Tool:    evidence.Tool{Commit: commit, Go: "go1.26.0", Platform: "linux/amd64"},
		Started: finished.Add(-2 * time.Minute), Finished: &finished, Verdict: evidence.Proven,
		Steps: []evidence.Step{
			{ID: "alive-after", Phase: "upgrade", Check: true, Outcome: evidence.Passed, Claim: "It is alive.", Seconds: 60},
			{ID: "roll-forward", Phase: "runtime", Check: true, Outcome: evidence.Passed, Claim: "It rolls.", Seconds: 48},
		},
		Reproduce: "go run ./tools/matrix run --fresh --retain --cell " + rowID,
	}
}

func failed(cell *evidence.Cell) {
	cell.Verdict, cell.Reason = evidence.Refuted, "roll-forward: 3 of 9 requests failed"
	cell.Steps[1].Outcome, cell.Steps[1].Reason = evidence.Failed, "3 of 9 requests failed"
}

func TestReport(t *testing.T) {
	c := newClone(t)
	for _, document := range []string{"UPGRADE-MATRIX.md", "README.md"} {
		if !strings.Contains(c.read(document), "✅") || !strings.Contains(c.read(document), rowID) {
			t.Errorf("%s does not show the tested cell:\n%s", document, c.read(document))
		}
	}
	if code, stdout, _ := c.matrix("report"); code != exitGreen || !strings.Contains(stdout, "up to date") {
		t.Errorf("again: exit code %d, %q", code, stdout)
	}
	c.save(failed)
	code, stdout, _ := c.matrix("report")
	if code != exitGreen || stdout != "wrote README.md\nwrote UPGRADE-MATRIX.md\n" {
		t.Errorf("after a failure: exit code %d, %q", code, stdout)
	}
	if strings.Contains(c.read("README.md"), "✅") {
		t.Errorf("a failed cell backs a claim:\n%s", c.read("README.md"))
	}
}

// The documents of this repository must keep the places for their tables.
func TestDocumentsHaveTables(t *testing.T) {
	for document, tables := range map[string][]string{
		"README.md": {"combinations", "upgrades"}, "docs/COMPATIBILITY.md": {"combinations", "upgrades", "operator-releases", "runtime-releases"},
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(document)))
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if !strings.Contains(string(content), "\n<!-- BEGIN matrix: "+table+" -->\n") {
				t.Errorf("%s has no table %s", document, table)
			}
		}
	}
}

// TestVerify breaks one thing each.
func TestVerify(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*clone)
		code   int
		says   string
	}{
		"all is well": {func(*clone) {}, exitGreen, ""},
		"edited table": {func(c *clone) { c.write("README.md", strings.Replace(c.read("README.md"), "tested", "well tested", 1)) }, exitRed,
			"README.md:1:1: the document is not what the compatibility file and the evidence say; run `go run ./tools/matrix report`"},
		"edited prose":  {func(c *clone) { c.write("README.md", "New.\n"+c.read("README.md")) }, exitGreen, ""},
		"edited matrix": {func(c *clone) { c.write("UPGRADE-MATRIX.md", "all is well\n") }, exitRed, "UPGRADE-MATRIX.md:1:1: "},
		"schema gone":   {func(c *clone) { os.Remove("docs/compatibility.schema.json") }, exitRed, "docs/compatibility.schema.json:1:1: "},
		"failed": {func(c *clone) { c.save(failed); c.matrix("report") }, exitRed,
			"compatibility.yaml:13:5: operator 1.0.5 with runtime v1.30.0 is said to be tested, and nothing proves it: " + rowID + " is failed: roll-forward: 3 of 9 requests failed; "},
		"no evidence": {func(c *clone) { os.RemoveAll("evidence"); c.matrix("report") }, exitRed, "compatibility.yaml:15:5: no cell of the row 0.3.1 is tested: there is no evidence yet; run `go run ./tools/matrix run --row 0.3.1`"},
		"dirty":       {func(c *clone) { c.save(func(d *evidence.Cell) { d.To.Dirty = true }); c.matrix("report") }, exitRed, "changes that were not committed"},
		"row changed": {func(c *clone) {
			c.write("compatibility.yaml", strings.Replace(c.read("compatibility.yaml"), "crds: hook", "crds: apply", 1))
			c.matrix("report")
		}, exitRed, "no cell of the row 0.3.1 is tested: crds is apply, and was hook in the evidence"},
		"commit from elsewhere": {func(c *clone) {
			c.save(func(d *evidence.Cell) { d.Tool.Commit = strings.Repeat("1", 40) })
			c.matrix("report")
		}, exitRed, "evidence/" + rowID + `.json:1:1: the evidence is of commit "` + strings.Repeat("1", 40) + `", which is not in the history of HEAD`},
		"commit that is none": {func(c *clone) { c.save(func(d *evidence.Cell) { d.Tool.Commit = "--help" }); c.matrix("report") }, exitRed, `commit "--help"`},
		"commit of a branch": {func(c *clone) {
			c.git("checkout", "--quiet", "-b", "other")
			c.git("commit", "--quiet", "--allow-empty", "--message=other")
			other := c.git("rev-parse", "HEAD")
			c.git("checkout", "--quiet", "main")
			c.save(func(d *evidence.Cell) { d.Tool.Commit = other })
			c.matrix("report")
		}, exitRed, "which is not in the history of HEAD"},
		"broken evidence": {func(c *clone) { c.write("evidence/"+rowID+".json", "{\n  nonsense") }, exitInput, "evidence/" + rowID + ".json:2:"},
		"broken markers":  {func(c *clone) { c.write("README.md", "<!-- BEGIN matrix: combinations -->\n") }, exitInput, "README.md:1:1: the table combinations does not end"},
		"broken file":     {func(c *clone) { c.write("compatibility.yaml", "a: b\n") }, exitInput, `compatibility.yaml:1:1: the file has the unknown key "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClone(t)
			test.change(c)
			before := c.read("compatibility.yaml") + c.read("README.md")
			code, stdout, stderr := c.matrix("verify")
			if code != test.code || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, says %q, want %d and %q", code, stderr, test.code, test.says)
			}
			if (code == exitGreen) != (stderr == "" && strings.Contains(stdout, "evidence backs every claim")) {
				t.Errorf("exit code %d, and it prints %q", code, stdout)
			}
			if after := c.read("compatibility.yaml") + c.read("README.md"); after != before {
				t.Error("verify wrote something")
			}
		})
	}
}

func TestVerifyAnnotates(t *testing.T) {
	c := newClone(t)
	c.save(failed)
	c.matrix("report")
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_WORKSPACE", filepath.Dir(c.dir))
	_, _, stderr := c.matrix("verify")
	if want := "\n::error file=" + filepath.Base(c.dir) + "/compatibility.yaml,line=15,col=5,title=compatibility file::no cell of the row 0.3.1"; !strings.Contains(stderr, want) {
		t.Errorf("it says %q, want %q", stderr, want)
	}
	c.write("compatibility.yaml", "apiVersion: compatibility.trussium.io/v1\nkubernetes: 7\n")
	_, _, stderr = c.matrix("validate")
	if want := "::error file=" + filepath.Base(c.dir) + "/compatibility.yaml,line=2,col=13,"; !strings.Contains(stderr, want) {
		t.Errorf("it says %q, want %q", stderr, want)
	}
	t.Setenv("GITHUB_ACTIONS", "")
	if _, _, stderr := c.matrix("validate"); strings.Contains(stderr, "::error") {
		t.Errorf("away from GitHub it says %q", stderr)
	}
}

func TestPlanPredicts(t *testing.T) {
	c := newClone(t)
	c.write("compatibility.yaml", c.read("compatibility.yaml")+"  - {from: 0.5.0, runtime: {baseline: v1.27.0, target: v1.30.0}, rollback: chart, crds: hook}\n")
	plan := func() planResult {
		code, stdout, stderr := c.matrix("plan", "-o", "json", "--jobs", "1")
		var result planResult
		if err := json.Unmarshal([]byte(stdout), &result); err != nil || code != exitGreen || len(result.Cells) != 2 {
			t.Fatalf("exit code %d, %v, %s%s", code, err, stdout, stderr)
		}
		return result
	}
	result := plan()
	if got := result.Cells[0]; got.Minutes == nil || *got.Minutes != 1.8 || got.Basis != "its last run, maybe on another machine" {
		t.Errorf("from the checkout's evidence: %+v", got)
	}
	if got := result.Cells[1]; got.Minutes == nil || *got.Minutes != 1.8 || got.Basis != "median of 1 other cells on embedded, maybe on another machine" || result.Minutes != 3.6 {
		t.Errorf("of another cell: %+v, %.1f minutes in all", got, result.Minutes)
	}
	// What ran on this machine counts more, in whatever checkout.
	cell := proven(c.commit)
	cell.Steps[0].Seconds = 252
	cache := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "trussium-matrix", "runs", "0123", "evidence")
	if err := (evidence.Store{Dir: cache}).Save(cell); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := plan().Cells[0]; got.Minutes == nil || *got.Minutes != 5 || got.Basis != "its last run" {
		t.Errorf("from the cache: %+v", got)
	}
	if _, stdout, _ := c.matrix("plan", "--jobs", "1"); !strings.Contains(stdout, "5.0      its last run") || !strings.Contains(stdout, "About 10.0 minutes for 2 cells, 1 at once") {
		t.Errorf("the table is\n%s", stdout)
	}
	// A run that failed may have ended early.
	failed(cell)
	if err := (evidence.Store{Dir: cache}).Save(cell); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll("evidence"); err != nil {
		t.Fatal(err)
	}
	if got := plan(); got.Cells[0].Minutes != nil || got.Unknown != 2 || !strings.HasPrefix(got.Cells[0].Basis, "unknown") {
		t.Errorf("without a history: %+v", got)
	}
	if _, stdout, _ := c.matrix("plan"); !strings.Contains(stdout, "How long it will take is unknown") {
		t.Errorf("without a history the table is\n%s", stdout)
	}
}

func TestPath(t *testing.T) {
	c := newClone(t)
	code, stdout, _ := c.matrix("path", "--from", "v0.3.1")
	if code != exitGreen || !strings.Contains(stdout, "0.3.1  1.0.5  evidence/"+rowID+".json  simulated runtime\n") {
		t.Errorf("exit code %d, %s", code, stdout)
	}
	code, stdout, _ = c.matrix("path", "--from", "0.3.1", "--to", "1.0.5", "-o", "yaml")
	var result pathResult
	if err := yaml.Unmarshal([]byte(stdout), &result); err != nil || code != exitGreen || len(result.Hops) != 1 || result.Hops[0].Cell != rowID {
		t.Errorf("exit code %d, %v, %s", code, err, stdout)
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--from", "0.5.0"}, exitRed, "the compatibility file has no row from 0.5.0: add one to upgrades"},
		{[]string{"--from", "0.3.1", "--to", "0.5.0"}, exitRed, "from 0.3.1 the evidence leads to 1.0.5 only\nonly upgrades to 1.0.5"},
		{[]string{"--from", "0.3.2"}, exitInput, `--from "0.3.2": there is no such operator release: use one of 0.3.1, 0.5.0, 1.0.5`},
		{[]string{"--from", "0.3.1", "--to", "2.0.0"}, exitInput, `--to "2.0.0": there is no`},
		{[]string{"--from", "1.0.5"}, exitInput, "nothing to upgrade"},
		{nil, exitInput, `--from ""`},
		{[]string{"--from", "0.3.1", "-o", "xml"}, exitInput, `--output "xml"`},
	} {
		code, stdout, stderr := c.matrix(append([]string{"path"}, test.args...)...)
		if code != test.code || !strings.Contains(stdout+stderr, test.says) {
			t.Errorf("path %q: exit code %d, %s%s, want %d and %q", test.args, code, stdout, stderr, test.code, test.says)
		}
	}
	c.save(failed)
	if code, stdout, _ := c.matrix("path", "--from", "0.3.1"); code != exitRed || !strings.Contains(stdout, "cell "+rowID+": failed: roll-forward") {
		t.Errorf("after a failure: exit code %d, %s", code, stdout)
	}
}

func TestDiff(t *testing.T) {
	c := newClone(t)
	c.git("add", "--all")
	c.git("commit", "--quiet", "--message=proven")
	c.save(failed)
	code, stdout, stderr := c.matrix("diff", "HEAD", "evidence")
	if code != exitRed || !strings.Contains(stdout, "step roll-forward  passed") || !strings.Contains(stderr, "evidence proves less than HEAD") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, _ = c.matrix("diff", "evidence", "main", "--output=json")
	var differences []evidence.Difference
	if err := json.Unmarshal([]byte(stdout), &differences); err != nil || code != exitGreen || len(differences) != 1 || differences[0].ID != rowID {
		t.Errorf("the other way round: exit code %d, %v, %s", code, err, stdout)
	}
	if code, stdout, _ := c.matrix("diff", "HEAD", c.commit+"~0"); code != exitInput || stdout != "" {
		t.Errorf("a revision without evidence: exit code %d, %s", code, stdout)
	}
	if code, stdout, _ := c.matrix("diff", "HEAD", "main"); code != exitGreen || !strings.Contains(stdout, "the two sets say the same") {
		t.Errorf("the same: exit code %d, %s", code, stdout)
	}
	if code, stdout, _ := c.matrix("diff", "HEAD", "main", "-o", "json"); code != exitGreen || stdout != "[]\n" {
		t.Errorf("the same as JSON: exit code %d, %s", code, stdout)
	}
	for _, args := range [][]string{{"HEAD"}, {"nowhere", "evidence"}, {"go.mod", "evidence"}, {"charts", "evidence"}} {
		if code, _, stderr := c.matrix(append([]string{"diff"}, args...)...); code != exitInput {
			t.Errorf("diff %q: exit code %d, %s", args, code, stderr)
		}
	}
}
