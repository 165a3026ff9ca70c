package controller_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// holdBack is how long a held watch is late: longer than what the operator does in one go.
const holdBack = 300 * time.Millisecond

// write is one write request of an operator.
type write struct {
	verb, resource string
	// created says that an object came into being.
	created bool
	// refused says that the API server answered with a conflict.
	refused bool
}

func (w write) String() string { return w.verb + " " + w.resource }

func (w write) isEvent() bool { return w.resource == "events" }

func (w write) isStatus() bool { return w.resource == "trussiumruntimes/status" }

// fault is what becomes of one write request.
type fault struct {
	name string
	// carriedOut says that the request reaches the API server.
	carriedOut bool
	// fatal says that the operator gets nothing through from then on.
	fatal bool
	// answer is what the operator gets.
	answer func(*http.Request) (*http.Response, error)
}

var errDead = errors.New("the operator is dead")

var (
	crash = fault{name: "crash", carriedOut: true, fatal: true, answer: func(*http.Request) (*http.Response, error) {
		return nil, errDead
	}}
	conflict = fault{name: "conflict", answer: refusal(apierrors.NewConflict(schema.GroupResource{}, "", errors.New("injected")))}
	overload = fault{name: "too many requests", answer: refusal(apierrors.NewTooManyRequests("injected", 1))}
	internal = fault{name: "internal error", answer: refusal(apierrors.NewInternalError(errors.New("injected")))}
	lost     = fault{name: "lost response", carriedOut: true, answer: func(*http.Request) (*http.Response, error) {
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	}}
)

// refusal answers as the API server does.
func refusal(failure *apierrors.StatusError) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		body, err := json.Marshal(failure.ErrStatus)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"application/json"}}
		if apierrors.IsTooManyRequests(failure) {
			header.Set("Retry-After", "1")
		}
		return &http.Response{
			StatusCode: int(failure.ErrStatus.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: request,
		}, nil
	}
}

// wire is what the requests of an operator go through, and of its successors in the
// same namespace. It keeps the writes and can disturb them.
type wire struct {
	namespace string

	mu     sync.Mutex
	writes []write
	// last is when a request or a part of a watch came through; open are those that are
	// under way.
	last time.Time
	open int
	// fault strikes the occurrence-th write that is called target; met have been met.
	fault           *fault
	target          string
	occurrence, met int
	struck          bool
	// held is the resource of which the operator learns late, by delay.
	held  string
	delay time.Duration
	dead  bool
}

// connect is the way of one operator to the API server.
func (w *wire) connect(next http.RoundTripper) http.RoundTripper {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead, w.last = false, time.Now()
	cut := false // this operator's; the successor has its own
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		w.mu.Lock()
		isDead := cut
		current, isWrite := w.parse(request)
		var strikes *fault
		if isWrite && !isDead {
			w.last = time.Now()
			w.writes = append(w.writes, current)
			w.open++
			defer w.close()
			if w.fault != nil && current.String() == w.target {
				if w.met++; w.met == w.occurrence {
					strikes = w.fault
				}
			}
		}
		number := len(w.writes) - 1
		w.struck = w.struck || strikes != nil && !strikes.carriedOut
		w.mu.Unlock()

		switch {
		case isDead:
			return nil, errDead
		case strikes != nil && !strikes.carriedOut:
			return strikes.answer(request)
		}
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = time.Now()
		if isWrite {
			w.writes[number].created = response.StatusCode == http.StatusCreated
			w.writes[number].refused = response.StatusCode == http.StatusConflict
		}
		if strikes != nil && response.StatusCode == http.StatusConflict {
			// It was sent in vain, from an old view, and will be sent again.
			w.met--
			strikes = nil
		}
		if strikes != nil {
			_ = response.Body.Close()
			w.struck, cut, w.dead = true, strikes.fatal, strikes.fatal
			return strikes.answer(request)
		}
		if request.URL.Query().Has("watch") {
			response.Body = &watchBody{ReadCloser: response.Body, wire: w, resource: path.Base(request.URL.Path)}
		}
		return response, nil
	})
}

// parse tells what a request writes.
func (w *wire) parse(request *http.Request) (write, bool) {
	_, rest, found := strings.Cut(request.URL.Path, "/namespaces/"+w.namespace+"/")
	if !found {
		return write{}, false
	}
	parts := strings.Split(rest, "/")
	result := write{resource: parts[0]}
	if len(parts) == 3 {
		result.resource += "/" + parts[2]
	}
	switch request.Method {
	case http.MethodPost:
		result.verb = "create"
	case http.MethodPut:
		result.verb = "update"
	case http.MethodDelete:
		result.verb = "delete"
	case http.MethodPatch:
		result.verb = "patch"
		if strings.Contains(request.Header.Get("Content-Type"), "apply-patch") {
			result.verb = "apply"
		}
	default:
		return write{}, false
	}
	return result, true
}

// watchBody notes what comes through a watch, and holds back what is held.
type watchBody struct {
	io.ReadCloser
	wire     *wire
	resource string
}

func (b *watchBody) Read(buffer []byte) (int, error) {
	count, err := b.ReadCloser.Read(buffer)
	b.wire.mu.Lock()
	delay := time.Duration(0)
	if b.wire.held == b.resource {
		delay = b.wire.delay
	}
	b.wire.open++
	b.wire.mu.Unlock()
	defer b.wire.close()
	time.Sleep(delay)
	return count, err
}

// arm makes the fault strike the occurrence-th write that is called target from now on.
func (w *wire) arm(fault *fault, target string, occurrence int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault, w.target, w.occurrence, w.met = fault, target, occurrence, 0
}

// forget starts a new list of writes.
func (w *wire) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = nil
}

// hold makes the operator learn of the resource late from now on.
func (w *wire) hold(resource string, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.delay = resource, delay
}

// written are the writes of the list. A status write from a view that is older than the
// last one is refused, and left out: how often that happens depends on the load.
func (w *wire) written() []write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.writes), func(write write) bool { return write.isStatus() && write.refused })
}

// inVain is the number of status writes that were refused.
func (w *wire) inVain() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(w.writes), func(write write) bool { return !write.isStatus() || !write.refused }))
}

func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
	w.last = time.Now()
}

// look tells how long nothing came through, whether the operator has died, and whether
// the fault has struck.
func (w *wire) look() (silence time.Duration, dead, struck bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == 0 {
		silence = time.Since(w.last)
	}
	return silence, w.dead, w.struck
}
