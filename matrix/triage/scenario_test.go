package triage_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/triage"
	"github.com/trussiumhq/trussium-operator/matrix/triage/github"
	"github.com/trussiumhq/trussium-operator/matrix/triage/githubtest"
)

const (
	runtimeRepository  = "trussiumhq/trussium"
	operatorRepository = "trussiumhq/trussium-operator"
	imageRepository    = "registry.test/trussium"
	botToken           = "ghs_BotTokenThatMustNeverBeSeen0123456789"
)

var bot = githubtest.Actor{Login: "github-actions[bot]", Bot: true, Association: "NONE"}

// compatibility is a valid compatibility file with these rows of runtimeReleases besides v1.27.0
// and v1.30.0, which are validated.
func compatibility(t testing.TB, rows string) *compat.File {
	t.Helper()
	file, err := compat.Parse("compatibility.yaml", []byte(compatibilityText(rows)))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func compatibilityText(rows string) string {
	return `apiVersion: compatibility.trussium.io/v1
operatorReleases:
- {version: "0.9.0", commit: "0000000000000000000000000000000000000009"}
- version: "1.0.4"
  commit: "0000000000000000000000000000000000000010"
  knownDefects: [{id: role-incomplete, summary: The role lacks kinds., fixedIn: "1.0.5"}]
runtimeReleases:
- {version: v1.27.0, imageTag: "1.27.0", contractImpact: representative, decision: validated}
- {version: v1.30.0, imageTag: "1.30.0", contractImpact: representative, decision: validated}
` + rows + `runtimeCharts: [{version: "1.3.1"}]
kubernetes: {floor: "1.25", versions: {default: ["1.37.2"]}}
upgrades:
- {from: "0.9.0", runtime: {baseline: v1.27.0, target: v1.30.0}, rollback: chart, crds: hook}
`
}

// image is an image of the runtime as it should be.
func image(content string) triage.Image {
	config := triage.Config{
		User: "10001:10001", Ports: []string{"9000/tcp"}, Entrypoint: []string{"/app/trussium"}, Env: map[string]string{"TRUSSIUM_ENVIRONMENT": "production"},
		Labels: map[string]string{},
	}
	return triage.Image{
		State: triage.ImagePresent, Digest: fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))),
		Platforms: []triage.Platform{{Name: "linux/amd64", Config: config}, {Name: "linux/arm64", Config: config}},
	}
}

// images is a registry.
type images map[string]triage.Image

func (i images) Image(_ context.Context, ref string) triage.Image {
	if found, ok := i[ref]; ok {
		return found
	}
	return triage.Image{State: triage.ImageMissing}
}

// bench is a GitHub, a registry and a compatibility file.
type bench struct {
	t        testing.TB
	server   *githubtest.Server
	world    *githubtest.World
	images   images
	file     *compat.File
	evidence []*evidence.Cell
	// change may change the options of a client.
	change func(*github.Options)
	wire   http.RoundTripper
	// said is everything that was said or failed.
	said strings.Builder
}

// inBubble runs a test with simulated time against a world with these releases after v1.30.0.
func inBubble(t *testing.T, releases int, test func(t *testing.T, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newBench(t, githubtest.GitHubCom, releases))
	})
}

func newBench(t testing.TB, edition githubtest.Edition, releases int) *bench {
	b := &bench{t: t, images: images{}, file: compatibility(t, "")}
	b.world = &githubtest.World{Runtime: runtimeRepository, Proposals: operatorRepository}
	for minor := 27; minor <= 30+releases; minor++ {
		b.release(fmt.Sprintf("v1.%d.0", minor), time.Duration(minor-40)*24*time.Hour)
	}
	// What is in every repository.
	b.world.AddLabel("bug", "Something isn't working")
	b.world.AddIssue(githubtest.Maintainer, "Something else", "It is broken.", "bug")
	b.world.AddIssue(githubtest.Maintainer, "Fix it", "Closes #1.").PullRequest = true
	var err error
	if b.server, err = githubtest.New(edition, "http://github.test", b.world); err != nil {
		t.Fatal(err)
	}
	b.server.Actors[botToken] = bot
	var stop func()
	b.wire, stop = githubtest.InMemory(b.server)
	t.Cleanup(func() {
		stop()
		for _, violation := range b.server.Violations() {
			t.Errorf("not as GitHub describes it: %s", violation)
		}
		if strings.Contains(b.said.String(), botToken) {
			t.Error("the token was said")
		}
	})
	return b
}

