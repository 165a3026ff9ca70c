package triage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// GitHub is what a run does on GitHub. Its reads may be repeated at will. A write is done once, or
// the error says that it may not have been done; see Client of package github.
type GitHub interface {
	// Releases are all releases of the runtime. Drafts are among them only for who may see them.
	Releases(ctx context.Context) ([]Release, error)
	// TagCommit is the commit of a tag of the runtime; empty if there is no such tag.
	TagCommit(ctx context.Context, tag string) (string, error)
	Labels(ctx context.Context) ([]Label, error)
	// Issues are the issues, open and closed, with the label, or all if it is empty, that changed
	// since; a zero time is for ever. Pull requests are not among them.
	Issues(ctx context.Context, label string, since time.Time) ([]Issue, error)
	Comments(ctx context.Context, issue int) ([]Comment, error)

	// CreateLabel does nothing if there is one of that name.
	CreateLabel(ctx context.Context, label Label, color string) error
	// CreateIssue calls landed before it tries again what may have succeeded already.
	CreateIssue(ctx context.Context, title, body string, labels []string, landed func(context.Context) (Issue, bool, error)) (Issue, error)
	// CreateComment is like CreateIssue. ErrGone if the issue was deleted.
	CreateComment(ctx context.Context, issue int, body string, landed func(context.Context) (Comment, bool, error)) (Comment, error)
	DeleteComment(ctx context.Context, id int64) error
	// AddLabels and CloseIssue give ErrGone if the issue was deleted.
	AddLabels(ctx context.Context, issue int, labels []string) error
	CloseIssue(ctx context.Context, issue int, reason StateReason) error
}

// Registry looks at images. What it can't find out is in the Image.
type Registry interface {
	Image(ctx context.Context, ref string) Image
}

// ErrGone says that an issue was deleted, moved or hidden since it was read.
var ErrGone = errors.New("it is gone")

// ErrRefused says that GitHub does not accept what one step would write. Other steps may do better.
var ErrRefused = errors.New("GitHub does not accept it")

// ErrNoLabels says that the labels of a new issue were dropped.
var ErrNoLabels = errors.New("GitHub dropped the label: the token needs the right to push or to triage in that repository")

// ErrNotListed says that a release that was named is not among those of the runtime.
var ErrNotListed = errors.New("the runtime's repository does not list it")

// Run is one run of triage.
type Run struct {
	github   GitHub
	registry Registry
	progress func(string)
	world    World
	// released tells that the releases were read, made are the labels that were created.
	released bool
	made     []string
}

// maxRounds bounds how often a run looks at what it has done. The second round sees what another
// run did at the same time, and closes the proposals of images that were replaced; the third only
// finds that there is nothing left.
const maxRounds = 4

// New is a run that starts from what is known without GitHub and the registry. progress is told
// what goes on, one line each; it may be nil.
func New(github GitHub, registry Registry, known World, progress func(string)) *Run {
	if progress == nil {
		progress = func(string) {}
	}
	known.Images, known.Commits = map[string]Image{}, map[string]string{}
	return &Run{github: github, registry: registry, progress: progress, world: known}
}

// Plan reads the world and plans. It changes nothing.
func (r *Run) Plan(ctx context.Context) (Plan, error) {
	plan, _, err := r.plan(ctx)
	return plan, err
}

// Apply carries out what there is to be done, and looks again until there is nothing left. The
// steps that it returns are those that it carried out; it returns them also with an error. What
// GitHub refuses for one release does not keep the others from being done.
func (r *Run) Apply(ctx context.Context) (done []Step, last Plan, err error) {
	var refusals []error
	refused := map[string]bool{}
	for range maxRounds {
		plan, labels, err := r.plan(ctx)
		if err != nil {
			return done, plan, errors.Join(append(refusals, err)...)
		}
		steps := slices.DeleteFunc(slices.Clone(plan.Steps), func(step Step) bool { return !step.Writes() || refused[step.Version] })
		if len(steps) == 0 {
			return done, plan, errors.Join(refusals...)
		}
		for _, step := range steps {
			carried, err := r.carryOut(ctx, step, labels)
			if carried.Version != "" {
				done = append(done, carried)
			}
			if err == nil {
				continue
			}
			refusals = append(refusals, fmt.Errorf("%s the proposal of %s: %w", step.Action, step.Version, err))
			if !errors.Is(err, ErrRefused) {
				return done, plan, errors.Join(refusals...)
			}
			refused[step.Version] = true
		}
		last = plan
	}
	return done, last, fmt.Errorf("after %d rounds there is still something to do: somebody changes the proposals at the same time; run the same command again", maxRounds)
}

