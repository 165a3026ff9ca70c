package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
)

// readiness knows whether every cache has synced, and why one has not.
type readiness struct {
	log logr.Logger

	mu      sync.Mutex
	synced  map[schema.GroupResource]func() bool
	trouble map[schema.GroupResource]string
}

func newReadiness(log logr.Logger) *readiness {
	return &readiness{
		log:     log,
		synced:  map[schema.GroupResource]func() bool{},
		trouble: map[schema.GroupResource]string{},
	}
}

// expect adds a cache that must have synced. synced reports whether it has.
func (r *readiness) expect(resource schema.GroupResource, synced func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.synced[resource] = synced
}

// watchFailed is called by the caches for every list or watch that fails. The
// caches try again by themselves, with growing delays.
func (r *readiness) watchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	resource, verb := deniedRight(err)
	r.log.Error(err, "the operator's role lacks a right; it stays unready until the right is granted",
		"resource", resource.String(), "verb", verb)

	r.mu.Lock()
	defer r.mu.Unlock()
	r.trouble[resource] = verb + " forbidden"
}

// deniedVerb finds the verb in the API server's answer, which has no field for it.
var deniedVerb = regexp.MustCompile(`cannot (\w+) resource`)

// deniedRight is what a "forbidden" answer to a cache denies.
func deniedRight(err error) (schema.GroupResource, string) {
	verb := "list"
	if match := deniedVerb.FindStringSubmatch(err.Error()); match != nil {
		verb = match[1]
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Details != nil {
		details := answer.Status().Details
		return schema.GroupResource{Group: details.Group, Resource: details.Kind}, verb
	}
	return schema.GroupResource{Resource: "unknown"}, verb
}

// unsynced has one line for every cache that has not synced, sorted.
func (r *readiness) unsynced() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for resource, synced := range r.synced {
		if synced() {
			continue
		}
		trouble := r.trouble[resource]
		if trouble == "" {
			trouble = "not synced yet"
		}
		lines = append(lines, fmt.Sprintf("%s: %s", resource, trouble))
	}
	slices.Sort(lines)
	return lines
}

// ServeHTTP answers the readiness probe: 200 once every cache has synced, else
// 503 with the kinds that are missing and why.
func (r *readiness) ServeHTTP(response http.ResponseWriter, _ *http.Request) {
	response.Header().Set("Content-Type", "text/plain; charset=utf-8")
	lines := r.unsynced()
	if len(lines) > 0 {
		response.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintln(response, strings.Join(lines, "\n"))
		return
	}
	fmt.Fprintln(response, "ok")
}
