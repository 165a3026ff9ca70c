package githubtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of GitHub.
const (
	maxBody        = 65536
	maxTitle       = 256
	maxDescription = 100
	maxPerPage     = 100
)

// Server is GitHub.
type Server struct {
	World *World
	// Actors are known by their tokens. Requests without a token can only read.
	Actors map[string]Actor
	// Fault decides how a request fails; nil or the zero Fault is not at all.
	Fault func(Request) Fault
	// Latency is how long a request takes on its way there, and on its way back. It may be nil.
	Latency func() (there, back time.Duration)

	edition     Edition
	description *Description
	address     string
	start       time.Time

	mu         sync.Mutex
	ledger     []string
	violations []string
	counts     map[string]int
	writes     int
}

// Request is what a Fault is decided by.
type Request struct {
	Method, Path string
	Actor        string
	// Count says how many requests of that method had that path before, this one included.
	Count int
	World *World
}

// Fault is how a request fails.
type Fault struct {
	// Status, Header and Body are the answer; a status of 0 is the right answer, with these headers.
	Status int
	Header http.Header
	Body   string
	// Executed tells that the request is carried out all the same.
	Executed bool
	// Hang gives no answer at all. If Late is set, the request is carried out only so much later.
	Hang bool
	Late time.Duration
	// Before is done to the world before the request is looked at.
	Before func(*World)
	// Note is written into the ledger.
	Note string
}

// New makes a server that is reached at address, as in http://github.test. All times in the
// ledger count from now.
func New(edition Edition, address string, world *World) (*Server, error) {
	description, err := loaded[edition]()
	if err != nil {
		return nil, err
	}
	return &Server{
		World: world, Actors: map[string]Actor{}, edition: edition, description: description,
		address: address, start: time.Now(), counts: map[string]int{},
	}, nil
}

// Description is GitHub's description of its API.
func (s *Server) Description() *Description { return s.description }

// Ledger is what was asked, one line for each request, in the order of the answers.
func (s *Server) Ledger() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.ledger, "\n") + "\n"
}

// Requests and Writes count the requests, and those that were to change something.
func (s *Server) Requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ledger)
}

// Writes counts the requests that were to change something.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Violations are the requests and responses that are not as GitHub describes them.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// answer is a response under way.
type answer struct {
	status int
	header http.Header
	body   any
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var back time.Duration
	if s.Latency != nil {
		var there time.Duration
		there, back = s.Latency()
		time.Sleep(there)
	}
	status, header, body, fault := s.handle(request)
	if fault.Hang {
		<-request.Context().Done()
		return
	}
	time.Sleep(back)
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone away does not matter
}

func (s *Server) handle(request *http.Request) (int, http.Header, []byte, Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token := strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer ")
	actor, known := s.Actors[token]
	if request.Method != http.MethodGet {
		s.writes++
	}
	key := request.Method + " " + request.URL.Path
	s.counts[key]++
	var fault Fault
	if s.Fault != nil {
		fault = s.Fault(Request{Method: request.Method, Path: request.URL.Path, Actor: actor.Login, Count: s.counts[key], World: s.World})
	}
	if fault.Before != nil {
		fault.Before(s.World)
	}
	out := answer{status: http.StatusNotFound, body: problem("Not Found")}
	o, err := s.description.request(request)
	switch {
	case err != nil:
		s.violations = append(s.violations, err.Error())
	case token != "" && !known:
		out = answer{status: http.StatusUnauthorized, body: problem("Bad credentials")}
	case fault.Late > 0:
		time.AfterFunc(fault.Late, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.note(request, actor, o.summary(), s.execute(o, actor, known), Fault{Hang: true, Note: "late"})
		})
	case fault.Status == 0 || fault.Executed:
		out = s.execute(o, actor, known)
	}
	var summary string
	if o != nil {
		summary = o.summary()
	}
	body, header := []byte(nil), http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"4999"}, "X-Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}}
	maps.Copy(header, out.header)
	maps.Copy(header, fault.Header)
	if out.body != nil {
		header.Set("Content-Type", "application/json; charset=utf-8")
		body, err = json.Marshal(out.body)
		if err != nil {
			s.violations = append(s.violations, err.Error())
		}
	}
	if fault.Status != 0 {
		out.status, body = fault.Status, []byte(fault.Body)
		header = http.Header{"Content-Type": {"application/json; charset=utf-8"}}
		maps.Copy(header, fault.Header)
	}
	if o != nil && !fault.Hang { // nobody sees the answer
		if err := s.description.response(o, out.status, header, body); err != nil {
			s.violations = append(s.violations, fmt.Sprintf("the response to %s %s: %v", request.Method, request.URL.Path, err))
		}
	}
	s.note(request, actor, summary, out, fault)
	return out.status, header, body, fault
}

