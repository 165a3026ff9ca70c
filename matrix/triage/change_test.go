package triage_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/triage"
	"github.com/trussiumhq/trussium-operator/matrix/triage/github"
	"github.com/trussiumhq/trussium-operator/matrix/triage/githubtest"
)

const notSelected31 = "- {version: v1.31.0, imageTag: \"1.31.0\", contractImpact: routine, decision: not-selected, reason: It is <b>routine</b> @team.}\n"

// TestTwoRunsAtOnce lets two runs open and close the same proposals at the same time, in many
// orders of their requests. What is left is one proposal for each release and one comment.
func TestTwoRunsAtOnce(t *testing.T) {
	const orders = 40
	twice := 0
	for seed := range uint64(orders) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, githubtest.GitHubCom, 1)
			b.apply() // v1.31.0 is proposed, and decided since
			b.file = compatibility(t, notSelected31)
			b.release("v1.32.0", -2*time.Hour)
			b.release("v1.33.0", -time.Hour)
			b.server.Actors["second"] = githubtest.Maintainer
			first := b.server.Requests()
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			b.server.Latency = func() (time.Duration, time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				// Odd nanoseconds: no two requests arrive at the same time, so that an order can be had again.
				return time.Duration(random.Int64N(int64(2 * time.Second))), time.Duration(random.Int64N(int64(2 * time.Second)))
			}
			runs := []*triage.Run{b.run(botToken), b.run("second")}
			failures := make([]error, len(runs))
			var group sync.WaitGroup
			for i, run := range runs {
				group.Go(func() {
					time.Sleep(time.Duration(i) * time.Nanosecond)
					_, _, failures[i] = run.Apply(t.Context())
				})
			}
			group.Wait()
			if err := errors.Join(failures...); err != nil {
				b.fail(err)
			}
			b.server.Latency = nil
			b.onceEach("v1.32.0", "v1.33.0")
			for version, numbers := range b.proposals(false) {
				if version != "v1.31.0" {
					twice += len(numbers)
				}
			}
			for _, issue := range b.world.Issues {
				if issue.Closed && len(issue.Comments) != 1 {
					t.Errorf("order %d: #%d has %d comments, want 1\n%s", seed, issue.Number, len(issue.Comments), b.server.Ledger())
				}
			}
			b.quiet()
			if seed == 2 {
				lines := strings.SplitAfter(b.server.Ledger(), "\n")
				goldenText(t, "two-runs-at-once", strings.Join(lines[first:], ""))
			}
		})
	}
	if twice == 0 {
		t.Error("in no order did both runs open a proposal for the same release: the test shows nothing")
	}
}

// TestLateRequest lets a request that seemed lost be carried out after it was sent again. GitHub
// has no way to prevent that; what is left over is closed as soon as it is seen.
func TestLateRequest(t *testing.T) {
	for name, late := range map[string]time.Duration{"seen-by-the-same-run": 31*time.Second + time.Millisecond, "seen-by-the-next-run": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, b *bench) {
				b.server.Fault = fail("POST", "/issues", map[int]githubtest.Fault{1: {Hang: true, Late: late}})
				b.apply()
				time.Sleep(late)
				b.server.Fault = nil
				b.apply()
				b.onceEach("v1.31.0", "v1.32.0")
				closed := b.proposals(false)["v1.31.0"]
				if len(closed) != 1 || b.world.Issue(closed[0]).StateReason != "duplicate" {
					t.Errorf("the twin is %v\n%s", closed, b.server.Ledger())
				}
				b.quiet()
				b.golden("late-request-" + name)
			})
		})
	}
}

