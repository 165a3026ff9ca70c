// Package github is the edge of triage to GitHub: it pages, waits for rate limits, and repeats what
// failed in such a way that nothing is done twice.
package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v62/github"

	"github.com/trussiumhq/trussium-operator/matrix/triage"
)

// DefaultURL is the API of github.com.
const DefaultURL = "https://api.github.com"

// DefaultMaxWait is how long one request may take, with all its repetitions and waits.
const DefaultMaxWait = 15 * time.Minute

// requestTimeout bounds one try of one request.
const requestTimeout = 30 * time.Second

// perPage is the most that GitHub gives in one page.
const perPage = 100

// ErrInput marks a mistake in the options.
var ErrInput = errors.New("bad input")

// inputError is an error whose cause is ErrInput, without a text of its own.
type inputError struct{ error }

func (e inputError) Unwrap() error        { return e.error }
func (e inputError) Is(target error) bool { return target == ErrInput }

func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }

// Options say which repositories to use, and how to get there.
type Options struct {
	// URL is the address of the API. Anything but api.HOST is taken for a GitHub Enterprise Server,
	// whose API is under /api/v3. Default: DefaultURL.
	URL string
	// Token authenticates; without one only public data can be read.
	Token string
	// Runtime is the repository whose releases are read, Proposals the one with the issues: OWNER/NAME.
	Runtime   string
	Proposals string
	// MaxWait is how long one request may take, with all its repetitions and waits. Default:
	// DefaultMaxWait.
	MaxWait time.Duration
	// Progress is told about waits, one line each. It may be nil.
	Progress func(string)
	// Transport carries the requests. Default: http.DefaultTransport.
	Transport http.RoundTripper
	// Jitter varies the pauses after failures, as a part of them, so that clients do not repeat in
	// step. Default: none.
	Jitter float64
}

// Client implements triage.GitHub. It is not safe for use by several goroutines: GitHub wants
// requests one after the other.
type Client struct {
	api                *gogithub.Client
	runtime, proposals repository
	token              string
	maxWait            time.Duration
	jitter             float64
	progress           func(string)
	// written is when something was last changed.
	written time.Time
}

type repository struct{ owner, name string }

func (r repository) String() string { return r.owner + "/" + r.name }

var repositoryForm = regexp.MustCompile(`^([A-Za-z0-9-]{1,39})/([A-Za-z0-9._-]{1,100})$`)

func parseRepository(text string) (repository, error) {
	match := repositoryForm.FindStringSubmatch(text)
	if match == nil || match[2] == "." || match[2] == ".." {
		return repository{}, badInput("the repository %q: write OWNER/NAME, as in trussiumhq/trussium", text)
	}
	return repository{match[1], match[2]}, nil
}

// New checks the options. It sends nothing.
func New(o Options) (*Client, error) {
	c := &Client{token: o.Token, maxWait: cmp.Or(o.MaxWait, DefaultMaxWait), jitter: o.Jitter, progress: o.Progress}
	if c.progress == nil {
		c.progress = func(string) {}
	}
	var err error
	if c.runtime, err = parseRepository(o.Runtime); err != nil {
		return nil, err
	}
	if c.proposals, err = parseRepository(o.Proposals); err != nil {
		return nil, err
	}
	api, err := parseURL(cmp.Or(o.URL, DefaultURL), o.Token != "")
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, badInput("the token holds a character that no token has: check GITHUB_TOKEN")
	}
	base := o.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	carrier := &transport{base: base, token: o.Token}
	client := gogithub.NewClient(&http.Client{Transport: carrier, CheckRedirect: followReads})
	if client, err = client.WithEnterpriseURLs(api, api); err != nil {
		return nil, badInput("the address of GitHub %q: %w", api, err)
	}
	client.UserAgent = "trussium-matrix"
	carrier.api = client.BaseURL
	c.api = client
	return c, nil
}

