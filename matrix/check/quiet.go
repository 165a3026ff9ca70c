package check

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Quiet is the check that an operator with nothing to do does nothing.
var Quiet = Check{
	ID:    "quiet",
	Claim: "For 30 s after settling no resourceVersion of a runtime or of its objects moves, and the API server gets no write for any of their kinds.",
}

// QuietPeriod is how long nothing may happen.
const QuietPeriod = 30 * time.Second

// settlePeriod is how long nothing must have happened before the period begins.
const settlePeriod = 2 * time.Second

// AwaitQuiet waits until the target is at rest, then judges Quiet over the period.
func AwaitQuiet(ctx context.Context, t Target, period time.Duration) (Result, error) {
	var r Result
	rested, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		moves, err := t.moves(ctx, settlePeriod)
		return len(moves) == 0, strings.Join(moves, "; "), err
	})
	if err != nil {
		return r, err
	}
	if !rested {
		r.Fail("no rest within %s: %s", goneTimeout, seen)
		return r, nil
	}
	moves, err := t.moves(ctx, period)
	if err != nil {
		return r, err
	}
	for _, move := range moves {
		r.Fail("within %s: %s", period, move)
	}
	r.See("%s without a write to %d runtimes and their objects, nor to any object of their kinds", period, len(t.Runtimes))
	return r, nil
}

// moves lists what changed and what was written within the period.
func (t Target) moves(ctx context.Context, period time.Duration) ([]string, error) {
	before, err := Observe(ctx, t)
	if err != nil {
		return nil, err
	}
	writesBefore, err := t.writes(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, period); err != nil {
		return nil, err
	}
	writesAfter, err := t.writes(ctx)
	if err != nil {
		return nil, err
	}
	after, err := Observe(ctx, t)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, side := range []struct{ before, after []unstructured.Unstructured }{
		{before.Runtimes, after.Runtimes}, {before.Children, after.Children}, {before.Pods, after.Pods}, {before.ReplicaSets, after.ReplicaSets}, {before.Events, after.Events},
	} {
		for _, p := range pairs(side.before, side.after) {
			if p.before == nil || p.after == nil || p.before.GetResourceVersion() != p.after.GetResourceVersion() {
				out = append(out, p.name+" changed")
			}
		}
	}
	var written []string
	for what, count := range writesAfter {
		if count > writesBefore[what] {
			written = append(written, fmt.Sprintf("%d requests: %s", count-writesBefore[what], what))
		}
	}
	sort.Strings(written)
	return append(out, written...), nil
}

// writes counts, from the API server's own metrics, the write requests it got for the kinds that
// the operator writes. A write that changes nothing moves no resourceVersion but is counted.
func (t Target) writes(ctx context.Context) (map[string]int, error) {
	content, err := t.Clientset.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	family := families["apiserver_request_total"]
	if family == nil {
		return nil, fmt.Errorf("the API server has no metric apiserver_request_total")
	}
	watched := map[string]bool{t.Subject.Kind.Group + "/" + t.Subject.Plural: true, "events.k8s.io/events": true}
	for _, kind := range t.Subject.managed {
		watched[kind.gvk.Group+"/"+kind.resource] = true
	}
	counts := map[string]int{}
	for _, metric := range family.GetMetric() {
		labels := labelMap(metric)
		switch labels["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
		default:
			continue
		}
		// Creating a token or a dry run writes nothing.
		if !watched[labels["group"]+"/"+labels["resource"]] || labels["dry_run"] != "" || labels["subresource"] == "token" {
			continue
		}
		what := strings.TrimSuffix(fmt.Sprintf("%s %s/%s", labels["verb"], labels["resource"], labels["subresource"]), "/")
		counts[what] += int(metric.GetCounter().GetValue())
	}
	return counts, nil
}

func labelMap(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