// TestWhatPeopleDo checks that nothing that a maintainer does to proposals makes another run open
// them again, or fight with the maintainer.
func TestWhatPeopleDo(t *testing.T) {
	for name, test := range map[string]struct {
		do func(*githubtest.World)
		// writes is how many requests with a change the next run sends.
		writes int
	}{
		"edited-title": {do: func(w *githubtest.World) { w.Issue(3).Title = "Look at this" }},
		"edited-body": {do: func(w *githubtest.World) {
			marker, _, _ := strings.Cut(w.Issue(3).Body, "\n")
			w.Issue(3).Body = "My notes.\r\n\r\n" + marker + "\r\nrest"
		}},
		"renamed-label":                {do: func(w *githubtest.World) { w.Label("runtime-proposal").Name = "needs decision" }},
		"label-renamed-with-a-comma":   {do: func(w *githubtest.World) { w.Label("runtime-proposal").Name = "runtime, proposal" }},
		"renamed-impact-label":         {do: func(w *githubtest.World) { w.Label("runtime-routine").Name = "boring" }},
		"edited-label-description":     {do: func(w *githubtest.World) { w.Label("runtime-proposal").Description = "" }},
		"label-renamed-and-made-again": {do: func(w *githubtest.World) { w.Label("runtime-proposal").Name = "x"; w.AddLabel("Runtime-Proposal", "") }},
		"closed-by-hand": {do: func(w *githubtest.World) {
			w.Issue(3).Closed, w.Issue(3).StateReason = true, "not_planned"
			w.Issue(4).Closed, w.Issue(4).StateReason = true, "completed"
		}},
		// The label is made again, and given back to both.
		"deleted-label": {do: func(w *githubtest.World) { w.DeleteLabel("runtime-proposal") }, writes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 2, func(t *testing.T, b *bench) {
				b.apply()
				test.do(b.world)
				first, before := b.server.Requests(), b.server.Writes()
				b.apply()
				if writes := b.server.Writes() - before; writes != test.writes {
					t.Errorf("the next run sent %d writes, want %d\n%s", writes, test.writes, b.server.Ledger())
				}
				// A new release is the moment at which a lost proposal would be opened again.
				b.release("v1.33.0", -time.Minute)
				b.apply()
				total := 0
				for version, numbers := range b.proposals(true) {
					total += len(numbers)
					if len(numbers) != 1 {
						t.Errorf("%s has the proposals %v\n%s", version, numbers, b.server.Ledger())
					}
				}
				if closed := len(b.proposals(false)); total+closed != 3 {
					t.Errorf("there are %d open and %d closed proposals, want 3", total, closed)
				}
				b.quiet()
				lines := strings.SplitAfter(b.server.Ledger(), "\n")
				goldenText(t, name, strings.Join(lines[first:], ""))
			})
		})
	}
}

// TestLabelTakenOff checks that a proposal that only lost its label gets it back when it matters.
func TestLabelTakenOff(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, b *bench) {
		b.apply()
		b.world.Issue(3).Labels = nil
		b.apply()
		b.onceEach("v1.31.0", "v1.32.0")
		if !b.world.HasLabel(b.world.Issue(3), "runtime-proposal") {
			t.Error("it did not get its label back")
		}
		b.quiet()
		b.golden("label-taken-off")
	})
}

// TestDeletedIssue checks that deleting is no decision, and that an issue may vanish at any time.
func TestDeletedIssue(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, b *bench) {
		b.apply()
		b.world.DeleteIssue(3)
		b.apply()
		b.onceEach("v1.31.0", "v1.32.0")
		b.quiet()
		// It vanishes after it was listed.
		for _, at := range []struct{ method, suffix string }{{"GET", "/comments"}, {"POST", "/comments"}, {"PATCH", ""}} {
			b.file = compatibility(t, notSelected31)
			b.server.Fault = func(r githubtest.Request) githubtest.Fault {
				if r.Method == at.method && strings.HasSuffix(r.Path, at.suffix) && strings.Contains(r.Path, "/issues/") {
					return githubtest.Fault{Before: func(w *githubtest.World) { w.DeleteIssue(b.proposals(true)["v1.31.0"][0]) }, Note: "deleted"}
				}
				return githubtest.Fault{}
			}
			b.apply()
			b.onceEach("v1.32.0")
			b.server.Fault = nil
			b.file = compatibility(t, "")
			b.apply()
			b.onceEach("v1.31.0", "v1.32.0")
		}
		b.quiet()
		b.golden("deleted-issue")
	})
}

