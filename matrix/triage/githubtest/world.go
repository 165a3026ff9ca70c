package githubtest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Actor is who sends requests with a token.
type Actor struct {
	Login string
	Bot   bool
	// Association is how GitHub says that the actor belongs to the repository.
	Association string
	// ReadOnly actors may open issues and comment, but their labels are dropped.
	ReadOnly bool
}

// Maintainer is a person with all rights.
var Maintainer = Actor{Login: "maintainer", Association: "MEMBER"}

// Stranger is anybody.
var Stranger = Actor{Login: "stranger", Association: "NONE", ReadOnly: true}

// World is what the server keeps. It may be changed by tests while no request is under way, or by
// a Fault.
type World struct {
	// Runtime has the releases, Proposals the issues: OWNER/NAME.
	Runtime, Proposals string
	Releases           []*Release
	Labels             []*Label
	Issues             []*Issue

	numbers  int
	ids      int64
	comments int64
}

// Release is a release of the runtime.
type Release struct {
	Tag               string
	Created           time.Time
	Published         time.Time
	Draft, Prerelease bool
	Notes             string
	// Annotated tags are objects of their own between the name and the commit.
	Annotated bool
	// Untagged releases have lost their tag.
	Untagged bool
}

// Commit is the hash of the release's commit.
func (r *Release) Commit() string { return hash("commit " + r.Tag) }

func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Label is a label. Issues refer to it by its id, so that it can be renamed.
type Label struct {
	ID                       int64
	Name, Description, Color string
}

// Issue is an issue or a pull request.
type Issue struct {
	ID          int64
	Number      int
	Title, Body string
	Closed      bool
	StateReason string
	Labels      []int64
	Author      Actor
	Created     time.Time
	Updated     time.Time
	PullRequest bool
	Comments    []*Comment
}

// Comment is a comment.
type Comment struct {
	ID      int64
	Body    string
	Author  Actor
	Created time.Time
}

func (w *World) id() int64 {
	w.ids++
	return 1000 + w.ids
}

// AddLabel adds a label.
func (w *World) AddLabel(name, description string) *Label {
	label := &Label{ID: w.id(), Name: name, Description: description, Color: "ededed"}
	w.Labels = append(w.Labels, label)
	return label
}

// Label returns the label of that name, or nil. Case does not matter.
func (w *World) Label(name string) *Label {
	for _, label := range w.Labels {
		if strings.EqualFold(label.Name, name) {
			return label
		}
	}
	return nil
}

// DeleteLabel deletes a label, and takes it off all issues.
func (w *World) DeleteLabel(name string) {
	gone := w.Label(name)
	w.Labels = slices.DeleteFunc(w.Labels, func(l *Label) bool { return l == gone })
	for _, issue := range w.Issues {
		issue.Labels = slices.DeleteFunc(issue.Labels, func(id int64) bool { return id == gone.ID })
	}
}

// AddIssue opens an issue.
func (w *World) AddIssue(author Actor, title, body string, labels ...string) *Issue {
	w.numbers++
	issue := &Issue{ID: w.id(), Number: w.numbers, Title: title, Body: body, Author: author, Created: now(), Updated: now()}
	for _, name := range labels {
		issue.Labels = append(issue.Labels, w.Label(name).ID)
	}
	w.Issues = append(w.Issues, issue)
	return issue
}

// Issue returns the issue with that number, or nil.
func (w *World) Issue(number int) *Issue {
	for _, issue := range w.Issues {
		if issue.Number == number {
			return issue
		}
	}
	return nil
}

// DeleteIssue deletes an issue, as administrators can.
func (w *World) DeleteIssue(number int) {
	w.Issues = slices.DeleteFunc(w.Issues, func(i *Issue) bool { return i.Number == number })
}

// HasLabel tells whether the issue has the label.
func (w *World) HasLabel(issue *Issue, name string) bool {
	label := w.Label(name)
	return label != nil && slices.Contains(issue.Labels, label.ID)
}

// now is the time as GitHub tells it: in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// Representations, as the description wants them. They hold what it requires, and what clients
// look at.

type fields = map[string]any

