package claim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/check"
	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
)

const (
	commitOld    = "1111111111111111111111111111111111111111"
	commitBroken = "2222222222222222222222222222222222222222"
	digest       = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

const content = `apiVersion: compatibility.trussium.io/v1
operatorReleases:
  - {version: 0.3.1, commit: "` + commitOld + `"}
  - version: 1.0.4
    commit: "` + commitBroken + `"
    knownDefects: [{id: role-incomplete, summary: The role is incomplete., fixedIn: 1.0.5}]
runtimeReleases:
  - {version: v1.27.0, imageTag: 1.27.0, contractImpact: representative, decision: validated}
  - {version: v1.29.1, imageTag: 1.29.1, contractImpact: routine, decision: validated}
  - {version: v1.30.0, imageTag: 1.30.0, digest: "` + digest + `", contractImpact: representative, decision: validated}
runtimeCharts: [{version: 1.3.1}]
kubernetes:
  floor: "1.25"
  versions: {default: [1.37.2]}
combinations:
  - {operator: 1.0.5, runtime: v1.27.0, runtimeChart: 1.3.1, kubernetes: ">=1.25", status: tested}
  - {operator: 1.0.5, runtime: v1.30.0, runtimeChart: 1.3.1, kubernetes: ">=1.25", status: tested}
  - {operator: 1.0.5, runtime: v1.29.1, runtimeChart: 1.3.1, kubernetes: ">=1.25", status: historical}
upgrades:
  - from: 0.3.1
    runtime: {baseline: v1.27.0, target: v1.30.0}
    rollback: chart
    crds: hook
  - id: chain
    from: 0.3.1
    through: [1.0.4]
    runtime: {baseline: v1.27.0, target: v1.30.0}
    rollback: none
    rollbackReason: It only goes forward.
    crds: hook
`

func load(t *testing.T, content string) *compat.File {
	t.Helper()
	file, err := compat.Parse("compatibility.yaml", []byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func planned(t *testing.T, file *compat.File) []plan.Cell {
	t.Helper()
	cells, err := plan.Cells(file, plan.Options{Provider: "embedded", Candidate: "1.0.5"})
	if err != nil {
		t.Fatal(err)
	}
	return cells
}

const straightID, chainID = "0.3.1--checkout--k8s-1.37.2--embedded", "chain--checkout--k8s-1.37.2--embedded"

// proof is the evidence of the first row, or of the chain, with simulated runtime images.
func proof(chain bool) *evidence.Cell {
	finished := time.Date(2026, 11, 30, 1, 0, 0, 0, time.UTC)
	image := func(name, tag string, simulated bool) evidence.Artifact {
		return evidence.Artifact{Ref: "ghcr.io/trussiumhq/" + name + ":" + tag, Digest: "sha256:" + tag, Simulated: simulated}
	}
	release := func(version, source, commit string, defects ...string) evidence.Release {
		return evidence.Release{Version: version, Source: source, Commit: commit, KnownDefects: defects, Image: image("trussium-operator", version, false)}
	}
	document := &evidence.Cell{
		APIVersion: evidence.APIVersion, Kind: evidence.Kind, ID: straightID,
		Upgrade: evidence.Upgrade{Row: "0.3.1", Values: "default", CRDs: "hook", Rollback: "chart"},
		From:    release("0.3.1", "source", commitOld), To: release("1.0.5", "checkout", "c"),
		Runtime: evidence.RuntimeImages{Baseline: image("trussium", "1.27.0", true), Target: image("trussium", "1.30.0", true)},
		Cluster: evidence.Cluster{Provider: "embedded", Kubernetes: "v1.37.2"},
		Started: finished.Add(-time.Minute), Finished: &finished, Verdict: evidence.Proven,
		Steps: []evidence.Step{
			{ID: stepAliveAfter, Check: true, Outcome: evidence.Passed},
			{ID: stepRollForward, Check: true, Outcome: evidence.Passed},
		},
	}
	if chain {
		document.ID = chainID
		document.Through = []evidence.Release{release("1.0.4", "source", commitBroken, "role-incomplete: The role is incomplete.")}
		document.Upgrade = evidence.Upgrade{Row: "chain", Values: "default", CRDs: "hook", Rollback: "none", RollbackReason: "It only goes forward."}
	}
	return document
}

func red(d *evidence.Cell) { d.Verdict, d.Reason = evidence.Refuted, "traffic: 3 of 9 requests failed" }

func TestStepsAreThoseOfTheChecks(t *testing.T) {
	if stepAliveAfter != check.AliveAfter.ID || stepRollForward != check.RollForward.ID {
		t.Errorf("the checks are %s and %s", check.AliveAfter.ID, check.RollForward.ID)
	}
}

// TestCells changes the evidence of a cell in one way each.
func TestCells(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*evidence.Cell)
		state  State
		reason string
	}{
		"as planned":        {func(*evidence.Cell) {}, Tested, ""},
		"published release": {func(d *evidence.Cell) { d.From.Source, d.From.Commit = "published", "" }, Tested, ""},
		"failed":            {red, Red, "failed: traffic: 3 of 9 requests failed"},
		"no cluster": {func(d *evidence.Cell) {
			d.Verdict, d.Reason, d.Cluster = evidence.Infrastructure, "no space", evidence.Cluster{}
		}, Red, "infrastructure: no space"},
		"unfinished":           {func(d *evidence.Cell) { d.Verdict = evidence.Unfinished }, Red, "unfinished"},
		"skipped then":         {func(d *evidence.Cell) { d.Verdict, d.Reason = evidence.NotRun, "same-version: x" }, NotRun, "there is no evidence yet"},
		"dirty checkout":       {func(d *evidence.Cell) { d.To.Dirty = true }, Uncommitted, "changes that were not committed"},
		"dirty tool":           {func(d *evidence.Cell) { d.Tool.Dirty = true }, Uncommitted, "changes that were not committed"},
		"other candidate":      {func(d *evidence.Cell) { d.To.Version = "1.0.4" }, Outdated, "the candidate is 1.0.5, and was 1.0.4 in the evidence"},
		"other source":         {func(d *evidence.Cell) { d.From.Version = "0.3.0" }, Outdated, "from and through is 0.3.1, and was 0.3.0 in the evidence"},
		"other commit":         {func(d *evidence.Cell) { d.From.Commit = commitBroken }, Outdated, "the commit of 0.3.1 is " + commitOld + ", and was " + commitBroken},
		"through others":       {func(d *evidence.Cell) { d.Through = []evidence.Release{{Version: "0.5.0"}} }, Outdated, "from and through is 0.3.1, and was 0.3.1, 0.5.0"},
		"other rollback":       {func(d *evidence.Cell) { d.Upgrade.Rollback = "none" }, Outdated, "rollback is chart, and was none"},
		"other reason":         {func(d *evidence.Cell) { d.Upgrade.RollbackReason = "x" }, Outdated, "rollbackReason is none, and was x"},
		"other CRD strategy":   {func(d *evidence.Cell) { d.Upgrade.CRDs = "apply" }, Outdated, "crds is hook, and was apply"},
		"other values":         {func(d *evidence.Cell) { d.Upgrade.Values = "reuse" }, Outdated, "values is default, and was reuse"},
		"other baseline":       {func(d *evidence.Cell) { d.Runtime.Baseline.Ref = "x:1.26.0" }, Outdated, "runtime.baseline is 1.27.0, and was 1.26.0"},
		"other target":         {func(d *evidence.Cell) { d.Runtime.Target.Ref = "x:1.29.1" }, Outdated, "runtime.target is 1.30.0, and was 1.29.1"},
		"other image":          {func(d *evidence.Cell) { d.Runtime.Target.Simulated = false }, Outdated, "the image of v1.30.0 is " + digest + ", and was sha256:1.30.0"},
		"the decided image":    {func(d *evidence.Cell) { d.Runtime.Target.Simulated, d.Runtime.Target.Digest = false, digest }, Tested, ""},
		"other Kubernetes":     {func(d *evidence.Cell) { d.Cluster.Kubernetes = "v1.34.4" }, Outdated, "the Kubernetes version is 1.37.2, and was 1.34.4"},
		"other provider":       {func(d *evidence.Cell) { d.Cluster.Provider = "kind" }, Outdated, "the provider is embedded, and was kind"},
		"defect not yet known": {func(d *evidence.Cell) { d.From.KnownDefects = []string{"a: b"} }, Outdated, "the known defects of 0.3.1 are none, and were a: b"},
	} {
		t.Run(name, func(t *testing.T) {
			document := proof(false)
			test.change(document)
			cells := Cells(planned(t, load(t, content)), []*evidence.Cell{proof(true), document})
			if len(cells) != 2 || cells[0].ID != straightID || cells[1].State != Tested {
				t.Fatalf("cells are %+v, want the row and the tested chain", cells)
			}
			if got := cells[0]; got.State != test.state || !strings.Contains(got.Reason, test.reason) || (got.Reason == "") != (test.state == Tested) || got.Evidence != document {
				t.Errorf("got %s, %q, want %s, %q", got.State, got.Reason, test.state, test.reason)
			}
		})
	}
}

func TestCellsWithoutEvidenceOrPlan(t *testing.T) {
	file := load(t, content)
	other := proof(false)
	other.ID, other.Upgrade.Row = "gone--checkout--k8s-1.37.2--embedded", "gone"
	cells := Cells(planned(t, file), []*evidence.Cell{other})
	var got []string
	for _, c := range cells {
		got = append(got, c.ID+" "+string(c.State)+" "+c.Reason)
	}
	want := []string{
		straightID + " not-run there is no evidence yet",
		chainID + " not-run there is no evidence yet",
		"gone--checkout--k8s-1.37.2--embedded unlisted the compatibility file has no row gone",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	same, err := plan.Cells(file, plan.Options{Provider: "embedded", Candidate: "0.3.1"})
	if err != nil {
		t.Fatal(err)
	}
	if c := Cells(same, []*evidence.Cell{proof(false)})[0]; c.State != NotRun || !strings.Contains(c.Reason, "nothing to upgrade to") {
		t.Errorf("a cell that is left out: got %s, %q", c.State, c.Reason)
	}
}

// A version that the plan's provider can't run says nothing about one that another run had.
func TestCellsOfOtherClustersAreNotLeftOut(t *testing.T) {
	cells, err := plan.Cells(load(t, content), plan.Options{Provider: "embedded", Candidate: "1.0.5", Available: []string{"1.34.4"}})
	if err != nil {
		t.Fatal(err)
	}
	other := proof(false)
	other.ID, other.Cluster.Kubernetes = "0.3.1--checkout--k8s-1.34.4--embedded", "v1.34.4"
	got := Cells(cells, []*evidence.Cell{other})
	if got[0].State != NotRun || got[2].State != Tested {
		t.Errorf("got %s (%s), %s (%s), want not-run and tested", got[0].State, got[0].Reason, got[2].State, got[2].Reason)
	}
}

// A cell of a planned row that ran on another version or provider is as good as a planned one.
func TestCellsOfOtherClusters(t *testing.T) {
	other, failed, changed := proof(false), proof(false), proof(false)
	other.ID, other.Cluster.Kubernetes, other.Cluster.Provider = "0.3.1--checkout--existing", "v1.34.4+k3s1", "existing"
	failed.ID, failed.Cluster.Kubernetes = "0.3.1--checkout--k8s-1.31.13--embedded", "v1.31.13"
	red(failed)
	changed.ID, changed.Upgrade.CRDs = "0.3.1--checkout--k8s-1.34.4--kind", "apply"
	cells := Cells(planned(t, load(t, content)), []*evidence.Cell{other, failed, changed})[2:]
	var got []string
	for _, c := range cells {
		got = append(got, c.ID+" "+c.Planned.Kubernetes+" "+string(c.State))
	}
	want := []string{
		"0.3.1--checkout--existing 1.34.4+k3s1 tested",
		"0.3.1--checkout--k8s-1.31.13--embedded 1.31.13 red",
		"0.3.1--checkout--k8s-1.34.4--kind 1.37.2 outdated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCombinations changes the only evidence there is, and looks at the combination with the target image.
func TestCombinations(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*evidence.Cell)
		reason string
	}{
		"proven":                {func(*evidence.Cell) {}, ""},
		"another distribution":  {func(d *evidence.Cell) { d.Cluster.Kubernetes = "v1.31.2-eks-7f9249a" }, ""},
		"as baseline":           {func(d *evidence.Cell) { d.Runtime.Baseline, d.Runtime.Target = d.Runtime.Target, d.Runtime.Baseline }, ""},
		"another operator":      {func(d *evidence.Cell) { d.To.Version = "1.0.6" }, "no evidence is about operator 1.0.5"},
		"another image":         {func(d *evidence.Cell) { d.Runtime.Target.Ref = "x:1.29.1" }, "no cell with operator 1.0.5 uses the runtime image 1.30.0"},
		"Kubernetes too old":    {func(d *evidence.Cell) { d.Cluster.Kubernetes = "v1.24.9" }, "the evidence is of Kubernetes 1.24.9, which is not >=1.25"},
		"Kubernetes unreadable": {func(d *evidence.Cell) { d.Cluster.Kubernetes = "" }, "which is not >=1.25"},
		"another digest":        {func(d *evidence.Cell) { d.Runtime.Target.Simulated = false }, "the image of v1.30.0 is " + digest},
		"failed":                {red, straightID + " is failed: traffic"},
		"not rolled":            {func(d *evidence.Cell) { d.Steps[1].Outcome = evidence.Skipped }, "the step roll-forward of " + straightID + " did not pass"},
		"dirty":                 {func(d *evidence.Cell) { d.To.Dirty = true }, "not committed"},
	} {
		t.Run(name, func(t *testing.T) {
			document := proof(false)
			test.change(document)
			c := Combinations(load(t, content), []*evidence.Cell{document})[1]
			if c.Tested() != (test.reason == "") || !strings.Contains(c.Reason, test.reason) || (c.Reason == "") != c.Tested() {
				t.Errorf("tested: %v, reason %q, want %q", c.Tested(), c.Reason, test.reason)
			}
		})
	}
}

func TestCombinationsTellTheNearestMiss(t *testing.T) {
	other, failed := proof(false), proof(true)
	other.To.Version = "1.0.6"
	red(failed)
	for _, documents := range [][]*evidence.Cell{{other, failed}, {failed, other}} {
		if c := Combinations(load(t, content), documents)[0]; !strings.Contains(c.Reason, chainID+" is failed") {
			t.Errorf("the reason is %q", c.Reason)
		}
	}
	if c := Combinations(load(t, content), nil)[0]; c.Reason != "there is no evidence" {
		t.Errorf("without evidence the reason is %q", c.Reason)
	}
}

func TestCombinationsThatAreHistoricalAreNotTested(t *testing.T) {
	document := proof(false)
	document.Runtime.Target.Ref = "x:1.29.1"
	c := Combinations(load(t, content), []*evidence.Cell{document})[2]
	if c.Runtime != "v1.29.1" || c.Tested() || c.Reason != "" {
		t.Errorf("got %+v", c)
	}
}

func TestProofsWithPublishedImagesComeFirst(t *testing.T) {
	simulated, older, newer := proof(false), proof(false), proof(true)
	simulated.ID, older.ID, newer.ID = "a", "b", "c"
	simulated.Cluster.Kubernetes, older.Cluster.Kubernetes, newer.Cluster.Kubernetes = "v1.37.2", "v1.9.0", "v1.34.4"
	for _, d := range []*evidence.Cell{older, newer} {
		d.Runtime.Baseline.Simulated, d.Runtime.Target.Simulated, d.Runtime.Target.Digest = false, false, digest
	}
	older.Cluster.Kubernetes = "v1.30.0"
	c := Combinations(load(t, content), []*evidence.Cell{simulated, older, newer})[0]
	var ids []string
	for _, d := range c.Proofs {
		ids = append(ids, d.ID)
	}
	if !slices.Equal(ids, []string{"c", "b", "a"}) || c.Simulated() {
		t.Errorf("proofs are %q, all simulated: %v", ids, c.Simulated())
	}
	if c := Combinations(load(t, content), []*evidence.Cell{simulated})[0]; !c.Simulated() {
		t.Error("a proof with a stand-in is not called so")
	}
}

func TestProblems(t *testing.T) {
	file := load(t, content)
	problems := func(candidate string, documents ...*evidence.Cell) []string {
		cells, err := plan.Cells(file, plan.Options{Provider: "embedded", Candidate: candidate})
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, p := range Problems(file, Cells(cells, documents), Combinations(file, documents)) {
			lines = append(lines, p.String())
		}
		return lines
	}
	if got := problems("1.0.5", proof(false), proof(true)); got != nil {
		t.Errorf("all is proven, and got %q", got)
	}
	failed := proof(false)
	red(failed)
	got := problems("1.0.5", failed)
	want := []string{
		"compatibility.yaml:16:5: operator 1.0.5 with runtime v1.27.0 is said to be tested, and nothing proves it: " + straightID + " is failed: traffic: 3 of 9 requests failed; ",
		"compatibility.yaml:17:5: operator 1.0.5 with runtime v1.30.0 is said to be tested",
		"compatibility.yaml:20:5: no cell of the row 0.3.1 is tested: failed: traffic: 3 of 9 requests failed; run `go run ./tools/matrix run --row 0.3.1` and commit the evidence",
		"compatibility.yaml:24:5: no cell of the row chain is tested: there is no evidence yet; ",
	}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got %q\nwant %q", got[i], want[i])
		}
	}
	// Rows that start from the candidate itself are not run, and claim nothing.
	for _, line := range problems("0.3.1") {
		if strings.Contains(line, "no cell of the row") {
			t.Errorf("a row that is left out is said to claim something: %s", line)
		}
	}
}

