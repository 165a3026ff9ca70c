package check

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Handover is the check that there is one operator, and that it is the new one.
var Handover = Check{
	ID:    "handover",
	Claim: "The Lease has a new holder, that holder is the one operator pod there is, and it never restarted.",
}

// AwaitHandover waits until the operator's old pods are gone and a new one holds the Lease, and
// judges Handover. image is the reference that the new pod must run.
func AwaitHandover(ctx context.Context, t Target, before *Snapshot, image string) (Result, error) {
	var r Result
	var now *Snapshot
	done, seen, err := t.eventually(ctx, readyTimeout, func(ctx context.Context) (bool, string, error) {
		var err error
		if now, err = Observe(ctx, t); err != nil {
			return false, "", err
		}
		problem := handoverProblem(before, now, image, t.Subject.Lease)
		return problem == "", problem, nil
	})
	if err != nil {
		return r, err
	}
	if !done {
		r.Fail("after %s: %s", readyTimeout, seen)
		return r, nil
	}
	pod := &now.OperatorPods[0]
	r.See("Lease %s went from %s to %s", t.Subject.Lease, holder(before.Lease), holder(now.Lease))
	r.See("%s is the only operator pod, Ready, image %s, %d restarts", pod.GetName(), image, restarts(pod))
	return r, nil
}

// handoverProblem says why the new operator has not taken over yet; empty if it has.
func handoverProblem(before, now *Snapshot, image, lease string) string {
	if len(now.OperatorPods) != 1 {
		return fmt.Sprintf("there are %d operator pods, 1 is wanted", len(now.OperatorPods))
	}
	pod := &now.OperatorPods[0]
	for i := range before.OperatorPods {
		if before.OperatorPods[i].GetUID() == pod.GetUID() {
			return fmt.Sprintf("the old pod %s is still there", pod.GetName())
		}
	}
	if got := podImage(pod); got != image {
		return fmt.Sprintf("pod %s runs %s, %s is wanted", pod.GetName(), got, image)
	}
	if status, reason := condition(pod, "Ready"); status != "True" {
		return fmt.Sprintf("pod %s is not Ready (%s): %s", pod.GetName(), reason, podState(pod))
	}
	if count := restarts(pod); count > 0 {
		return fmt.Sprintf("pod %s restarted %d times", pod.GetName(), count)
	}
	if now.Lease == nil {
		return fmt.Sprintf("there is no Lease %s", lease)
	}
	if held := holder(now.Lease); !strings.HasPrefix(held, pod.GetName()+"_") {
		return fmt.Sprintf("the Lease is held by %q, which is not pod %s", held, pod.GetName())
	}
	return ""
}

func holder(lease *unstructured.Unstructured) string {
	if lease == nil {
		return ""
	}
	identity, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
	return identity
}

func podImage(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	for _, c := range containers {
		if entry, ok := c.(map[string]any); ok {
			image, _, _ := unstructured.NestedString(entry, "image")
			return image
		}
	}
	return ""
}

// podState is the state of the containers of a pod, as far as it explains why it is not Ready.
func podState(pod *unstructured.Unstructured) string {
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, s := range statuses {
		if entry, ok := s.(map[string]any); ok {
			return compact(entry["state"])
		}
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	return "phase " + phase
}