// note writes the request into the ledger.
func (s *Server) note(request *http.Request, actor Actor, summary string, out answer, fault Fault) {
	query := request.URL.Query()
	var parameters []string
	for _, name := range slices.Sorted(maps.Keys(query)) {
		parameters = append(parameters, name+"="+query.Get(name))
	}
	line := fmt.Sprintf("%+6ds %s: %s %s", int(time.Since(s.start)/time.Second), orAnonymous(actor.Login), request.Method, strings.TrimPrefix(request.URL.Path, s.edition.Base()))
	if len(parameters) > 0 {
		line += "?" + strings.Join(parameters, "&")
	}
	if summary != "" {
		line += " " + summary
	}
	line += " -> " + outcome(out, fault)
	s.ledger = append(s.ledger, line)
}

func orAnonymous(login string) string {
	if login == "" {
		return "anonymous"
	}
	return login
}

// outcome says what the client gets, and what happened.
func outcome(out answer, fault Fault) string {
	text := strconv.Itoa(out.status)
	if fault.Hang {
		text = "no answer"
	}
	switch body := out.body.(type) {
	case []any:
		text += fmt.Sprintf(" (%d)", len(body))
	case fields:
		if number, ok := body["number"]; ok && (fault.Status == 0 || fault.Executed) {
			text += fmt.Sprintf(" #%v", number)
		}
	}
	if fault.Late > 0 {
		return text
	}
	if fault.Executed || fault.Hang {
		text += ", carried out"
	}
	if fault.Note != "" {
		text += " (" + fault.Note + ")"
	}
	return text
}