// TestReopened checks that what a person reopened is left to people.
func TestReopened(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		b.apply()
		b.file = compatibility(t, notSelected31)
		b.apply()
		issue := b.world.Issue(3)
		if !issue.Closed || issue.StateReason != "not_planned" || !strings.Contains(issue.Comments[0].Body, "Reason: `It is <b>routine</b> @team.`") {
			t.Fatalf("the decided proposal is %+v, its comments %+v", issue, issue.Comments)
		}
		issue.Closed, issue.StateReason = false, "reopened"
		b.quiet()
		if issue.Closed {
			t.Error("it was closed again")
		}
		b.golden("reopened")
	})
}

// TestForgedMarkers checks that strangers can neither keep a release from being proposed nor have
// their own issues taken for proposals.
func TestForgedMarkers(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		marker := "<!-- trussium-triage proposal=v1.31.0 digest=" + b.images[b.ref("v1.31.0")].Digest + " -->"
		forged := b.world.AddIssue(githubtest.Stranger, "Runtime compatibility proposal: v1.31.0", marker)
		pull := b.world.AddIssue(githubtest.Maintainer, "A change", marker)
		pull.PullRequest = true
		b.apply()
		if open := b.proposals(true)["v1.31.0"]; len(open) != 3 || forged.Closed || pull.Closed || len(forged.Comments) > 0 {
			t.Errorf("the proposals are %v", open)
		}
		b.quiet()
		// A stranger's comment does not pass for the bot's.
		b.file = compatibility(t, notSelected31)
		real := b.world.Issue(5)
		real.Comments = append(real.Comments, &githubtest.Comment{ID: 1, Body: "<!-- trussium-triage closing=not-selected -->\n**Validated.**", Author: githubtest.Stranger})
		b.apply()
		if !real.Closed || len(real.Comments) != 2 || forged.Closed {
			t.Errorf("the proposal is %+v", real)
		}
		b.quiet()
		b.golden("forged-markers")
	})
}

// TestImageThatComesLate goes through an image that is not there, is not there for long, and comes.
func TestImageThatComesLate(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, b *bench) {
		b.release("v1.31.0", -time.Minute)
		there := b.images[b.ref("v1.31.0")]
		delete(b.images, b.ref("v1.31.0"))
		done, plan := b.apply()
		if len(done) != 0 || plan.Steps[0].Action != triage.Nothing && plan.Steps[len(plan.Steps)-1].Action != triage.Wait {
			t.Errorf("it did %+v", done)
		}
		b.quiet()
		time.Sleep(7 * time.Hour)
		b.apply()
		b.onceEach("v1.31.0")
		if body := b.world.Issue(3).Body; !strings.Contains(body, "there is no such image") || !strings.Contains(body, "digest=none") {
			t.Errorf("it says\n%s", body)
		}
		b.quiet()
		b.images[b.ref("v1.31.0")] = there
		b.apply()
		b.onceEach("v1.31.0")
		if old := b.world.Issue(3); !old.Closed || !strings.Contains(old.Comments[0].Body, "#4") {
			t.Errorf("the proposal without an image is %+v", old)
		}
		b.quiet()
		// A registry that can't be asked changes nothing.
		b.images[b.ref("v1.31.0")] = triage.Image{State: triage.ImageUnknown, Problem: "connection refused"}
		b.quiet()
		b.golden("image-that-comes-late")
	})
}

// TestMovedTag checks that a closed proposal is proposed again only when the tag names another
// image, and that a decision with a digest does not cover that one.
func TestMovedTag(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		ref := b.ref("v1.31.0")
		first := b.images[ref]
		b.apply()
		b.file = compatibility(t, "- {version: v1.31.0, imageTag: \"1.31.0\", digest: \""+first.Digest+"\", contractImpact: routine, decision: not-selected}\n")
		b.apply()
		b.onceEach()
		b.images[ref] = image("another")
		b.apply()
		b.onceEach("v1.31.0")
		body := b.world.Issue(4).Body
		if !strings.Contains(body, "**The tag moved.**") || !strings.Contains(body, first.Digest) || !strings.Contains(body, "# in place of the row of v1.31.0") {
			t.Errorf("it says\n%s", body)
		}
		b.quiet()
		// It moves back: the decision covers the image again.
		b.images[ref] = first
		b.apply()
		b.onceEach()
		b.quiet()
		// And forth, while the proposal of that image is closed.
		b.images[ref] = image("another")
		b.quiet()
		b.golden("moved-tag")
	})
}

