package triage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// Action is what a step does.
type Action string

// The actions.
const (
	// Create opens a proposal.
	Create Action = "create"
	// Close comments on a proposal and closes it.
	Close Action = "close"
	// Relabel gives a proposal the label back that proposals are listed by.
	Relabel Action = "label"
	// Wait is nothing now: something has to happen first.
	Wait Action = "wait"
	// Nothing is nothing.
	Nothing Action = "nothing"
)

// Step is what is to be done about one release or one issue, and why.
type Step struct {
	Action  Action `json:"action"`
	Version string `json:"version"`
	// Issue is the number of the issue that the step is about; 0 if there is none.
	Issue  int    `json:"issue,omitempty"`
	Reason string `json:"reason"`
	// Proposal is what Create opens, Closing what Close does.
	Proposal *Proposal `json:"proposal,omitempty"`
	Closing  *Closing  `json:"closing,omitempty"`
}

// Writes tells whether the step changes something on GitHub.
func (s Step) Writes() bool { return s.Action == Create || s.Action == Close || s.Action == Relabel }

// World is everything that a plan depends on.
type World struct {
	File     *compat.File
	Contract Contract
	Evidence []*evidence.Cell
	// Candidate is the operator version of the checkout.
	Candidate string
	// ImageRepository is where the images of the runtime are published.
	ImageRepository string

	Releases []Release
	// Images and Commits are known for those releases for which they were looked up.
	Images  map[string]Image
	Commits map[string]string
	Issues  []Issue
	// IndexLabels are the names of the label that proposals are listed by.
	IndexLabels []string

	Now time.Time
	// ImageWait is how long after a release its image is waited for.
	ImageWait time.Duration
	// Only narrows the plan to these releases; nil keeps all.
	Only []string
}

// Plan is what is to be done.
type Plan struct {
	Steps []Step `json:"steps"`
	// PassedOver are releases without a decision that were published before a newer one that was
	// validated. They are not proposed.
	PassedOver []string `json:"passedOver,omitempty"`
	// Prereleases and Strange are not looked at: the latter have names that are none.
	Prereleases []string `json:"prereleases,omitempty"`
	Strange     []string `json:"strange,omitempty"`
	// Unseen are the releases that wait because their image could not be looked at.
	Unseen []string `json:"unseen,omitempty"`
	// Superseding is the newest validated release, if proposals of older ones are open.
	Superseding string `json:"superseding,omitempty"`
	// Superseded are the releases of those proposals.
	Superseded []string `json:"superseded,omitempty"`
}

// Writes tells whether the plan changes something on GitHub.
func (p Plan) Writes() bool { return slices.ContainsFunc(p.Steps, Step.Writes) }

// proposals are the issues about one release, oldest first, one for each image.
type proposals []proposed

type proposed struct {
	Issue
	identity
}

// labelled tells whether the issue is found by the label.
func (w World) labelled(issue Issue) bool {
	return slices.ContainsFunc(issue.Labels, func(label string) bool {
		return slices.ContainsFunc(w.IndexLabels, func(index string) bool { return strings.EqualFold(index, label) })
	})
}

// known sorts the issues that are proposals by release. A marker counts only if somebody with
// rights set the label or wrote the issue: anybody can write a marker.
func (w World) known() (map[string]proposals, []Step) {
	byIdentity := map[identity][]Issue{}
	var steps []Step
	for _, issue := range w.Issues {
		about, ok := identityOf(issue.Body)
		switch {
		case !ok || !w.wanted(about.version):
		case w.labelled(issue):
			byIdentity[about] = append(byIdentity[about], issue)
		case issue.Author.trusted():
			byIdentity[about] = append(byIdentity[about], issue)
			steps = append(steps, Step{Action: Relabel, Version: about.version, Issue: issue.Number, Reason: "it has lost the label that proposals are listed by"})
		default:
			steps = append(steps, Step{Action: Nothing, Version: about.version, Issue: issue.Number, Reason: "it has the marker of a proposal, but neither the label nor an author with rights: ignored"})
		}
	}
	all := map[string]proposals{}
	for about, issues := range byIdentity {
		slices.SortFunc(issues, func(a, b Issue) int { return cmp.Compare(a.Number, b.Number) })
		for _, twin := range issues[1:] {
			if twin.Open {
				steps = append(steps, closing(twin, about.version, duplicateOf(issues[0])))
			}
		}
		all[about.version] = append(all[about.version], proposed{issues[0], about})
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b proposed) int { return cmp.Compare(a.Number, b.Number) })
	}
	return all, steps
}

