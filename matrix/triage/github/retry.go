package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	gogithub "github.com/google/go-github/v62/github"

	"github.com/trussiumhq/trussium-operator/matrix/triage"
)

const (
	// maxTries bounds how often one request is sent.
	maxTries = 8
	// firstPause is the pause after a failure, which doubles with each further one.
	firstPause = time.Second
	// guess is how long to wait where GitHub does not say; it doubles, too.
	guess = time.Minute
	// writePause lies between requests that change something, as GitHub asks for.
	writePause = time.Second
)

// ErrLimited says that GitHub's rate limit lasts longer than a run waits.
var ErrLimited = errors.New("run the same command again after that; what was done stays")

// attempt sends a request until it succeeds, is refused for good, or has taken too long. After a
// failure that leaves open whether the request was carried out, landed is asked before it is sent
// again; landed may be nil if sending it twice does no harm.
func attempt[T any](ctx context.Context, c *Client, doing string, landed func(context.Context) (T, bool, error), send func(context.Context) (T, error)) (T, error) {
	doubt := false
	guesses := 0
	pauses := &backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: guess, RandomizationFactor: c.jitter}
	value, err := backoff.Retry(ctx, func() (T, error) {
		if doubt && landed != nil {
			value, found, err := landed(ctx)
			if err != nil || found {
				return value, permanent(err)
			}
		}
		value, err := once(ctx, send)
		var limit *limitError
		switch {
		case err == nil:
			return value, nil
		case errors.As(err, &limit):
			if limit.wait == 0 {
				limit.wait = guess << guesses
				guesses++
			}
			return value, &laterError{limit, &backoff.RetryAfterError{Duration: limit.wait}}
		case ctx.Err() != nil || !passing(err):
			return value, backoff.Permanent(err)
		default:
			doubt = true
			return value, err
		}
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(maxTries), backoff.WithMaxElapsedTime(c.maxWait), backoff.WithNotify(func(err error, pause time.Duration) {
		c.progress(c.hide(fmt.Sprintf("%s: %v: again in %s", doing, err, pause.Round(time.Second))))
	}))
	return value, c.explain(ctx, doing, err)
}

// once sends a request once.
func once[T any](ctx context.Context, send func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return send(ctx)
}

func permanent(err error) error {
	if err == nil {
		return nil
	}
	return backoff.Permanent(err)
}

// laterError is a limit together with the time after which to try again.
type laterError struct {
	*limitError
	after *backoff.RetryAfterError
}

func (e *laterError) Unwrap() []error { return []error{e.limitError, e.after} }

// passing tells whether the failure may be gone the next time.
func passing(err error) bool {
	var answer *gogithub.ErrorResponse
	if errors.As(err, &answer) {
		code := answer.Response.StatusCode
		return code >= http.StatusInternalServerError || code == http.StatusRequestTimeout
	}
	// What is no answer is a broken connection or a time that is over.
	return true
}

// status is the status of GitHub's answer, or 0.
func status(err error) int {
	var answer *gogithub.ErrorResponse
	if errors.As(err, &answer) {
		return answer.Response.StatusCode
	}
	return 0
}

// explain says what was being done, and what to do next.
func (c *Client) explain(ctx context.Context, doing string, err error) error {
	var limit *limitError
	switch code := status(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	case errors.As(err, &limit):
		until := time.Now().Add(limit.wait).UTC().Format("2006-01-02 15:04:05 UTC")
		advice := ""
		if c.token == "" {
			advice = " (with a token in GITHUB_TOKEN it is much higher)"
		}
		return fmt.Errorf("%s: %w until %s%s, and a run waits %s at most: %w", doing, limit, until, advice, c.maxWait, ErrLimited)
	case code == http.StatusUnprocessableEntity:
		return c.hidden(fmt.Errorf("%s: %w (%w)", doing, triage.ErrRefused, err))
	case code == http.StatusUnauthorized:
		return c.hidden(fmt.Errorf("%s: GitHub refuses the token (%w): check GITHUB_TOKEN", doing, err))
	case code == http.StatusForbidden:
		return c.hidden(fmt.Errorf("%s: GitHub does not allow it (%w): the token needs the permissions contents: read on the runtime's repository and issues: write on that of the proposals", doing, err))
	case code >= http.StatusMultipleChoices && code < http.StatusBadRequest:
		return c.hidden(fmt.Errorf("%s: it has moved (%w): give the new name of the repository", doing, err))
	default:
		return c.hidden(fmt.Errorf("%s: %w", doing, err))
	}
}

// gone marks the error of a request about an issue that is not there any more.
func gone(err error) error {
	switch status(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusMovedPermanently:
		return fmt.Errorf("%w: %w", triage.ErrGone, err)
	}
	return err
}

// hide takes the token out of a text, in case that a server sent it back.
func (c *Client) hide(text string) string {
	if c.token == "" {
		return text
	}
	return strings.ReplaceAll(text, c.token, "***")
}

func (c *Client) hidden(err error) error { return &hiddenError{err, c.hide(err.Error())} }

// hiddenError is an error whose text was searched for the token.
type hiddenError struct {
	error
	text string
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.error }