// release publishes a release and its image, so long after now.
func (b *bench) release(tag string, after time.Duration) *githubtest.Release {
	published := time.Now().UTC().Truncate(time.Second).Add(after)
	release := &githubtest.Release{
		Tag: tag, Created: published.Add(-time.Hour), Published: published, Notes: "Notes of " + tag + ".\n",
		Annotated: len(b.world.Releases)%2 == 0,
	}
	b.world.Releases = append(b.world.Releases, release)
	b.images[b.ref(tag)] = image(tag)
	return release
}

func (b *bench) ref(tag string) string { return imageRepository + ":" + strings.TrimPrefix(tag, "v") }

func (b *bench) client(token string) *github.Client {
	b.t.Helper()
	options := github.Options{
		URL: "http://api.localhost", Token: token, Runtime: runtimeRepository, Proposals: operatorRepository, Transport: b.wire,
		Progress: func(text string) { b.said.WriteString(text + "\n") },
	}
	if b.change != nil {
		b.change(&options)
	}
	client, err := github.New(options)
	if err != nil {
		b.t.Fatal(err)
	}
	return client
}

// run is a run of triage with this token.
func (b *bench) run(token string) *triage.Run {
	b.t.Helper()
	contract, err := triage.OperatorContract()
	if err != nil {
		b.t.Fatal(err)
	}
	return triage.New(b.client(token), b.images, triage.World{
		File: b.file, Contract: contract, Evidence: b.evidence, Candidate: "1.0.5", ImageRepository: imageRepository,
		Now: time.Now(), ImageWait: 6 * time.Hour,
	}, func(text string) { b.said.WriteString(text + "\n") })
}

// apply runs triage as the bot, and wants it to succeed.
func (b *bench) apply() ([]triage.Step, triage.Plan) {
	b.t.Helper()
	done, plan, err := b.run(botToken).Apply(b.t.Context())
	if err != nil {
		b.fail(err)
	}
	return done, plan
}

func (b *bench) fail(err error) {
	b.t.Helper()
	b.said.WriteString(err.Error())
	b.t.Errorf("it failed: %v\n%s", err, b.server.Ledger())
}

// quiet checks that a further run changes nothing and asks for no change.
func (b *bench) quiet() {
	b.t.Helper()
	before := b.server.Writes()
	if done, _ := b.apply(); len(done) > 0 {
		b.t.Errorf("another run over the same world did %+v", done)
	}
	if writes := b.server.Writes() - before; writes != 0 {
		b.t.Errorf("another run over the same world sent %d writes:\n%s", writes, b.server.Ledger())
	}
}

var markerForm = regexp.MustCompile(`<!-- trussium-triage proposal=(\S+) digest=(\S+) -->`)

// proposals are the numbers of the issues with a marker, by release, in the order of their making.
func (b *bench) proposals(open bool) map[string][]int {
	all := map[string][]int{}
	for _, issue := range b.world.Issues {
		if match := markerForm.FindStringSubmatch(issue.Body); match != nil && issue.Closed != open {
			all[match[1]] = append(all[match[1]], issue.Number)
		}
	}
	return all
}

// onceEach checks that each of the releases has exactly one open proposal, and no other has one.
func (b *bench) onceEach(versions ...string) {
	b.t.Helper()
	open := b.proposals(true)
	for _, version := range versions {
		if len(open[version]) != 1 {
			b.t.Errorf("%s has the open proposals %v, want one\n%s", version, open[version], b.server.Ledger())
		}
		delete(open, version)
	}
	if len(open) > 0 {
		b.t.Errorf("there are proposals that nobody wants: %v", open)
	}
}

// golden compares the ledger with the one of the scenario.
func (b *bench) golden(name string) {
	b.t.Helper()
	goldenText(b.t, name, b.server.Ledger())
}

func TestNewReleases(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, b *bench) {
		done, plan := b.apply()
		if len(done) != 2 || plan.Writes() || len(plan.PassedOver) != 2 {
			t.Errorf("it did %+v and left %+v", done, plan)
		}
		b.onceEach("v1.31.0", "v1.32.0")
		issue := b.world.Issue(3)
		if issue.Title != "Runtime compatibility proposal: v1.31.0" || !b.world.HasLabel(issue, "runtime-proposal") || !b.world.HasLabel(issue, "runtime-routine") {
			t.Errorf("the first proposal is %+v", issue)
		}
		if !b.world.HasLabel(b.world.Issue(4), "runtime-representative") {
			t.Error("the newest release is not taken for representative")
		}
		for _, want := range []string{b.world.Releases[4].Commit(), b.images[b.ref("v1.31.0")].Digest, "registry.test/trussium:1.31.0", "linux/amd64 linux/arm64"} {
			if !strings.Contains(issue.Body, want) {
				t.Errorf("the proposal lacks %s:\n%s", want, issue.Body)
			}
		}
		b.quiet()
		b.golden("new-releases")
	})
}