func TestPath(t *testing.T) {
	cell := func(id, from, to string, through ...string) *evidence.Cell {
		d := proof(false)
		d.ID, d.From.Version, d.To.Version = id, from, to
		for _, version := range through {
			release := evidence.Release{Version: strings.TrimPrefix(version, "!")}
			if strings.HasPrefix(version, "!") {
				release.KnownDefects = []string{"a: b"}
			}
			d.Through = append(d.Through, release)
		}
		return d
	}
	failed := cell("f", "0.3.1", "1.0.5")
	red(failed)
	describe := func(hops []Hop) string {
		text := ""
		for _, hop := range hops {
			text += hop.From + ">" + hop.To + " by " + hop.Proof.ID + ", "
		}
		return text
	}
	chain := cell("c", "0.3.1", "1.0.5", "0.5.0", "!1.0.4")
	for name, test := range map[string]struct {
		documents []*evidence.Cell
		from, to  string
		want      string
	}{
		"straight":               {[]*evidence.Cell{chain, cell("s", "0.3.1", "1.0.5")}, "0.3.1", "1.0.5", "0.3.1>1.0.5 by s, "},
		"straight beats chain":   {[]*evidence.Cell{cell("c", "0.3.1", "1.0.5", "0.5.0"), cell("s", "0.5.0", "1.0.5")}, "0.5.0", "1.0.5", "0.5.0>1.0.5 by s, "},
		"within a chain":         {[]*evidence.Cell{chain}, "0.3.1", "0.5.0", "0.3.1>0.5.0 by c, "},
		"over two cells":         {[]*evidence.Cell{chain, cell("s", "0.5.0", "1.0.5")}, "0.3.1", "1.0.5", "0.3.1>0.5.0 by c, 0.5.0>1.0.5 by s, "},
		"not over a broken one":  {[]*evidence.Cell{chain}, "0.3.1", "1.0.5", ""},
		"out of a broken one":    {[]*evidence.Cell{chain}, "1.0.4", "1.0.5", "1.0.4>1.0.5 by c, "},
		"to a broken one":        {[]*evidence.Cell{chain}, "0.5.0", "1.0.4", "0.5.0>1.0.4 by c, "},
		"failed":                 {[]*evidence.Cell{failed}, "0.3.1", "1.0.5", ""},
		"never back":             {[]*evidence.Cell{cell("s", "0.3.1", "1.0.5")}, "1.0.5", "0.3.1", ""},
		"in a circle":            {[]*evidence.Cell{cell("a", "0.1.0", "0.2.0"), cell("b", "0.2.0", "0.1.0")}, "0.1.0", "0.9.0", ""},
		"nothing about it there": {nil, "0.3.1", "1.0.5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := describe(Path(Hops(test.documents), test.from, test.to)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if got := Reachable(Hops([]*evidence.Cell{chain, cell("s", "0.5.0", "0.6.0")}), "0.3.1"); !slices.Equal(got, []string{"0.5.0", "0.6.0"}) {
		t.Errorf("reachable are %q", got)
	}
}

func TestCompareVersions(t *testing.T) {
	versions := []string{"v1.37.2", "", "1.9.0", "1.10.0-rc.1", "checkout", "1.10.0"}
	slices.SortFunc(versions, CompareVersions)
	if want := []string{"", "checkout", "1.9.0", "1.10.0-rc.1", "1.10.0", "v1.37.2"}; !slices.Equal(versions, want) {
		t.Errorf("got %q, want %q", versions, want)
	}
}
