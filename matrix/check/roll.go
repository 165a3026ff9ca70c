package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The two checks of a runtime image change. The scenario of the same name proves the
// operator's side, ServesImage the runtime's.
var (
	RollForward = Check{
		ID:    "roll-forward",
		Claim: "A runtime image change is one upgrade: one Started and one Completed event, lastSuccessfulImage moves last, and the pods run and serve the new version.",
	}
	RollBack = Check{
		ID:    "roll-back",
		Claim: "Going back to the earlier runtime image is an upgrade like any other, and the pods run and serve the earlier version.",
	}
)

// startEvent is what the runtime logs at start (contract.md, section 7).
const startEvent = "runtime.configuration.loaded"

// ServesImage sees that the runtime answers on its health and capability endpoints, and that
// every pod logged at its start that it runs the version of the tag. The capability endpoint
// is there since 0.41.0, which is older than any runtime that the matrix rolls to.
func ServesImage(ctx context.Context, t Target, runtime, tag string) (Result, error) {
	var r Result
	for _, path := range []string{"/health/live", "/health/ready", "/v1/capabilities/availability"} {
		status, body, err := t.get(ctx, t.Namespace, "services", "http:"+runtime+":http", path)
		switch {
		case err != nil:
			return r, err
		case status == http.StatusOK:
			r.See("%s answers %d", path, status)
		default:
			r.Fail("%s answers %d: %s", path, status, body)
		}
	}
	var pods corev1.PodList
	if err := t.Client.List(ctx, &pods, client.InNamespace(t.Namespace), client.MatchingLabels{nameLabel: "trussium", instanceLabel: runtime}); err != nil {
		return r, fmt.Errorf("list the pods of runtime %s: %w", runtime, err)
	}
	if len(pods.Items) == 0 {
		r.Fail("runtime %s has no pods", runtime)
	}
	for i := range pods.Items {
		if err := r.startedAs(ctx, t, &pods.Items[i], tag); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (r *Result) startedAs(ctx context.Context, t Target, pod *corev1.Pod, tag string) error {
	if pod.DeletionTimestamp != nil {
		return nil // an old pod that still drains
	}
	log, err := t.Clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	version, found := startedVersion(log)
	switch {
	case !found:
		r.Fail("pod %s logged no event %s", pod.Name, startEvent)
	case version != tag:
		r.Fail("pod %s runs version %s, its tag says %s", pod.Name, version, tag)
	default:
		r.See("pod %s started as version %s", pod.Name, version)
	}
	return nil
}

// startedVersion finds the runtime_version of the start event in a log of JSON lines.
func startedVersion(log []byte) (version string, found bool) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	for lines.Scan() {
		var line struct {
			Event   string `json:"event"`
			Version string `json:"runtime_version"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Event == startEvent {
			return line.Version, true
		}
	}
	return "", false
}