func (w World) wanted(version string) bool { return w.Only == nil || slices.Contains(w.Only, version) }

// Plan decides what is to be done.
func (w World) Plan() Plan {
	var plan Plan
	known, steps := w.known()
	plan.Steps = steps
	var considered []Release
	for _, release := range w.Releases {
		version, ok := parseVersion(release.Version)
		switch {
		case release.Draft || !w.wanted(release.Version):
		case !ok:
			plan.Strange = append(plan.Strange, release.Version)
		case release.Prerelease || version.Prerelease() != "":
			plan.Prereleases = append(plan.Prereleases, release.Version)
		default:
			considered = append(considered, release)
		}
	}
	for _, release := range considered {
		row, decided := w.File.RuntimeRelease(release.Version)
		issues := known[release.Version]
		delete(known, release.Version)
		switch newer := w.newerValidated(release); {
		case decided && w.covers(row):
			plan.Steps = append(plan.Steps, w.decided(row, issues)...)
		case !decided && newer != "" && len(issues) == 0:
			plan.PassedOver = append(plan.PassedOver, release.Version)
		case !decided && newer != "":
			plan.Steps = append(plan.Steps, stay(release.Version, issues, newer+" was validated since: it may be closed as superseded"))
			if slices.ContainsFunc(issues, func(p proposed) bool { return p.Open }) {
				plan.Superseding = newer
				plan.Superseded = append(plan.Superseded, release.Version)
			}
		default:
			steps := w.undecided(release, row, issues)
			if steps[0].Action == Wait && w.Images[release.Version].State == ImageUnknown {
				plan.Unseen = append(plan.Unseen, release.Version)
			}
			plan.Steps = append(plan.Steps, steps...)
		}
	}
	// Proposals of releases that are not listed: a pre-release that was decided, or one that is gone.
	for version, issues := range known {
		if row, decided := w.File.RuntimeRelease(version); decided && w.covers(row) {
			plan.Steps = append(plan.Steps, w.decided(row, issues)...)
		} else {
			plan.Steps = append(plan.Steps, stay(version, issues, "its release is not listed any more: decide it or close the issue"))
		}
	}
	slices.SortStableFunc(plan.Steps, func(a, b Step) int {
		return cmp.Or(compareVersions(a.Version, b.Version), cmp.Compare(a.Issue, b.Issue))
	})
	for _, list := range [][]string{plan.PassedOver, plan.Prereleases, plan.Strange, plan.Unseen, plan.Superseded} {
		slices.SortFunc(list, compareVersions)
	}
	return plan
}

// covers tells whether the decision is about the image that the release has now.
func (w World) covers(row compat.RuntimeRelease) bool {
	image := w.Images[row.Version]
	return row.Digest == "" || image.State != ImagePresent || image.Digest == row.Digest
}

// newerValidated is the newest validated release that is newer than this one, by version and by
// the day on which it was published; empty if there is none.
func (w World) newerValidated(release Release) string {
	newest := ""
	for _, row := range w.File.RuntimeReleases {
		if row.Decision != compat.DecisionValidated || compareVersions(row.Version, release.Version) <= 0 {
			continue
		}
		// A patch of an older line is news, though its version is not the newest.
		if published, ok := w.release(row.Version); ok && !published.Published.After(release.Published) {
			continue
		}
		if newest == "" || compareVersions(row.Version, newest) > 0 {
			newest = row.Version
		}
	}
	return newest
}

