// Package evidence holds what a run of the matrix has seen: one versioned JSON document
// for each cell, written step by step, and the only thing that reports are made from.
package evidence

import (
	"slices"
	"time"
)

// APIVersion is the version of the document format. A change that a reader of the old
// format would misread gets a new version.
const APIVersion = "evidence.trussium.io/v1"

// Kind is the kind of the document.
const Kind = "Cell"

// Outcome is how one check ended.
type Outcome string

const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // with a reason
)

// Verdict is what a whole cell says.
type Verdict string

const (
	// Proven: every check of the cell passed.
	Proven Verdict = "passed"
	// Refuted: a check failed.
	Refuted Verdict = "failed"
	// BaselineBroken: the release the cell starts from does not behave as declared: it does
	// not work, or a known defect is declared that it does not have.
	BaselineBroken Verdict = "baseline-broken"
	// Infrastructure: the cluster, a registry or the API failed; says nothing about the product.
	Infrastructure Verdict = "infrastructure"
	// NotRun: the cell was left out, with a reason.
	NotRun Verdict = "skipped"
	// Unfinished: the run was interrupted or is still going on.
	Unfinished Verdict = "unfinished"
)

// Cell is the evidence of one cell.
type Cell struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	// Key is the content key: a finished cell with the same key need not run again.
	Key     string  `json:"key"`
	Upgrade Upgrade `json:"upgrade"`
	From    Release `json:"from"`
	// Through are the releases that a chain upgrades to on the way, oldest first; empty for a single upgrade.
	Through  []Release     `json:"through,omitempty"`
	To       Release       `json:"to"`
	Runtime  RuntimeImages `json:"runtime"`
	Cluster  Cluster       `json:"cluster"`
	Tool     Tool          `json:"tool"`
	Started  time.Time     `json:"started"`
	Finished *time.Time    `json:"finished,omitempty"`
	Verdict  Verdict       `json:"verdict"`
	Reason   string        `json:"reason,omitempty"`
	Steps    []Step        `json:"steps"`
	// Disruptions are what the changes of the cell did to clients and pods, one for each change that was observed.
	Disruptions []Disruption `json:"disruptions,omitempty"`
	Reproduce   string       `json:"reproduce"`
}

// Disruption is what one change did to clients and pods. A number that was not observed is nil, which is not zero.
type Disruption struct {
	// Step is the id of the step that made the change: upgrade, roll-forward, roll-back or rollback.
	Step string `json:"step"`
	// Requests is how many requests clients sent meanwhile, FailedRequests how many of them got no good answer.
	Requests       *int `json:"requests,omitempty"`
	FailedRequests *int `json:"failedRequests,omitempty"`
	// LongestGapSeconds is the longest time between two good answers.
	LongestGapSeconds *float64 `json:"longestGapSeconds,omitempty"`
	// PodsReplaced is how many pods of runtimes are no longer those they were.
	PodsReplaced *int `json:"podsReplaced,omitempty"`
	// HandoverSeconds is the time until the new operator pod held the Lease.
	HandoverSeconds *float64 `json:"handoverSeconds,omitempty"`
}

// Upgrade is the row of compatibility.yaml that the cell proves.
type Upgrade struct {
	Row            string `json:"row"`
	Values         string `json:"values"`
	CRDs           string `json:"crds"`
	Rollback       string `json:"rollback"`
	RollbackReason string `json:"rollbackReason,omitempty"`
}

// Release is one operator release: its chart and its image.
type Release struct {
	Version string `json:"version"`
	// Source is where the artifacts come from: published, source or checkout.
	Source string `json:"source"`
	// Commit is the commit they were built from; empty for published ones.
	Commit string `json:"commit,omitempty"`
	// Dirty tells that the checkout had uncommitted changes.
	Dirty bool     `json:"dirty,omitempty"`
	Chart Artifact `json:"chart"`
	Image Artifact `json:"image"`
	// KnownDefects are the defects that compatibility.yaml declares for the release.
	KnownDefects []string `json:"knownDefects,omitempty"`
}

// Artifact is a chart or an image.
type Artifact struct {
	Ref    string `json:"ref"`
	Digest string `json:"digest"`
	// Simulated tells that the artifact only stands for the published one.
	Simulated bool `json:"simulated"`
}

// RuntimeImages are the runtime images the cell rolls between.
type RuntimeImages struct {
	Baseline Artifact `json:"baseline"`
	Target   Artifact `json:"target"`
}

// Cluster is where the cell ran.
type Cluster struct {
	// Provider is embedded, kind or existing.
	Provider string `json:"provider"`
	// Kubernetes is the exact version that the API server reports.
	Kubernetes string `json:"kubernetes"`
	// Control identifies the node image or the control plane binary by content.
	Control string `json:"control"`
	// Limits are the things such a cluster can't prove.
	Limits []string `json:"limits,omitempty"`
}

// Tool is the program that gathered the evidence.
type Tool struct {
	Commit   string `json:"commit"`
	Dirty    bool   `json:"dirty,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Step is one step of a cell: an action, a check, or both.
type Step struct {
	ID      string    `json:"id"`
	Phase   string    `json:"phase"`
	Started time.Time `json:"started"`
	// Seconds is the duration, to the millisecond.
	Seconds float64 `json:"seconds"`
	Outcome Outcome `json:"outcome"`
	// Check tells that the step proves something; the others only get there.
	Check bool `json:"check"`
	// Claim is the sentence that a passed step makes true.
	Claim  string   `json:"claim"`
	Reason string   `json:"reason,omitempty"`
	Seen   []string `json:"seen,omitempty"`
	// Diagnostics is the folder, relative to the cell's, with what was gathered on failure.
	Diagnostics string `json:"diagnostics,omitempty"`
}

// Sources are the releases that the cell upgrades from: its first, and those on the way.
func (c *Cell) Sources() []Release { return append([]Release{c.From}, c.Through...) }

// Took is how long its steps took: a cell that went on after an interruption was not running in between.
func (c *Cell) Took() time.Duration {
	total := 0.0
	for _, step := range c.Steps {
		total += step.Seconds
	}
	return time.Duration(total * float64(time.Second))
}

// Step returns the step with that id, or nil.
func (c *Cell) Step(id string) *Step {
	i := slices.IndexFunc(c.Steps, func(s Step) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &c.Steps[i]
}

// Record adds the step, in place of an earlier result of the same step.
func (c *Cell) Record(step Step) {
	if old := c.Step(step.ID); old != nil {
		*old = step
		return
	}
	c.Steps = append(c.Steps, step)
}

// Disruption returns the disruption by the change of that step, to be filled in. It is added if it is not there; the
// pointer is good until the next call.
func (c *Cell) Disruption(step string) *Disruption {
	i := slices.IndexFunc(c.Disruptions, func(d Disruption) bool { return d.Step == step })
	if i < 0 {
		i = len(c.Disruptions)
		c.Disruptions = append(c.Disruptions, Disruption{Step: step})
	}
	return &c.Disruptions[i]
}

// Green tells that the cell needs nobody's attention.
func (v Verdict) Green() bool { return v == Proven || v == NotRun }

// Final tells that running the cell again with the same key would tell nothing new.
func (v Verdict) Final() bool { return v == Proven || v == Refuted || v == BaselineBroken }