// TestValidatedNeedsEvidence checks that only green cells with the real image close a proposal as
// validated.
func TestValidatedNeedsEvidence(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		b.apply()
		digest := b.images[b.ref("v1.31.0")].Digest
		b.file = compatibility(t, "- {version: v1.31.0, imageTag: \"1.31.0\", digest: \""+digest+"\", contractImpact: routine, decision: validated}\n")
		cell := &evidence.Cell{
			ID: "1.0.4-runtime-1.31.0--checkout--k8s-1.37.2--kind", Verdict: evidence.Proven,
			From: evidence.Release{Version: "1.0.4"}, To: evidence.Release{Version: "1.0.5"}, Cluster: evidence.Cluster{Kubernetes: "v1.37.2"},
			Upgrade: evidence.Upgrade{Rollback: "runtime-image"},
			Runtime: evidence.RuntimeImages{
				Baseline: evidence.Artifact{Ref: imageRepository + ":1.30.0", Digest: "sha256:0"},
				Target:   evidence.Artifact{Ref: imageRepository + ":1.31.0", Digest: digest},
			},
		}
		b.evidence = []*evidence.Cell{cell}
		for _, spoil := range []func(*evidence.Cell){
			func(c *evidence.Cell) { c.Verdict = evidence.Refuted },
			func(c *evidence.Cell) { c.Runtime.Target.Simulated = true },
			func(c *evidence.Cell) { c.Runtime.Target.Digest = "sha256:1" },
			func(c *evidence.Cell) { c.Runtime.Target.Ref = imageRepository + ":11.31.0" },
		} {
			spoiled := *cell
			spoil(&spoiled)
			b.evidence = []*evidence.Cell{&spoiled}
			b.quiet()
			b.onceEach("v1.31.0")
		}
		b.evidence = []*evidence.Cell{cell}
		b.apply()
		closed := b.world.Issue(3)
		if !closed.Closed || closed.StateReason != "completed" || !strings.Contains(closed.Comments[0].Body, "| `"+cell.ID+"` | 1.0.4 to 1.0.5 | v1.37.2 | 1.30.0 to 1.31.0 | runtime-image |") {
			t.Errorf("it is %+v, with the comments %+v", closed, closed.Comments)
		}
		b.quiet()
		b.golden("validated")
	})
}

func TestSuperseded(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.apply()
		// The newest is validated: nothing older is proposed, but what was is left to the maintainer.
		b.release("v1.31.1", -36*24*time.Hour)
		const validated = "- {version: v1.33.0, imageTag: \"1.33.0\", contractImpact: routine, decision: validated}\n"
		b.file = compatibility(t, validated)
		done, plan := b.apply()
		if len(done) != 0 || plan.Superseding != "v1.33.0" || strings.Join(plan.Superseded, " ") != "v1.31.0 v1.32.0" {
			t.Errorf("it did %+v and suggests that %s supersedes %v", done, plan.Superseding, plan.Superseded)
		}
		b.onceEach("v1.31.0", "v1.32.0", "v1.33.0")
		b.file = compatibility(t, validated+"- {version: v1.32.0, imageTag: \"1.32.0\", contractImpact: routine, decision: superseded, supersededBy: v1.33.0}\n")
		b.apply()
		closed := b.world.Issue(4)
		if !closed.Closed || closed.StateReason != "not_planned" || !strings.Contains(closed.Comments[0].Body, "**Superseded.** v1.33.0 was selected in its place.") {
			t.Errorf("it is %+v, with the comments %+v", closed, closed.Comments)
		}
		// A patch of an older line that comes later is news.
		b.release("v1.30.1", -time.Hour)
		b.apply()
		b.onceEach("v1.30.1", "v1.31.0", "v1.33.0")
		b.quiet()
		b.golden("superseded")
	})
}

