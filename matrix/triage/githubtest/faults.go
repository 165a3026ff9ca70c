package githubtest

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// The failures that GitHub documents, and those that networks have.

// ServerError is a failure with nothing done, unless executed says so.
func ServerError(status int, executed bool) Fault {
	return Fault{Status: status, Body: `{"message":"Server Error"}`, Executed: executed, Note: "server error"}
}

// Timeout is a request that is carried out and never answered.
func Timeout() Fault { return Fault{Hang: true} }

// PrimaryLimit is the answer when the hourly limit is used up until it is reset.
func PrimaryLimit(status int, reset time.Duration) Fault {
	return Fault{
		Status: status, Note: fmt.Sprintf("limit for %s", reset),
		Header: http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(reset).Unix(), 10)}},
		Body:   `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/overview/resources-in-the-rest-api#rate-limiting"}`,
	}
}

// SecondaryLimit is the answer to too many requests at once. GitHub says how long to wait, or,
// if wait is 0, does not.
func SecondaryLimit(status int, wait time.Duration) Fault {
	f := Fault{
		Status: status, Note: "secondary limit",
		Header: http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"4321"}, "X-Ratelimit-Reset": {strconv.FormatInt(time.Now().Add(50*time.Minute).Unix(), 10)}},
		Body:   `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`,
	}
	if wait > 0 {
		f.Header.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
		f.Note = fmt.Sprintf("secondary limit, retry after %s", wait)
	}
	return f
}
