package e2e

import (
	"flag"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/helm"
)

// every asks for a kill in each step of the cell, which takes half an hour; without it a few
// steps of different kinds are enough, in minutes.
var every = flag.Bool("every", false, "kill the tool in every step of a cell")

// few are the steps in which the tool is killed without -every: one that only runs a program, the
// start of the cluster, one that only looks, and the one that leaves a Helm release pending.
var few = []string{"rbac-covers-code", "cluster", "snapshot", "upgrade"}

// looking are the steps that only look: a cell whose cluster was kept goes on with them.
var looking = []string{
	"snapshot", "workload-untouched", "children-kept", "spec-untouched", "status-kept", "no-new-events", "crd-live-equals-chart", "quiet",
	"crd-and-objects-survive", "no-flapping", "upgrade-in-flight", "fresh-equals-upgraded",
}

// midway are steps that start something that takes its time; the tool is killed when that is under
// way. In the others it is killed as soon as they have begun.
var midway = []string{
	"cluster", "install", "baseline-alive", "upgrade", "alive-after", "readiness-honest", "quiet", "roll-forward", "roll-back", "helm-rollback", "old-alive",
	"no-flapping", "forward-again", "uninstall-reinstall",
}

// underWay is how long such a step is left alone.
const underWay = 2 * time.Second

const (
	// hang is how long a run may take before it is taken to be stuck.
	hang = 20 * time.Minute
	// poll is how often it is looked which step has begun.
	poll = 2 * time.Millisecond
	// instant is how long a step takes at most that can be over before it is seen.
	instant = 0.2
)

// TestKilledInEachStep kills the tool by SIGKILL in one step of a cell after the other; each next
// run goes on, or starts the cell again, and is killed in the next step, until no step is left. The
// run after that must be green. What is looked at:
//
//   - after a kill, no process of the run is left, apart from a cluster that was to be kept;
//   - a run goes on with a step that only looks if its cluster was kept, and starts again otherwise;
//   - the evidence can be read after every kill, and says that the cell is unfinished;
//   - in the end the verdict is passed, the Helm release is deployed, and no process, mount or file is left.
//
// With -every there are two checkouts at once, one with --retain and one without, that share the
// steps, and neither may notice the other.
func TestKilledInEachStep(t *testing.T) {
	plan := &kills{wanted: few}
	modes := []bool{true}
	if *every {
		plan.wanted = nil
		modes = []bool{true, false}
	}
	var all sync.WaitGroup
	steps := make([][]evidence.Step, len(modes))
	for i, retain := range modes {
		name := map[bool]string{true: "kept clusters", false: "clusters that end with the tool"}[retain]
		chain := &chain{copy: newCopy(t), kills: plan, retain: retain}
		all.Go(func() {
			t.Run(name, func(t *testing.T) { steps[i] = chain.run(t) })
		})
	}
	all.Wait()
	for _, step := range steps[0] {
		if plan.wants(step.ID) && step.Outcome != evidence.Skipped && step.Seconds > instant {
			t.Errorf("the tool was not killed in %s, which took %.1f s", step.ID, step.Seconds)
		}
	}
}

// kills are the steps in which the tool was killed, by any chain.
type kills struct {
	// wanted are the steps to be killed in; nil is all of them.
	wanted []string

	mu   sync.Mutex
	done []string
}

// wants tells that the tool is still to be killed in the step.
func (k *kills) wants(step string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return (k.wanted == nil || slices.Contains(k.wanted, step)) && !slices.Contains(k.done, step)
}

// take says that the caller is about to kill in a step that is wanted; false if another chain was
// faster.
func (k *kills) take(step string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if slices.Contains(k.done, step) {
		return false
	}
	k.done = append(k.done, step)
	return true
}

// chain is a row of killed runs in one checkout.
type chain struct {
	copy   *copyOfCheckout
	kills  *kills
	retain bool
}

// run runs the tool until a run is not killed any more, and returns the steps of that.
func (c *chain) run(t *testing.T) []evidence.Step {
	t.Cleanup(func() { c.copy.endCluster(t) })
	var killedIn string
	var before *evidence.Cell
	for {
		started := time.Now()
		r := c.copy.start(t, c.flags()...)
		step, killed := c.killInNextStep(t, r)
		now := c.copy.growing(t)
		c.expectResumed(t, killedIn, before, now)
		if !killed {
			c.expectGreen(t, r)
			return now.Steps
		}
		t.Logf("killed in %s after %s", step, time.Since(started).Round(time.Second))
		if now != nil && now.Verdict != evidence.Unfinished {
			t.Errorf("killed in %s, the evidence says that the cell is %s", step, now.Verdict)
		}
		c.copy.expectNothingLeft(t, c.retain)
		if t.Failed() {
			return nil
		}
		killedIn, before = step, now
	}
}

func (c *chain) flags() []string {
	if c.retain {
		return []string{"--retain"}
	}
	return nil
}

// killInNextStep kills the run in the first step that is still wanted, and returns the step in which
// it ended, or false if it ended by itself.
func (c *chain) killInNextStep(t *testing.T, r *running) (step string, killed bool) {
	t.Helper()
	deadline := time.After(hang)
	old := c.copy.begun() // by the run before
	for {
		select {
		case <-r.ended:
			return "", false
		case <-deadline:
			_ = r.cmd.Process.Kill()
			<-r.ended
			t.Fatalf("the run hangs\n%s", r.output.String())
		case <-time.After(poll):
		}
		step := c.copy.begun()
		if step == old {
			continue
		}
		old = ""
		if step == "" || !c.mine(step) || !c.kills.wants(step) || !c.kills.take(step) {
			continue
		}
		for begun := time.Now(); slices.Contains(midway, step) && time.Since(begun) < underWay && c.copy.begun() == step; {
			time.Sleep(poll)
		}
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-r.ended
		return c.copy.begun(), true
	}
}

// mine leaves the steps that only look to the chain that goes on with them.
func (c *chain) mine(step string) bool {
	return c.retain || !slices.Contains(looking, step)
}

// expectResumed checks that the run after a kill went on, or started again, as it should.
func (c *chain) expectResumed(t *testing.T, killedIn string, before, now *evidence.Cell) {
	t.Helper()
	if before == nil || now == nil {
		return
	}
	wentOn := now.Started.Equal(before.Started)
	if want := c.retain && slices.Contains(looking, killedIn); wentOn != want {
		t.Errorf("after the kill in %s the next run went on: %v, want %v", killedIn, wentOn, want)
	}
}

func (c *chain) expectGreen(t *testing.T, r *running) {
	t.Helper()
	if r.err != nil {
		t.Errorf("the run that was not killed: %v\n%s", r.err, r.output.String())
	}
	if cell := c.copy.published(t); cell == nil || cell.Verdict != evidence.Proven {
		t.Errorf("its evidence is %+v", cell)
	}
	if c.retain {
		cluster, err := embedded.Attach(t.Context(), filepath.Join(c.copy.run, "cells", c.copy.cell, "cluster"))
		if err != nil {
			t.Fatal(err)
		}
		client, err := helm.New(cluster.Kubeconfig(), "trussium-operator-system", t.TempDir(), true, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		if release, err := client.Current("trussium-operator"); err != nil || release.Status != "deployed" {
			t.Errorf("the Helm release is %+v, %v, want it deployed", release, err)
		}
		if err := cluster.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c.copy.expectNothingLeft(t, false)
	c.copy.expectNoTemporaryFiles(t)
}