func TestWhatIsNotProposed(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, b *bench) {
		b.release("v1.31.0-rc.1", -5*time.Hour)
		b.release("v1.31.0", -4*time.Hour).Prerelease = true
		b.release("v1.32.0", -3*time.Hour).Draft = true
		b.release("nightly", -2*time.Hour)
		b.release("v1.33", -time.Hour)
		done, plan := b.apply()
		if len(done) != 0 || fmt.Sprint(plan.Prereleases) != "[v1.31.0-rc.1 v1.31.0]" || fmt.Sprint(plan.Strange) != "[nightly v1.33]" || len(plan.Unseen) != 0 {
			t.Errorf("it did %+v, with the pre-releases %v, the strange names %v and %v without an image", done, plan.Prereleases, plan.Strange, plan.Unseen)
		}
		for _, step := range plan.Steps {
			if step.Version == "v1.32.0" {
				t.Errorf("a draft was looked at: %+v", step)
			}
		}
		b.golden("what-is-not-proposed")
	})
}

// TestReleaseWithoutATag checks that a tag that is gone is said, and is no failure.
func TestReleaseWithoutATag(t *testing.T) {
	inBubble(t, 0, func(t *testing.T, b *bench) {
		b.release("v1.31.0", -time.Hour).Untagged = true
		b.apply()
		b.onceEach("v1.31.0")
		if !strings.Contains(b.world.Issue(3).Body, "unknown: the tag could not be read") {
			t.Errorf("it says\n%s", b.world.Issue(3).Body)
		}
	})
}

// TestWithoutAToken checks that public data is enough for a dry run, and that nothing is written.
func TestWithoutAToken(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, b *bench) {
		plan, err := b.run("").Plan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		creates := 0
		for _, step := range plan.Steps {
			if step.Action == triage.Create {
				creates++
			}
		}
		if creates != 2 || b.server.Writes() != 0 {
			t.Errorf("the plan opens %d proposals, and %d writes were sent", creates, b.server.Writes())
		}
		if _, _, err := b.run("").Apply(t.Context()); err == nil || !strings.Contains(err.Error(), "check GITHUB_TOKEN") {
			t.Errorf("writing without a token says %v", err)
		}
		b.golden("without-a-token")
	})
}

// TestEnterprise runs against the description of GitHub Enterprise Server.
func TestEnterprise(t *testing.T) {
	for _, url := range []string{"http://localhost", "http://localhost/api/v3", "http://localhost/api/v3/"} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, githubtest.EnterpriseServer, 1)
			b.change = func(o *github.Options) { o.URL = url }
			b.apply()
			b.onceEach("v1.31.0")
			b.file = compatibility(t, notSelected31)
			b.apply()
			b.onceEach()
			b.quiet()
			b.golden("enterprise")
		})
	}
}

// TestOneIsRefused checks that a proposal that GitHub does not accept holds up no other one.
func TestOneIsRefused(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		b.server.Fault = fail("POST", "/issues", map[int]githubtest.Fault{1: {
			Status: http.StatusUnprocessableEntity, Body: `{"message":"Validation Failed","documentation_url":"https://docs.github.com"}`,
		}})
		done, _, err := b.run(botToken).Apply(t.Context())
		if !errors.Is(err, triage.ErrRefused) || !strings.Contains(err.Error(), "create the proposal of v1.31.0: ") || len(done) != 2 {
			t.Errorf("it did %+v and says %v", done, err)
		}
		b.onceEach("v1.32.0", "v1.33.0")
		b.apply()
		b.onceEach("v1.31.0", "v1.32.0", "v1.33.0")
		b.quiet()
		b.golden("one-is-refused")
	})
}