// parseURL refuses to send a token unencrypted to another machine.
func parseURL(text string, token bool) (string, error) {
	address, err := url.Parse(text)
	switch {
	case err != nil || address.Host == "" || address.User != nil || address.RawQuery != "" || address.Fragment != "" || address.Scheme != "https" && address.Scheme != "http":
		return "", badInput("the address of GitHub: write https://HOST, as in %s", DefaultURL)
	case address.Scheme == "http" && token && !loopback(address.Hostname()):
		return "", badInput("the address of GitHub is %s: a token is not sent without encryption; write https", text)
	}
	return text, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// followReads follows redirects of reads, as those of a renamed repository. A redirected write
// would become a read.
func followReads(request *http.Request, via []*http.Request) error {
	if via[0].Method != http.MethodGet || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}

// pages reads all pages of a list.
func pages[T any](ctx context.Context, c *Client, doing string, read func(context.Context, gogithub.ListOptions) ([]T, *gogithub.Response, error)) ([]T, error) {
	type page struct {
		items []T
		next  int
	}
	var all []T
	options := gogithub.ListOptions{PerPage: perPage}
	for {
		got, err := attempt(ctx, c, doing, nil, func(ctx context.Context) (page, error) {
			items, response, err := read(ctx, options)
			if err != nil {
				return page{}, err
			}
			return page{items, response.NextPage}, nil
		})
		if err != nil {
			return nil, err
		}
		all = append(all, got.items...)
		if got.next <= options.Page {
			return all, nil
		}
		options.Page = got.next
	}
}

// write is attempt for a request that changes something.
func write[T any](ctx context.Context, c *Client, doing string, landed func(context.Context) (T, bool, error), send func(context.Context) (T, error)) (T, error) {
	return attempt(ctx, c, doing, landed, func(ctx context.Context) (T, error) {
		select {
		case <-time.After(time.Until(c.written.Add(writePause))):
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
		defer func() { c.written = time.Now() }()
		return send(ctx)
	})
}

// done is the result of a write that has none.
type done struct{}

// Releases implements triage.GitHub.
func (c *Client) Releases(ctx context.Context) ([]triage.Release, error) {
	listed, err := pages(ctx, c, fmt.Sprintf("read the releases of %s", c.runtime), func(ctx context.Context, o gogithub.ListOptions) ([]*gogithub.RepositoryRelease, *gogithub.Response, error) {
		return c.api.Repositories.ListReleases(ctx, c.runtime.owner, c.runtime.name, &o)
	})
	var releases []triage.Release
	seen := map[string]bool{}
	for _, release := range listed {
		// A release that is published while the pages are read moves one to the next page.
		if version := release.GetTagName(); !seen[version] || release.GetDraft() {
			seen[version] = seen[version] || !release.GetDraft()
			releases = append(releases, triage.Release{
				Version: version, Created: release.GetCreatedAt().Time, Published: release.GetPublishedAt().Time,
				Draft: release.GetDraft(), Prerelease: release.GetPrerelease(), Notes: release.GetBody(), URL: release.GetHTMLURL(),
			})
		}
	}
	return releases, err
}

var fullHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// TagCommit implements triage.GitHub.
func (c *Client) TagCommit(ctx context.Context, tag string) (string, error) {
	doing := fmt.Sprintf("read the tag %s of %s", tag, c.runtime)
	object, err := attempt(ctx, c, doing, nil, func(ctx context.Context) (*gogithub.GitObject, error) {
		ref, _, err := c.api.Git.GetRef(ctx, c.runtime.owner, c.runtime.name, "tags/"+tag)
		return ref.GetObject(), err
	})
	if err == nil && object.GetType() == "tag" {
		object, err = attempt(ctx, c, doing, nil, func(ctx context.Context) (*gogithub.GitObject, error) {
			annotated, _, err := c.api.Git.GetTag(ctx, c.runtime.owner, c.runtime.name, object.GetSHA())
			return annotated.GetObject(), err
		})
	}
	switch {
	case status(err) == http.StatusNotFound:
		return "", nil
	case err != nil:
		return "", err
	case object.GetType() != "commit" || !fullHash.MatchString(object.GetSHA()):
		return "", nil
	}
	return object.GetSHA(), nil
}

// Labels implements triage.GitHub.
func (c *Client) Labels(ctx context.Context) ([]triage.Label, error) {
	listed, err := pages(ctx, c, fmt.Sprintf("read the labels of %s", c.proposals), func(ctx context.Context, o gogithub.ListOptions) ([]*gogithub.Label, *gogithub.Response, error) {
		return c.api.Issues.ListLabels(ctx, c.proposals.owner, c.proposals.name, &o)
	})
	labels := make([]triage.Label, len(listed))
	for i, label := range listed {
		labels[i] = triage.Label{Name: label.GetName(), Description: label.GetDescription()}
	}
	return labels, err
}

// Issues implements triage.GitHub.
func (c *Client) Issues(ctx context.Context, label string, since time.Time) ([]triage.Issue, error) {
	// The oldest come first, so that issues that are opened meanwhile do not move others.
	options := gogithub.IssueListByRepoOptions{State: "all", Sort: "created", Direction: "asc", Since: since}
	// GitHub would take a comma for the border between two labels.
	if label != "" && !strings.Contains(label, ",") {
		options.Labels = []string{label}
	}
	listed, err := pages(ctx, c, fmt.Sprintf("read the issues of %s", c.proposals), func(ctx context.Context, o gogithub.ListOptions) ([]*gogithub.Issue, *gogithub.Response, error) {
		options.ListOptions = o
		return c.api.Issues.ListByRepo(ctx, c.proposals.owner, c.proposals.name, &options)
	})
	var issues []triage.Issue
	for _, issue := range listed {
		if !issue.IsPullRequest() {
			issues = append(issues, toIssue(issue))
		}
	}
	return issues, err
}

func toIssue(issue *gogithub.Issue) triage.Issue {
	open := issue.GetState() != "closed"
	converted := triage.Issue{
		Number: issue.GetNumber(), Open: open, Reopened: open && issue.GetStateReason() == "reopened",
		Title: issue.GetTitle(), Body: issue.GetBody(), Author: toAuthor(issue.User, issue.GetAuthorAssociation()),
	}
	for _, label := range issue.Labels {
		converted.Labels = append(converted.Labels, label.GetName())
	}
	return converted
}

func toAuthor(user *gogithub.User, association string) triage.Author {
	return triage.Author{Login: user.GetLogin(), Bot: user.GetType() == "Bot", Association: association}
}

// Comments implements triage.GitHub.
func (c *Client) Comments(ctx context.Context, issue int) ([]triage.Comment, error) {
	listed, err := pages(ctx, c, fmt.Sprintf("read the comments of %s#%d", c.proposals, issue), func(ctx context.Context, o gogithub.ListOptions) ([]*gogithub.IssueComment, *gogithub.Response, error) {
		return c.api.Issues.ListComments(ctx, c.proposals.owner, c.proposals.name, issue, &gogithub.IssueListCommentsOptions{ListOptions: o})
	})
	comments := make([]triage.Comment, len(listed))
	for i, comment := range listed {
		comments[i] = toComment(comment)
	}
	return comments, gone(err)
}

func toComment(comment *gogithub.IssueComment) triage.Comment {
	return triage.Comment{ID: comment.GetID(), Body: comment.GetBody(), Author: toAuthor(comment.User, comment.GetAuthorAssociation())}
}

// CreateLabel implements triage.GitHub.
func (c *Client) CreateLabel(ctx context.Context, label triage.Label, color string) error {
	_, err := write(ctx, c, fmt.Sprintf("create the label %s in %s", label.Name, c.proposals), nil, func(ctx context.Context) (done, error) {
		_, _, err := c.api.Issues.CreateLabel(ctx, c.proposals.owner, c.proposals.name, &gogithub.Label{Name: &label.Name, Description: &label.Description, Color: &color})
		var answer *gogithub.ErrorResponse
		if errors.As(err, &answer) {
			for _, problem := range answer.Errors {
				if problem.Code == "already_exists" {
					return done{}, nil
				}
			}
		}
		return done{}, err
	})
	return err
}

// CreateIssue implements triage.GitHub.
func (c *Client) CreateIssue(ctx context.Context, title, body string, labels []string, landed func(context.Context) (triage.Issue, bool, error)) (triage.Issue, error) {
	return write(ctx, c, fmt.Sprintf("open the issue %q in %s", title, c.proposals), landed, func(ctx context.Context) (triage.Issue, error) {
		issue, _, err := c.api.Issues.Create(ctx, c.proposals.owner, c.proposals.name, &gogithub.IssueRequest{Title: &title, Body: &body, Labels: &labels})
		if err != nil {
			return triage.Issue{}, err
		}
		return toIssue(issue), nil
	})
}

// CreateComment implements triage.GitHub.
func (c *Client) CreateComment(ctx context.Context, issue int, body string, landed func(context.Context) (triage.Comment, bool, error)) (triage.Comment, error) {
	comment, err := write(ctx, c, fmt.Sprintf("comment on %s#%d", c.proposals, issue), landed, func(ctx context.Context) (triage.Comment, error) {
		comment, _, err := c.api.Issues.CreateComment(ctx, c.proposals.owner, c.proposals.name, issue, &gogithub.IssueComment{Body: &body})
		if err != nil {
			return triage.Comment{}, err
		}
		return toComment(comment), nil
	})
	return comment, gone(err)
}

// DeleteComment implements triage.GitHub. A comment that is not there is deleted.
func (c *Client) DeleteComment(ctx context.Context, id int64) error {
	_, err := write(ctx, c, fmt.Sprintf("delete a comment in %s", c.proposals), nil, func(ctx context.Context) (done, error) {
		_, err := c.api.Issues.DeleteComment(ctx, c.proposals.owner, c.proposals.name, id)
		if status(err) == http.StatusNotFound {
			return done{}, nil
		}
		return done{}, err
	})
	return err
}

// AddLabels implements triage.GitHub.
func (c *Client) AddLabels(ctx context.Context, issue int, labels []string) error {
	_, err := write(ctx, c, fmt.Sprintf("label %s#%d", c.proposals, issue), nil, func(ctx context.Context) (done, error) {
		// The library sends a bare list, which GitHub's description of the request does not allow.
		path := fmt.Sprintf("repos/%s/issues/%d/labels", c.proposals, issue)
		request, err := c.api.NewRequest(http.MethodPost, path, map[string][]string{"labels": labels})
		if err != nil {
			return done{}, err
		}
		_, err = c.api.Do(ctx, request, nil)
		return done{}, err
	})
	return gone(err)
}

// CloseIssue implements triage.GitHub.
func (c *Client) CloseIssue(ctx context.Context, issue int, reason triage.StateReason) error {
	_, err := write(ctx, c, fmt.Sprintf("close %s#%d", c.proposals, issue), nil, func(ctx context.Context) (done, error) {
		_, _, err := c.api.Issues.Edit(ctx, c.proposals.owner, c.proposals.name, issue, &gogithub.IssueRequest{State: gogithub.String("closed"), StateReason: gogithub.String(string(reason))})
		return done{}, err
	})
	return gone(err)
}
