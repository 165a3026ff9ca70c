package check

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
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

// ServesImage sees that the runtime answers on all paths that are declared, and that every pod logged at
// its start that it runs the version of the tag; where no such line is declared, that it has the image.
func ServesImage(ctx context.Context, t Target, runtime, tag string) (Result, error) {
	var r Result
	for _, path := range t.Subject.Runtime.Paths {
		status, body, err := t.askRuntime(ctx, runtime, path)
		switch {
		case err != nil:
			return r, err
		case status == http.StatusOK:
			r.See("%s answers %d", path, status)
		default:
			r.Fail("%s answers %d: %s", path, status, body)
		}
	}
	workload, err := t.Subject.workload()
	if err != nil {
		return r, err
	}
	deployment := t.newChild(workload, runtime)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
		return r, fmt.Errorf("read the Deployment of runtime %s: %w", runtime, err)
	}
	var pods corev1.PodList
	if err := t.Client.List(ctx, &pods, client.InNamespace(t.Namespace), selectedBy(deployment)); err != nil {
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
	started := t.Subject.Runtime.Started
	if started == nil { // then the name of the image is all there is
		want := t.RuntimeRepository + ":" + tag
		if image := pod.Spec.Containers[0].Image; image != want {
			r.Fail("pod %s has image %s, %s is wanted", pod.Name, image, want)
		} else {
			r.See("pod %s has image %s", pod.Name, want)
		}
		return nil
	}
	log, err := t.Clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	version, found := startedVersion(log, *started)
	switch {
	case !found:
		r.Fail("pod %s logged no line with %s", pod.Name, compact(started.Line))
	case version != tag:
		r.Fail("pod %s runs version %s, its tag says %s", pod.Name, version, tag)
	default:
		r.See("pod %s started as version %s", pod.Name, version)
	}
	return nil
}

// startedVersion finds the version in the line that a runtime logs at its start.
func startedVersion(log []byte, started compat.StartLine) (version string, found bool) {
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, longestAnswer)
	for lines.Scan() {
		var line map[string]any
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		holds := true
		walk(started.Line, nil, func(path []string, want any) {
			got, _, _ := unstructured.NestedFieldNoCopy(line, path...)
			holds = holds && fmt.Sprint(got) == fmt.Sprint(want)
		})
		if holds {
			version, _ = line[started.Version].(string)
			return version, true
		}
	}
	return "", false
}