// summary says in a few words what a body asks for.
func (o *operation) summary() string {
	var body struct {
		Title       string   `json:"title"`
		Name        string   `json:"name"`
		Body        string   `json:"body"`
		State       string   `json:"state"`
		StateReason string   `json:"state_reason"`
		Labels      []string `json:"labels"`
	}
	if json.Unmarshal(o.body, &body) != nil {
		return ""
	}
	var parts []string
	for _, part := range []string{body.Title, body.Name, body.State, body.StateReason} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if body.Body != "" {
		// Which marker is in the text tells more than the text does.
		if marker := marker.FindString(body.Body); marker != "" {
			parts = append(parts, marker)
		}
	}
	if len(body.Labels) > 0 {
		parts = append(parts, "["+strings.Join(body.Labels, " ")+"]")
	}
	if len(parts) == 0 {
		return ""
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

var marker = regexp.MustCompile(`<!-- .*? -->`)

func problem(message string) fields {
	return fields{"message": message, "documentation_url": "https://docs.github.com/rest"}
}

func invalid(field, code string) answer {
	return answer{status: http.StatusUnprocessableEntity, body: fields{
		"message": "Validation Failed", "documentation_url": "https://docs.github.com/rest",
		"errors": []any{fields{"resource": "Issue", "field": field, "code": code}},
	}}
}

// execute carries the request out.
func (s *Server) execute(o *operation, actor Actor, known bool) answer {
	w, path := s.World, o.input.PathParams
	repository := path["owner"] + "/" + path["repo"]
	reads := o.input.Route.Method == http.MethodGet
	operation := o.input.Route.Operation.OperationID
	ofRuntime := strings.HasPrefix(operation, "git/") || strings.HasPrefix(operation, "repos/")
	switch {
	case ofRuntime && repository != w.Runtime, !ofRuntime && repository != w.Proposals:
		return answer{status: http.StatusNotFound, body: problem("Not Found")}
	case !reads && !known:
		return answer{status: http.StatusUnauthorized, body: problem("Requires authentication")}
	}
	number, _ := strconv.Atoi(path["issue_number"])
	issue := w.Issue(number)
	if path["issue_number"] != "" && issue == nil {
		return answer{status: http.StatusGone, body: problem("This issue was deleted")}
	}
	switch operation {
	case "repos/list-releases":
		return s.listReleases(o, known && !actor.ReadOnly)
	case "git/get-ref":
		return s.getRef(path["ref"])
	case "git/get-tag":
		return s.getTag(path["tag_sha"])
	case "issues/list-labels-for-repo":
		var all []any
		for _, label := range w.Labels {
			all = append(all, s.label(label))
		}
		return s.page(o, all)
	case "issues/create-label":
		return s.createLabel(o, actor)
	case "issues/list-for-repo":
		return s.listIssues(o)
	case "issues/create":
		return s.createIssue(o, actor)
	case "issues/update":
		return s.updateIssue(o, issue, actor)
	case "issues/add-labels":
		return s.addLabels(o, issue, actor)
	case "issues/list-comments":
		var all []any
		for _, comment := range issue.Comments {
			all = append(all, s.comment(issue, comment))
		}
		return s.page(o, all)
	case "issues/create-comment":
		return s.createComment(o, issue, actor)
	case "issues/delete-comment":
		return s.deleteComment(path["comment_id"])
	}
	s.violations = append(s.violations, "the server does not know "+operation)
	return answer{status: http.StatusNotFound, body: problem("Not Found")}
}

// page cuts the page out of a list that the request asks for.
func (s *Server) page(o *operation, all []any) answer {
	query := o.input.Request.URL.Query()
	number := func(name string, fallback int) int {
		if n, err := strconv.Atoi(query.Get(name)); err == nil && n > 0 {
			return n
		}
		return fallback
	}
	size, page := min(number("per_page", 30), maxPerPage), number("page", 1)
	start, end := min((page-1)*size, len(all)), min(page*size, len(all))
	out := answer{status: http.StatusOK, header: http.Header{}, body: append([]any{}, all[start:end]...)}
	link := func(page int, relation string) string {
		address := url.URL{Path: o.input.Request.URL.Path}
		next := o.input.Request.URL.Query()
		next.Set("page", strconv.Itoa(page))
		address.RawQuery = next.Encode()
		return fmt.Sprintf("<%s%s>; rel=%q", s.address, address.String(), relation)
	}
	var links []string
	last := (len(all) + size - 1) / size
	if page < last {
		links = append(links, link(page+1, "next"), link(last, "last"))
	}
	if page > 1 {
		links = append(links, link(1, "first"), link(page-1, "prev"))
	}
	if len(links) > 0 {
		out.header.Set("Link", strings.Join(links, ", "))
	}
	return out
}

func (s *Server) listReleases(o *operation, drafts bool) answer {
	var all []any
	for _, release := range slices.Backward(s.World.Releases) {
		if !release.Draft || drafts {
			all = append(all, s.release(release))
		}
	}
	return s.page(o, all)
}

func (s *Server) tag(match func(*Release) bool) *Release {
	for _, release := range s.World.Releases {
		if !release.Untagged && match(release) {
			return release
		}
	}
	return nil
}

func (s *Server) getRef(ref string) answer {
	ref, _ = url.PathUnescape(ref)
	release := s.tag(func(r *Release) bool { return ref == "tags/"+r.Tag })
	if release == nil {
		return answer{status: http.StatusNotFound, body: problem("Not Found")}
	}
	api := s.repository(s.World.Runtime) + "/git"
	object := fields{"type": "commit", "sha": release.Commit(), "url": api + "/commits/" + release.Commit()}
	if release.Annotated {
		sha := hash("tag " + release.Tag)
		object = fields{"type": "tag", "sha": sha, "url": api + "/tags/" + sha}
	}
	return answer{status: http.StatusOK, body: fields{"ref": "refs/" + ref, "node_id": "REF_1", "url": api + "/refs/" + ref, "object": object}}
}

func (s *Server) getTag(sha string) answer {
	release := s.tag(func(r *Release) bool { return r.Annotated && hash("tag "+r.Tag) == sha })
	if release == nil {
		return answer{status: http.StatusNotFound, body: problem("Not Found")}
	}
	api := s.repository(s.World.Runtime) + "/git"
	return answer{status: http.StatusOK, body: fields{
		"node_id": "T_1", "tag": release.Tag, "sha": sha, "url": api + "/tags/" + sha, "message": release.Tag,
		"tagger": fields{"date": release.Created.Format(time.RFC3339), "email": "maintainer@example.com", "name": "Maintainer"},
		"object": fields{"type": "commit", "sha": release.Commit(), "url": api + "/commits/" + release.Commit()},
	}}
}

// decode reads a body that was checked already.
func decode[T any](o *operation) T {
	var body T
	_ = json.Unmarshal(o.body, &body)
	return body
}

func (s *Server) createLabel(o *operation, actor Actor) answer {
	body := decode[struct{ Name, Color, Description string }](o)
	switch {
	case actor.ReadOnly:
		return answer{status: http.StatusNotFound, body: problem("Not Found")}
	case s.World.Label(body.Name) != nil:
		return invalid("name", "already_exists")
	case utf8.RuneCountInString(body.Description) > maxDescription || strings.HasPrefix(body.Color, "#"):
		return invalid("description", "invalid")
	}
	label := s.World.AddLabel(body.Name, body.Description)
	label.Color = body.Color
	return answer{status: http.StatusCreated, body: s.label(label)}
}

func (s *Server) listIssues(o *operation) answer {
	query := o.input.Request.URL.Query()
	since, _ := time.Parse(time.RFC3339, query.Get("since"))
	var all []any
	for _, issue := range s.World.Issues {
		matches := query.Get("state") == "all" || (query.Get("state") == "closed") == issue.Closed
		for name := range strings.SplitSeq(query.Get("labels"), ",") {
			matches = matches && (name == "" || s.World.HasLabel(issue, name))
		}
		if matches && !issue.Updated.Before(since) {
			all = append(all, s.issue(issue))
		}
	}
	if query.Get("direction") != "asc" {
		slices.Reverse(all)
	}
	return s.page(o, all)
}

func (s *Server) createIssue(o *operation, actor Actor) answer {
	body := decode[struct {
		Title, Body string
		Labels      []string
	}](o)
	switch {
	case body.Title == "":
		return invalid("title", "missing_field")
	case utf8.RuneCountInString(body.Title) > maxTitle:
		return invalid("title", "too_long")
	case utf8.RuneCountInString(body.Body) > maxBody:
		return invalid("body", "too_long")
	}
	if actor.ReadOnly {
		body.Labels = nil
	}
	for _, name := range body.Labels {
		if s.World.Label(name) == nil {
			s.World.AddLabel(name, "")
		}
	}
	return answer{status: http.StatusCreated, body: s.issue(s.World.AddIssue(actor, body.Title, body.Body, body.Labels...))}
}

func (s *Server) updateIssue(o *operation, issue *Issue, actor Actor) answer {
	if actor.ReadOnly && issue.Author != actor {
		return answer{status: http.StatusForbidden, body: problem("Must have admin rights to Repository.")}
	}
	body := decode[struct {
		State       string `json:"state"`
		StateReason string `json:"state_reason"`
	}](o)
	if body.State == "closed" {
		issue.Closed, issue.StateReason, issue.Updated = true, body.StateReason, now()
	}
	return answer{status: http.StatusOK, body: s.issue(issue)}
}

func (s *Server) addLabels(o *operation, issue *Issue, actor Actor) answer {
	if actor.ReadOnly {
		return answer{status: http.StatusNotFound, body: problem("Not Found")}
	}
	for _, name := range decode[struct{ Labels []string }](o).Labels {
		if s.World.Label(name) == nil {
			s.World.AddLabel(name, "")
		}
		if !s.World.HasLabel(issue, name) {
			issue.Labels = append(issue.Labels, s.World.Label(name).ID)
		}
	}
	issue.Updated = now()
	all := []any{}
	for _, label := range s.World.Labels {
		if slices.Contains(issue.Labels, label.ID) {
			all = append(all, s.label(label))
		}
	}
	return answer{status: http.StatusOK, body: all}
}

func (s *Server) createComment(o *operation, issue *Issue, actor Actor) answer {
	body := decode[struct{ Body string }](o)
	if utf8.RuneCountInString(body.Body) > maxBody {
		return invalid("body", "too_long")
	}
	s.World.comments++
	comment := &Comment{ID: 5000 + s.World.comments, Body: body.Body, Author: actor, Created: now()}
	issue.Comments = append(issue.Comments, comment)
	issue.Updated = now()
	return answer{status: http.StatusCreated, body: s.comment(issue, comment)}
}

func (s *Server) deleteComment(id string) answer {
	for _, issue := range s.World.Issues {
		for i, comment := range issue.Comments {
			if strconv.FormatInt(comment.ID, 10) == id {
				issue.Comments = slices.Delete(issue.Comments, i, i+1)
				return answer{status: http.StatusNoContent}
			}
		}
	}
	return answer{status: http.StatusNotFound, body: problem("Not Found")}
}