// TestManyReleases has 250 releases on three pages, of which 25 are new at once.
func TestManyReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, githubtest.GitHubCom, 0)
		b.world.Releases = nil
		for i := range 250 {
			b.release(fmt.Sprintf("v1.%d.%d", 5+i/10, i%10), time.Duration(i-250)*time.Hour)
		}
		// v1.27.4 is the newest validated one: release number 224.
		b.file = compatibility(t, "- {version: v1.27.4, imageTag: \"1.27.4\", contractImpact: routine, decision: validated}\n")
		b.file.RuntimeReleases = slices.DeleteFunc(b.file.RuntimeReleases, func(r compat.RuntimeRelease) bool { return r.Version == "v1.30.0" })
		// Hundreds of other issues, so that the proposals are on several pages, too.
		for i := range 230 {
			b.world.AddIssue(githubtest.Stranger, fmt.Sprintf("Question %d", i), "How?")
		}
		done, _ := b.apply()
		if len(done) != 25 {
			t.Errorf("%d proposals were opened, want 25", len(done))
		}
		var want []string
		for i := 225; i < 250; i++ {
			want = append(want, fmt.Sprintf("v1.%d.%d", 5+i/10, i%10))
		}
		b.onceEach(want...)
		for i, step := range done {
			if step.Version != want[i] {
				t.Errorf("proposal %d is about %s, want %s: the oldest first", i, step.Version, want[i])
			}
		}
		b.quiet()
		b.golden("many-releases")
	})
}

// fail makes the n-th request of that method and path fail.
func fail(method, suffix string, faults map[int]githubtest.Fault) func(githubtest.Request) githubtest.Fault {
	return func(r githubtest.Request) githubtest.Fault {
		if r.Method == method && strings.HasSuffix(r.Path, suffix) {
			return faults[r.Count]
		}
		return githubtest.Fault{}
	}
}

// TestFailures makes each kind of failure happen to each kind of request. Whatever happens, the
// proposals are there once in the end, and the run after that has nothing to do.
func TestFailures(t *testing.T) {
	faults := map[string]func() githubtest.Fault{
		"primary-limit-403":       func() githubtest.Fault { return githubtest.PrimaryLimit(http.StatusForbidden, 5*time.Minute) },
		"primary-limit-429":       func() githubtest.Fault { return githubtest.PrimaryLimit(http.StatusTooManyRequests, 5*time.Minute) },
		"secondary-limit-403":     func() githubtest.Fault { return githubtest.SecondaryLimit(http.StatusForbidden, 90*time.Second) },
		"secondary-limit-429":     func() githubtest.Fault { return githubtest.SecondaryLimit(http.StatusTooManyRequests, 90*time.Second) },
		"secondary-limit-unsaid":  func() githubtest.Fault { return githubtest.SecondaryLimit(http.StatusForbidden, 0) },
		"error-500":               func() githubtest.Fault { return githubtest.ServerError(http.StatusInternalServerError, false) },
		"error-502-after-success": func() githubtest.Fault { return githubtest.ServerError(http.StatusBadGateway, true) },
		"timeout-after-success":   githubtest.Timeout,
	}
	requests := map[string]struct{ method, suffix string }{
		"list-releases":  {"GET", "/releases"},
		"read-tag":       {"GET", "/git/ref/tags/v1.31.0"},
		"list-labels":    {"GET", "/labels"},
		"list-issues":    {"GET", "/issues"},
		"create-label":   {"POST", "/labels"},
		"create-issue":   {"POST", "/issues"},
		"list-comments":  {"GET", "/comments"},
		"create-comment": {"POST", "/comments"},
		"close-issue":    {"PATCH", "/issues/3"},
	}
	for name, fault := range faults {
		for request, at := range requests {
			t.Run(name+"/"+request, func(t *testing.T) {
				inBubble(t, 2, func(t *testing.T, b *bench) {
					// v1.32.0 was proposed and then decided, v1.31.0 is new.
					b.file = compatibility(t, "- {version: v1.31.0, imageTag: \"1.31.0\", contractImpact: routine, decision: not-selected}\n")
					b.apply()
					b.file = compatibility(t, "- {version: v1.32.0, imageTag: \"1.32.0\", contractImpact: routine, decision: not-selected}\n")
					if request == "create-label" {
						b.world.DeleteLabel("runtime-proposal")
					}
					first := b.server.Requests()
					failed := 0
					b.server.Fault = func(r githubtest.Request) githubtest.Fault {
						if failed < 2 && r.Method == at.method && strings.HasSuffix(r.Path, at.suffix) {
							failed++
							return fault()
						}
						return githubtest.Fault{}
					}
					start := time.Now()
					b.apply()
					// What was carried out must not be sent again, unless that does no harm.
					want := 2
					if fault().Executed || fault().Hang {
						switch request {
						case "create-issue", "create-comment":
							want = 1
						}
					}
					if failed != want {
						t.Errorf("the request was sent %d times, want %d\n%s", failed, want, b.server.Ledger())
					}
					b.onceEach("v1.31.0")
					if closed := b.world.Issue(3); !closed.Closed || closed.StateReason != "not_planned" || len(closed.Comments) != 1 {
						t.Errorf("the decided proposal is %+v", closed)
					}
					if strings.Contains(name, "limit") && time.Since(start) < 3*time.Minute {
						t.Errorf("it waited only %s", time.Since(start))
					}
					b.server.Fault = nil
					b.quiet()
					if request == "create-issue" || request == "create-comment" {
						lines := strings.SplitAfter(b.server.Ledger(), "\n")
						goldenText(t, name+"--"+request, strings.Join(lines[first:], ""))
					}
				})
			})
		}
	}
}