// plan reads the world. Releases and images are read once, issues each time.
func (r *Run) plan(ctx context.Context) (Plan, []Label, error) {
	w := &r.world
	if err := r.readReleases(ctx); err != nil {
		return Plan{}, nil, err
	}
	r.progress("reading the proposals")
	labels, err := r.github.Labels(ctx)
	if err != nil {
		return Plan{}, nil, err
	}
	w.IndexLabels = labelNames(labels, LabelProposal)
	w.Issues = nil
	for _, label := range w.IndexLabels {
		if err := r.addIssues(ctx, label, time.Time{}); err != nil {
			return Plan{}, nil, err
		}
	}
	if len(w.IndexLabels) == 0 {
		// A deleted label is taken off all issues.
		if err := r.addIssues(ctx, "", time.Time{}); err != nil {
			return Plan{}, nil, err
		}
	}
	plan := w.Plan()
	if since, creates := firstCreation(plan); creates {
		// A proposal that lost its label must not be opened twice.
		if len(w.IndexLabels) > 0 {
			if err := r.addIssues(ctx, "", since); err != nil {
				return Plan{}, nil, err
			}
		}
		if err := r.readCommits(ctx, w.Plan()); err != nil {
			return Plan{}, nil, err
		}
		plan = w.Plan()
	}
	return plan, labels, nil
}

func (r *Run) readReleases(ctx context.Context) error {
	w := &r.world
	if r.released {
		return nil
	}
	r.progress("reading the releases of the runtime")
	releases, err := r.github.Releases(ctx)
	if err != nil {
		return err
	}
	w.Releases = releases
	for _, version := range w.Only {
		if _, ok := w.release(version); !ok {
			return fmt.Errorf("triage %s: %w: if it was published a moment ago, run the same command again", version, ErrNotListed)
		}
	}
	for _, version := range w.ImagesWanted() {
		ref := w.ImageRepository + ":" + imageTag(version)
		r.progress("looking at " + ref)
		w.Images[version] = r.registry.Image(ctx, ref)
	}
	r.released = true
	return ctx.Err()
}

func (r *Run) readCommits(ctx context.Context, plan Plan) error {
	for _, step := range plan.Steps {
		if _, known := r.world.Commits[step.Version]; step.Action != Create || known {
			continue
		}
		commit, err := r.github.TagCommit(ctx, step.Version)
		if err != nil {
			return err
		}
		r.world.Commits[step.Version] = commit
	}
	return nil
}

// addIssues adds the issues that are not known yet.
func (r *Run) addIssues(ctx context.Context, label string, since time.Time) error {
	issues, err := r.github.Issues(ctx, label, since)
	if err != nil {
		return err
	}
	for _, issue := range issues {
		if !slices.ContainsFunc(r.world.Issues, func(known Issue) bool { return known.Number == issue.Number }) {
			r.world.Issues = append(r.world.Issues, issue)
		}
	}
	return nil
}

// firstCreation is the earliest time that an issue about a release to be proposed can be from.
func firstCreation(plan Plan) (since time.Time, creates bool) {
	for _, step := range plan.Steps {
		if step.Action == Create && (!creates || step.Proposal.Since.Before(since)) {
			since, creates = step.Proposal.Since, true
		}
	}
	return since, creates
}