func (w World) release(version string) (Release, bool) {
	i := slices.IndexFunc(w.Releases, func(r Release) bool { return r.Version == version && !r.Draft })
	if i < 0 {
		return Release{}, false
	}
	return w.Releases[i], true
}

// stay is nothing to do about a release that has proposals.
func stay(version string, issues proposals, reason string) Step {
	last := issues[len(issues)-1]
	return Step{Action: Nothing, Version: version, Issue: last.Number, Reason: reason}
}

// decided closes the proposals of a release that has a decision.
func (w World) decided(row compat.RuntimeRelease, issues proposals) []Step {
	var steps []Step
	for _, issue := range issues {
		if !issue.Open {
			continue
		}
		cells := w.proof(row, issue)
		if row.Decision == compat.DecisionValidated && len(cells) == 0 {
			steps = append(steps, Step{Action: Wait, Version: row.Version, Issue: issue.Number, Reason: "it is decided as validated, but no green cell of the evidence ran " + unsimulated(row, issue) + ": run the row and commit its evidence"})
			continue
		}
		steps = append(steps, closing(issue.Issue, row.Version, decisionOn(row, cells)))
	}
	if len(steps) == 0 {
		steps = append(steps, Step{Action: Nothing, Version: row.Version, Reason: "decided: " + string(row.Decision)})
	}
	return steps
}

// proof are the green cells in which the real image of the release ran.
func (w World) proof(row compat.RuntimeRelease, issue proposed) []*evidence.Cell {
	digest := cmp.Or(row.Digest, issue.digest)
	var cells []*evidence.Cell
	for _, c := range w.Evidence {
		for _, image := range []evidence.Artifact{c.Runtime.Baseline, c.Runtime.Target} {
			matches := strings.HasSuffix(image.Ref, ":"+row.ImageTag) && !image.Simulated && (digest == noImage || image.Digest == digest)
			if matches && c.Verdict == evidence.Proven && !slices.Contains(cells, c) {
				cells = append(cells, c)
			}
		}
	}
	return cells
}

func unsimulated(row compat.RuntimeRelease, issue proposed) string {
	if digest := cmp.Or(row.Digest, issue.digest); digest != noImage {
		return "its image " + digest + " (simulated images do not count)"
	}
	return "its image (simulated images do not count)"
}

// undecided proposes a release, or says why not.
func (w World) undecided(release Release, row compat.RuntimeRelease, issues proposals) []Step {
	nothing := func(action Action, issue int, reason string) []Step {
		return []Step{{Action: action, Version: release.Version, Issue: issue, Reason: reason}}
	}
	image := w.Images[release.Version]
	if image.State != ImagePresent && len(issues) > 0 {
		return []Step{stay(release.Version, issues, state(issues[len(issues)-1].Issue))}
	}
	switch {
	case image.State == ImagePresent:
	case image.State == ImageMissing && w.Now.Sub(release.Published) < w.ImageWait:
		return nothing(Wait, 0, fmt.Sprintf("its image is not there yet; it is proposed without one from %s on", release.Published.Add(w.ImageWait).UTC().Format("2006-01-02 15:04 UTC")))
	case image.State != ImageMissing:
		return nothing(Wait, 0, "its image could not be looked at: "+line(image.Problem, maxValue))
	}
	proposal := w.draft(release, row).proposal()
	current := slices.IndexFunc(issues, func(p proposed) bool { return p.digest == proposal.Digest })
	if current < 0 {
		reason := fmt.Sprintf("no decision; %s: %s", proposal.Impact, w.draft(release, row).reason)
		switch {
		case row.Digest != "":
			reason = "the tag moved to another image since the decision; " + reason
		case len(issues) > 0:
			reason = "the image is another one than in #" + fmt.Sprint(issues[len(issues)-1].Number) + "; " + reason
		case image.State == ImageMissing:
			reason = "there is no image; " + reason
		}
		return []Step{{Action: Create, Version: release.Version, Reason: reason, Proposal: &proposal}}
	}
	steps := nothing(Nothing, issues[current].Number, state(issues[current].Issue))
	for _, issue := range issues[:current] {
		if issue.Open {
			steps = append(steps, closing(issue.Issue, release.Version, outdatedBy(issues[current])))
		}
	}
	return steps
}

