package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// WorkloadUntouched is the check that an operator change leaves running pods alone.
var WorkloadUntouched = Check{
	ID:    "workload-untouched",
	Claim: "No runtime was rolled: Deployment generation, pod template, ReplicaSets, pods and restart counts are what they were.",
}

// CompareWorkload judges WorkloadUntouched.
func CompareWorkload(before, after *Snapshot) Result {
	var r Result
	deployments := 0
	for _, p := range pairs(ofKind(before.Children, kindDeployment), ofKind(after.Children, kindDeployment)) {
		if !r.same(p) {
			continue
		}
		deployments++
		if p.before.GetGeneration() != p.after.GetGeneration() {
			r.Fail("%s: generation %d before, %d after", p.name, p.before.GetGeneration(), p.after.GetGeneration())
		}
		r.unchanged(p, "spec", "template")
	}
	for _, p := range pairs(before.ReplicaSets, after.ReplicaSets) {
		if r.same(p) {
			r.unchanged(p, "spec", "replicas")
		}
	}
	for _, p := range pairs(before.Pods, after.Pods) {
		if !r.same(p) {
			continue
		}
		if p.after.GetDeletionTimestamp() != nil {
			r.Fail("%s is being deleted", p.name)
		}
		if b, a := restarts(p.before), restarts(p.after); a != b {
			r.Fail("%s: %d restarts before, %d after", p.name, b, a)
		}
	}
	if deployments > 0 && len(before.Pods) > 0 && len(r.Failures) == 0 {
		r.See("%d Deployments, %d ReplicaSets and %d pods with the UIDs, generations, templates and restart counts they had", deployments, len(before.ReplicaSets), len(before.Pods))
	}
	return r
}

func ofKind(objects []unstructured.Unstructured, kind string) []unstructured.Unstructured {
	var out []unstructured.Unstructured
	for _, o := range objects {
		if o.GetKind() == kind {
			out = append(out, o)
		}
	}
	return out
}

// restarts is the sum of the restart counts of a pod's containers.
func restarts(pod *unstructured.Unstructured) int64 {
	var sum int64
	statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", "containerStatuses")
	for _, s := range statuses {
		if entry, ok := s.(map[string]any); ok {
			count, _, _ := unstructured.NestedInt64(entry, "restartCount")
			sum += count
		}
	}
	return sum
}
