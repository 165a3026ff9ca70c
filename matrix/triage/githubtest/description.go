package githubtest

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

//go:embed description/*.json
var files embed.FS

// Edition is one of the GitHubs that there are.
type Edition string

// The editions.
const (
	// GitHubCom is github.com, whose API is at the root.
	GitHubCom Edition = "api.github.com.json"
	// EnterpriseServer is GitHub Enterprise Server, whose API is under /api/v3.
	EnterpriseServer Edition = "ghes-3.17.json"
)

// Base is the path of the API.
func (e Edition) Base() string {
	if e == EnterpriseServer {
		return "/api/v3"
	}
	return ""
}

// Description checks requests and responses against the published description.
type Description struct {
	document *openapi3.T
	router   routers.Router
}

// loaded are the descriptions, which take a while to check.
var loaded = map[Edition]func() (*Description, error){
	GitHubCom:        sync.OnceValues(func() (*Description, error) { return load(GitHubCom) }),
	EnterpriseServer: sync.OnceValues(func() (*Description, error) { return load(EnterpriseServer) }),
}

func load(edition Edition) (*Description, error) {
	content, err := files.ReadFile("description/" + string(edition))
	if err != nil {
		return nil, err
	}
	document, err := openapi3.NewLoader().LoadFromData(content)
	if err != nil {
		return nil, err
	}
	document.Servers = openapi3.Servers{{URL: "/" + strings.TrimPrefix(edition.Base(), "/")}}
	if err := document.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("the description %s is not valid: %w", edition, err)
	}
	router, err := gorillamux.NewRouter(document)
	if err != nil {
		return nil, err
	}
	return &Description{document: document, router: router}, nil
}

// operation is a request that the description knows.
type operation struct {
	input *openapi3filter.RequestValidationInput
	body  []byte
}

// request finds the operation of a request and checks it, strictly: what the description does not
// mention is wrong, too.
func (d *Description) request(request *http.Request) (*operation, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	checked := request.Clone(request.Context())
	checked.Body = io.NopCloser(bytes.NewReader(body))
	checked.URL = oneSegment(request.URL)
	route, parameters, err := d.router.FindRoute(checked)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", request.Method, request.URL.Path, err)
	}
	o := &operation{body: body, input: &openapi3filter.RequestValidationInput{
		Request: checked, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}}
	if err := openapi3filter.ValidateRequest(request.Context(), o.input); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, parameter := range route.Operation.Parameters {
		known[parameter.Value.In+" "+parameter.Value.Name] = true
	}
	for name := range request.URL.Query() {
		if !known["query "+name] {
			return nil, fmt.Errorf("%s %s: the parameter %q is not described", request.Method, route.Path, name)
		}
	}
	return o, o.checkFields()
}

// checkFields refuses fields of the body that no alternative of its schema has.
func (o *operation) checkFields() error {
	if len(o.body) == 0 {
		return nil
	}
	if o.input.Route.Operation.RequestBody == nil {
		return fmt.Errorf("%s %s: a body is not described", o.input.Route.Method, o.input.Route.Path)
	}
	var fields map[string]any
	if err := json.Unmarshal(o.body, &fields); err != nil {
		return fmt.Errorf("%s %s: the body is no object: %w", o.input.Route.Method, o.input.Route.Path, err)
	}
	schema := o.input.Route.Operation.RequestBody.Value.Content.Get("application/json").Schema.Value
	known := maps.Clone(schema.Properties)
	for _, alternative := range schema.OneOf {
		if known == nil {
			known = openapi3.Schemas{}
		}
		maps.Copy(known, alternative.Value.Properties)
	}
	for name := range fields {
		if known[name] == nil {
			return fmt.Errorf("%s %s: the field %q is not described", o.input.Route.Method, o.input.Route.Path, name)
		}
	}
	return nil
}

// oneSegment escapes the slashes in a git reference: the description allows them there, but no
// router does.
func oneSegment(address *url.URL) *url.URL {
	const before = "/git/ref/"
	out := *address
	if head, ref, found := strings.Cut(address.Path, before); found {
		out.RawPath = head + before + strings.ReplaceAll(ref, "/", "%2F")
	}
	return &out
}

// response checks a response to a request. Refusals that the description leaves out have the
// general form of an error.
func (d *Description) response(o *operation, status int, header http.Header, body []byte) error {
	if o.input.Route.Operation.Responses.Status(status) == nil && status >= http.StatusBadRequest {
		if status == http.StatusServiceUnavailable || status == http.StatusBadGateway {
			return nil // not from the API, but from what stands before it
		}
		return d.Check("basic-error", body)
	}
	return openapi3filter.ValidateResponse(o.input.Request.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: o.input, Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body)),
		Options: o.input.Options,
	})
}

// Check checks a JSON document against a schema of the description.
func (d *Description) Check(schema string, document []byte) error {
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return err
	}
	found := d.document.Components.Schemas[schema]
	if found == nil {
		return fmt.Errorf("the description has no schema %q, only %v", schema, slices.Sorted(maps.Keys(d.document.Components.Schemas)))
	}
	return found.Value.VisitJSON(value, openapi3.MultiErrors())
}