func goldenText(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "ledgers", name+".txt")
	if *triage.Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the requests differ from %s (-want +got):\n%s", path, diff)
	}
}

// TestLimitThatLastsTooLong checks that a run gives up rather than wait for an hour, says when to
// come back, and that the next run goes on where it stopped.
func TestLimitThatLastsTooLong(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, b *bench) {
		reset := time.Now().Add(55 * time.Minute)
		b.server.Fault = fail("POST", "/issues", map[int]githubtest.Fault{3: githubtest.PrimaryLimit(http.StatusForbidden, time.Until(reset))})
		start := time.Now()
		done, _, err := b.run(botToken).Apply(t.Context())
		b.said.WriteString(fmt.Sprint(err))
		if !errors.Is(err, github.ErrLimited) || !strings.Contains(err.Error(), "rate limit is used up until 2000-01-01 00:55") {
			t.Errorf("it says %v", err)
		}
		if len(done) != 2 || time.Since(start) > time.Minute {
			t.Errorf("it opened %d proposals and took %s", len(done), time.Since(start))
		}
		b.server.Fault = nil
		if done, _ := b.apply(); len(done) != 2 {
			t.Errorf("the next run opened %d proposals, want the 2 that were left", len(done))
		}
		b.onceEach("v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0")
		b.quiet()
		b.golden("limit-that-lasts-too-long")
	})
}

// TestLastRequestOfAnHour checks that what GitHub says about the limit in a good answer does not
// keep the next request from being sent: GitHub itself has the last word.
func TestLastRequestOfAnHour(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		limit := githubtest.PrimaryLimit(http.StatusForbidden, 3*time.Minute)
		b.server.Fault = func(r githubtest.Request) githubtest.Fault {
			switch {
			case strings.HasSuffix(r.Path, "/labels") && r.Count == 1 && r.Method == http.MethodGet:
				return githubtest.Fault{Header: limit.Header, Note: "the last one"}
			case strings.HasSuffix(r.Path, "/issues") && r.Count == 1 && r.Method == http.MethodGet:
				return limit
			}
			return githubtest.Fault{}
		}
		b.apply()
		b.onceEach("v1.31.0")
		b.golden("last-request-of-an-hour")
	})
}

// TestInterrupted ends runs after each of their requests. The next one goes on.
func TestInterrupted(t *testing.T) {
	for after := 1; after <= 22; after++ {
		inBubble(t, 3, func(t *testing.T, b *bench) {
			ctx, cancel := context.WithCancel(t.Context())
			count := 0
			b.server.Fault = func(githubtest.Request) githubtest.Fault {
				if count++; count == after {
					time.AfterFunc(time.Nanosecond, cancel)
					return githubtest.Timeout()
				}
				return githubtest.Fault{}
			}
			_, _, err := b.run(botToken).Apply(ctx)
			if err == nil && count >= after || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("a run that ended at request %d says %v", after, err)
			}
			b.server.Fault = nil
			b.apply()
			b.onceEach("v1.31.0", "v1.32.0", "v1.33.0")
			b.quiet()
			if after == 12 {
				b.golden("interrupted")
			}
		})
	}
}