// TestRefusals checks what is said when GitHub does not do what it is asked to, and that the token
// is never said, not even when a server sends it back.
func TestRefusals(t *testing.T) {
	echo := githubtest.Fault{Status: http.StatusForbidden, Body: `{"message":"no access with ` + botToken + `"}`}
	for name, test := range map[string]struct {
		token string
		setup func(*bench)
		want  string
	}{
		"a wrong token": {token: "wrong", want: "GitHub refuses the token"},
		"no right to label": {
			token: "reader", setup: func(b *bench) {
				b.world.AddLabel("runtime-proposal", "")
				b.world.AddLabel("runtime-representative", "")
			},
			want: "GitHub dropped the label",
		},
		"no right to make labels": {token: "reader", want: "create the label runtime-proposal in trussiumhq/trussium-operator"},
		"an echo": {token: botToken, setup: func(b *bench) {
			b.server.Fault = func(githubtest.Request) githubtest.Fault { return echo }
		}, want: "no access with ***"},
		"an echo of a server error": {token: botToken, setup: func(b *bench) {
			b.server.Fault = func(githubtest.Request) githubtest.Fault {
				return githubtest.Fault{Status: http.StatusInternalServerError, Body: `{"message":"failed for ` + botToken + `"}`}
			}
		}, want: "failed for ***"},
		"another repository": {token: botToken, setup: func(b *bench) {
			b.change = func(o *github.Options) { o.Runtime = "trussiumhq/other" }
		}, want: "read the releases of trussiumhq/other: "},
		"a moved repository": {token: botToken, setup: func(b *bench) {
			b.server.Fault = fail("POST", "/issues", map[int]githubtest.Fault{1: {
				Status: http.StatusTemporaryRedirect, Header: http.Header{"Location": {"http://api.localhost/repositories/1/issues"}}, Body: `{"message":"Moved"}`,
			}})
		}, want: "give the new name of the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, b *bench) {
				b.server.Actors["reader"] = githubtest.Stranger
				if test.setup != nil {
					test.setup(b)
				}
				_, _, err := b.run(test.token).Apply(t.Context())
				b.said.WriteString(fmt.Sprintf("%v %+v", err, err))
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("it says %v, want %q", err, test.want)
				}
			})
		})
	}
}

// TestRedirectKeepsTheToken checks that a token does not follow a redirect to another host.
func TestRedirectKeepsTheToken(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bench) {
		seen := ""
		base := b.wire
		b.wire = roundTrip(func(request *http.Request) (*http.Response, error) {
			if request.URL.Host == "elsewhere.test" {
				seen = request.Header.Get("Authorization")
			}
			return base.RoundTrip(request)
		})
		b.server.Fault = func(r githubtest.Request) githubtest.Fault {
			if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/issues") && r.Count == 1 {
				return githubtest.Fault{Status: http.StatusMovedPermanently, Body: `{"message":"Moved"}`,
					Header: http.Header{"Location": {"http://elsewhere.test/repos/" + operatorRepository + "/issues?state=all"}}}
			}
			return githubtest.Fault{}
		}
		if _, err := b.run(botToken).Plan(t.Context()); err != nil {
			b.fail(err)
		}
		if seen != "" || !strings.Contains(b.server.Ledger(), "anonymous: GET") {
			t.Errorf("the other host got %q\n%s", seen, b.server.Ledger())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// TestOnly checks that a run that is about one release leaves the others alone, and says when
// there is no such release.
func TestOnly(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bench) {
		only := func(version string) (*triage.Run, context.Context) {
			contract, err := triage.OperatorContract()
			if err != nil {
				t.Fatal(err)
			}
			return triage.New(b.client(botToken), b.images, triage.World{
				File: b.file, Contract: contract, Candidate: "1.0.5", ImageRepository: imageRepository, Now: time.Now(), ImageWait: time.Hour, Only: []string{version},
			}, nil), t.Context()
		}
		run, ctx := only("v1.32.0")
		if _, _, err := run.Apply(ctx); err != nil {
			b.fail(err)
		}
		b.onceEach("v1.32.0")
		run, ctx = only("v1.99.0")
		if _, _, err := run.Apply(ctx); !errors.Is(err, triage.ErrNotListed) {
			t.Errorf("a release that is not there: %v", err)
		}
		b.golden("only-one")
	})
}
