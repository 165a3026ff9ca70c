package github

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// limitError is GitHub's refusal to do a request now. The request was not carried out.
type limitError struct {
	// wait is how long GitHub says to wait; 0 if it does not say.
	wait      time.Duration
	secondary bool
}

func (e *limitError) Error() string {
	if e.secondary {
		return "GitHub's secondary rate limit is reached"
	}
	return "GitHub's rate limit is used up"
}

// transport authenticates requests, and turns refusals because of a rate limit into errors. The
// library must not see the limits: it would refuse further requests by itself, for as long as an
// hour, where GitHub asks for a minute.
type transport struct {
	base http.RoundTripper
	api  *url.URL
	// token is empty for requests without authentication.
	token string
}

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	// A redirect to somewhere else must not carry the token there.
	if t.token != "" && request.URL.Scheme == t.api.Scheme && request.URL.Host == t.api.Host {
		request = request.Clone(request.Context())
		request.Header.Set("Authorization", "Bearer "+t.token)
	}
	response, err := t.base.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	limit, err := limitOf(response)
	if limit != nil || err != nil {
		response.Body.Close()
		if err != nil {
			return nil, err
		}
		return nil, limit
	}
	for _, name := range []string{"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Retry-After"} {
		response.Header.Del(name)
	}
	return response, nil
}

// maxErrorBody bounds what is read of a refusal, in bytes.
const maxErrorBody = 64 << 10

// limitOf returns the limit that the response speaks of, or nil.
func limitOf(response *http.Response) (*limitError, error) {
	if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusTooManyRequests {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if err != nil {
		return nil, fmt.Errorf("read the refusal: %w", err)
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	var said struct {
		Message          string `json:"message"`
		DocumentationURL string `json:"documentation_url"`
	}
	// Not all refusals are JSON; the header tells as much then.
	_ = json.Unmarshal(body, &said)
	text := strings.ToLower(said.Message + " " + said.DocumentationURL)
	retryAfter := response.Header.Get("Retry-After")
	secondary := strings.Contains(text, "secondary rate limit") || strings.Contains(text, "secondary-rate-limits") || strings.Contains(text, "abuse")
	used := response.Header.Get("X-Ratelimit-Remaining") == "0"
	switch {
	case retryAfter != "":
		seconds, err := strconv.Atoi(retryAfter)
		if err != nil || seconds < 0 {
			return &limitError{secondary: true}, nil
		}
		return &limitError{wait: max(time.Duration(seconds)*time.Second, time.Second), secondary: !used}, nil
	case used && !secondary:
		return &limitError{wait: untilReset(response.Header)}, nil
	case secondary || response.StatusCode == http.StatusTooManyRequests:
		return &limitError{secondary: true}, nil
	default:
		return nil, nil
	}
}

// untilReset is the time until the limit is reset, by GitHub's own clock. A second is added,
// because the times are whole seconds.
func untilReset(header http.Header) time.Duration {
	reset, err := strconv.ParseInt(header.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(time.Unix(reset, 0).Sub(now), 0) + time.Second
}