// carryOut does a step. It returns what was done, which is nothing if the issue is gone.
func (r *Run) carryOut(ctx context.Context, step Step, labels []Label) (Step, error) {
	switch step.Action {
	case Create:
		names, err := r.labels(ctx, labels, step.Proposal.Labels)
		if err != nil {
			return Step{}, err
		}
		issue, err := r.create(ctx, *step.Proposal, names)
		step.Issue = issue.Number
		if err != nil && issue.Number == 0 {
			return Step{}, err
		}
		return step, err
	case Close:
		err := r.close(ctx, step.Issue, *step.Closing)
		if errors.Is(err, ErrGone) {
			return Step{}, nil // the next round does not see it any more
		}
		if err != nil {
			return Step{}, err
		}
		return step, nil
	default:
		names, err := r.labels(ctx, labels, []string{LabelProposal})
		if err != nil {
			return Step{}, err
		}
		if err := r.github.AddLabels(ctx, step.Issue, names); err != nil {
			if errors.Is(err, ErrGone) {
				return Step{}, nil
			}
			return Step{}, err
		}
		return step, nil
	}
}

// labels are the names of the labels of the keys, which are created if they are not there.
func (r *Run) labels(ctx context.Context, existing []Label, keys []string) ([]string, error) {
	var names []string
	for _, key := range keys {
		if found := labelNames(existing, key); len(found) > 0 {
			names = append(names, found[0])
			continue
		}
		label, color := NewLabel(key)
		if !slices.Contains(r.made, label.Name) {
			if err := r.github.CreateLabel(ctx, label, color); err != nil {
				return nil, err
			}
			r.made = append(r.made, label.Name)
		}
		names = append(names, label.Name)
	}
	return names, nil
}

func (r *Run) create(ctx context.Context, p Proposal, labels []string) (Issue, error) {
	r.progress("opening the proposal of " + p.Version)
	want := identity{p.Version, p.Digest}
	issue, err := r.github.CreateIssue(ctx, p.Title, p.Body, labels, func(ctx context.Context) (Issue, bool, error) {
		issues, err := r.github.Issues(ctx, "", p.Since)
		for _, issue := range issues {
			if about, ok := identityOf(issue.Body); ok && about == want && (issue.Author.trusted() || slices.Contains(issue.Labels, labels[0])) {
				return issue, true, nil
			}
		}
		return Issue{}, false, err
	})
	if err != nil {
		return Issue{}, err
	}
	if !slices.Contains(issue.Labels, labels[0]) {
		return issue, fmt.Errorf("#%d: %w", issue.Number, ErrNoLabels)
	}
	return issue, nil
}

// close says why and closes, in this order: an issue that is closed is not looked at again.
func (r *Run) close(ctx context.Context, issue int, c Closing) error {
	r.progress(fmt.Sprintf("closing #%d", issue))
	if err := r.comment(ctx, issue, c); err != nil {
		return err
	}
	return r.github.CloseIssue(ctx, issue, c.Reason)
}

// comment makes sure that the comment is there once. When two runs do it at once, the one that
// sees an older comment than its own takes its own back.
func (r *Run) comment(ctx context.Context, issue int, c Closing) error {
	if _, found, err := r.firstComment(ctx, issue, c.Marker); err != nil || found {
		return err
	}
	mine, err := r.github.CreateComment(ctx, issue, c.Comment, func(ctx context.Context) (Comment, bool, error) {
		return r.firstComment(ctx, issue, c.Marker)
	})
	if err != nil {
		return err
	}
	first, found, err := r.firstComment(ctx, issue, c.Marker)
	if err != nil || !found || first.ID == mine.ID {
		return err
	}
	return r.github.DeleteComment(ctx, mine.ID)
}

// firstComment is the oldest comment with the marker that somebody with rights wrote.
func (r *Run) firstComment(ctx context.Context, issue int, marker string) (Comment, bool, error) {
	comments, err := r.github.Comments(ctx, issue)
	if err != nil {
		return Comment{}, false, err
	}
	var first Comment
	for _, comment := range comments {
		marked := len(comment.Body) >= len(marker) && comment.Body[:len(marker)] == marker && comment.Author.trusted()
		if marked && (first.ID == 0 || comment.ID < first.ID) {
			first = comment
		}
	}
	return first, first.ID != 0, nil
}