func (s *Server) user(a Actor) fields {
	kind := "User"
	if a.Bot {
		kind = "Bot"
	}
	api := s.address + "/users/" + a.Login
	return fields{
		"login": a.Login, "id": 1, "node_id": "U_1", "avatar_url": s.address + "/avatars/1", "gravatar_id": "", "url": api, "html_url": s.address + "/" + a.Login,
		"followers_url": api + "/followers", "following_url": api + "/following{/other_user}", "gists_url": api + "/gists{/gist_id}", "starred_url": api + "/starred{/owner}{/repo}",
		"subscriptions_url": api + "/subscriptions", "organizations_url": api + "/orgs", "repos_url": api + "/repos", "events_url": api + "/events{/privacy}",
		"received_events_url": api + "/received_events", "type": kind, "site_admin": false,
	}
}

func (s *Server) release(r *Release) fields {
	api := s.repository(s.World.Runtime) + "/releases/" + r.Tag
	var published any
	if !r.Draft {
		published = r.Published
	}
	return fields{
		"url": api, "html_url": s.address + "/" + s.World.Runtime + "/releases/tag/" + r.Tag, "assets_url": api + "/assets", "upload_url": api + "/assets{?name,label}",
		"tarball_url": api + "/tarball", "zipball_url": api + "/zipball", "id": 1, "node_id": "RE_1", "tag_name": r.Tag, "target_commitish": "main", "name": r.Tag,
		"body": r.Notes, "draft": r.Draft, "prerelease": r.Prerelease, "created_at": r.Created, "published_at": published, "author": s.user(Maintainer), "assets": []any{},
	}
}

func (s *Server) label(l *Label) fields {
	return fields{
		"id": l.ID, "node_id": "LA_1", "url": s.repository(s.World.Proposals) + "/labels/" + fmt.Sprint(l.ID), "name": l.Name, "description": l.Description,
		"color": l.Color, "default": false,
	}
}

func (s *Server) issue(i *Issue) fields {
	api := fmt.Sprintf("%s/issues/%d", s.repository(s.World.Proposals), i.Number)
	state, reason, closed := "open", any(nil), any(nil)
	if i.Closed {
		state, closed = "closed", i.Updated
	}
	if i.StateReason != "" {
		reason = i.StateReason
	}
	labels := []any{}
	for _, label := range s.World.Labels {
		if slices.Contains(i.Labels, label.ID) {
			labels = append(labels, s.label(label))
		}
	}
	out := fields{
		"id": i.ID, "node_id": "I_1", "url": api, "repository_url": s.repository(s.World.Proposals), "labels_url": api + "/labels{/name}", "comments_url": api + "/comments",
		"events_url": api + "/events", "html_url": fmt.Sprintf("%s/%s/issues/%d", s.address, s.World.Proposals, i.Number), "number": i.Number, "state": state, "state_reason": reason,
		"title": i.Title, "body": i.Body, "user": s.user(i.Author), "labels": labels, "assignee": nil, "assignees": []any{}, "milestone": nil, "locked": false,
		"active_lock_reason": nil, "comments": len(i.Comments), "closed_at": closed, "created_at": i.Created, "updated_at": i.Updated,
		"author_association": i.Author.Association,
	}
	if i.PullRequest {
		address := s.repository(s.World.Proposals) + "/pulls/" + fmt.Sprint(i.Number)
		out["pull_request"] = fields{"url": address, "html_url": address, "diff_url": address, "patch_url": address, "merged_at": nil}
	}
	return out
}

func (s *Server) comment(i *Issue, c *Comment) fields {
	api := s.repository(s.World.Proposals)
	return fields{
		"id": c.ID, "node_id": "IC_1", "url": fmt.Sprintf("%s/issues/comments/%d", api, c.ID), "html_url": fmt.Sprintf("%s/%s/issues/%d", s.address, s.World.Proposals, i.Number),
		"issue_url": fmt.Sprintf("%s/issues/%d", api, i.Number), "user": s.user(c.Author), "created_at": c.Created, "updated_at": c.Created, "body": c.Body,
		"author_association": c.Author.Association,
	}
}

func (s *Server) repository(name string) string {
	return s.address + s.edition.Base() + "/repos/" + name
}