// state says how it is with the proposal of a release that has no decision.
func state(issue Issue) string {
	switch {
	case issue.Open && issue.Reopened:
		return "proposed, and reopened"
	case issue.Open:
		return "proposed"
	default:
		return "closed without a decision: record it with matrix triage decide"
	}
}

// draft gathers what the proposal of a release says.
func (w World) draft(release Release, row compat.RuntimeRelease) draft {
	image := w.Images[release.Version]
	baseline := w.baseline(release.Version)
	diff := w.Contract.compare(
		side{version: baseline, image: w.Images[baseline]},
		side{version: release.Version, commit: w.Commits[release.Version], image: image},
		w.notesSince(baseline, release.Version),
	)
	d := draft{
		release: release, commit: w.Commits[release.Version], image: image, diff: diff,
		imageRef: w.ImageRepository + ":" + imageTag(release.Version),
	}
	d.impact, d.reason = diff.classify(release.Version, w.newest())
	if image.State != ImagePresent {
		d.reason += ", as far as can be told without an image"
	}
	if row.Digest != "" {
		d.moved, d.decision = row.Digest, row.Decision
	}
	tested := compat.RuntimeRelease{Version: release.Version, ImageTag: imageTag(release.Version), ContractImpact: d.impact, Decision: compat.DecisionValidated}
	if image.State == ImagePresent {
		tested.Digest = image.Digest
	}
	d.rows = validationRows(w.File, w.Candidate, baseline, tested)
	return d
}

// baseline is the newest validated release that is older; empty if there is none.
func (w World) baseline(version string) string {
	newest := ""
	for _, row := range w.File.RuntimeReleases {
		older := row.Decision == compat.DecisionValidated && compareVersions(row.Version, version) < 0
		if older && (newest == "" || compareVersions(row.Version, newest) > 0) {
			newest = row.Version
		}
	}
	return newest
}

// notesSince are the releases after the baseline, up to the release, oldest first.
func (w World) notesSince(baseline, version string) []Release {
	var since []Release
	for _, release := range w.Releases {
		_, ok := parseVersion(release.Version)
		newer := baseline != "" && compareVersions(release.Version, baseline) > 0 && compareVersions(release.Version, version) < 0
		if ok && !release.Draft && (newer || release.Version == version) {
			since = append(since, release)
		}
	}
	slices.SortFunc(since, func(a, b Release) int { return compareVersions(a.Version, b.Version) })
	return since
}

// newest is the newest release that is no pre-release.
func (w World) newest() string {
	newest := ""
	for _, release := range w.Releases {
		version, ok := parseVersion(release.Version)
		if ok && !release.Draft && !release.Prerelease && version.Prerelease() == "" && (newest == "" || compareVersions(release.Version, newest) > 0) {
			newest = release.Version
		}
	}
	return newest
}

// ImagesWanted are the releases whose images the plan depends on, sorted.
func (w World) ImagesWanted() []string {
	var versions []string
	for _, release := range w.Releases {
		version, ok := parseVersion(release.Version)
		if !ok || release.Draft || release.Prerelease || version.Prerelease() != "" || !w.wanted(release.Version) {
			continue
		}
		row, decided := w.File.RuntimeRelease(release.Version)
		switch {
		case decided && row.Digest == "", !decided && w.newerValidated(release) != "":
			continue
		case !decided:
			if baseline := w.baseline(release.Version); baseline != "" {
				versions = append(versions, baseline)
			}
		}
		versions = append(versions, release.Version)
	}
	slices.SortFunc(versions, compareVersions)
	return slices.Compact(versions)
}
