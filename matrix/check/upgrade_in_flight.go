package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The two checks of an operator that is upgraded a second time, after a rollback.
var (
	ForwardAgain = Check{
		ID:    "forward-again",
		Claim: "After the rollback the chart can be upgraded again, and the new operator takes over as it did the first time.",
	}
	UpgradeInFlight = Check{
		ID:    "upgrade-in-flight",
		Claim: "A runtime image that was rolling while the operator was replaced is one upgrade: one Started and one Completed event, and the new image is recorded.",
	}
)

// StartRoll changes the image of the target's first runtime, and waits until the operator has
// given it to the Deployment: from then on it rolls whether or not an operator runs.
func StartRoll(ctx context.Context, t Target, tag string) (Result, error) {
	var r Result
	name := t.Runtimes[0]
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"image":{"tag":%q}}}`, tag))
	if err := t.Client.Patch(ctx, t.newRuntime(name), patch); err != nil {
		return r, fmt.Errorf("change the image of TrussiumRuntime %s/%s: %w", t.Namespace, name, err)
	}
	want := t.RuntimeRepository + ":" + tag
	done, seen, err := t.eventually(ctx, repairTimeout, func(ctx context.Context) (bool, string, error) {
		snapshot, err := Observe(ctx, t)
		if err != nil {
			return false, "", err
		}
		for _, deployment := range ofKind(snapshot.Children, "Deployment") {
			if image := templateImage(&deployment); image != want {
				return false, fmt.Sprintf("the Deployment has image %s", image), nil
			}
		}
		return true, "", nil
	})
	if err == nil && !done {
		r.Fail("the Deployment did not get image %s within %s: %s", want, repairTimeout, seen)
	}
	r.See("the Deployment has image %s", want)
	return r, err
}

func templateImage(deployment *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	for _, container := range containers {
		if entry, ok := container.(map[string]any); ok {
			image, _ := entry["image"].(string)
			return image
		}
	}
	return ""
}

// AwaitInFlight waits for the end of a roll that had begun at began, after the snapshot before,
// and judges UpgradeInFlight. An operator that took over before or after the roll proves nothing.
func AwaitInFlight(ctx context.Context, t Target, before *Snapshot, began time.Time, tag string) (Result, error) {
	var r Result
	name, want := t.Runtimes[0], t.RuntimeRepository+":"+tag
	done, seen, err := t.eventually(ctx, readyTimeout, func(ctx context.Context) (bool, string, error) {
		object := t.newRuntime(name)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, "", err
		}
		image, _, _ := unstructured.NestedString(object.Object, "status", "lastSuccessfulImage")
		ready, told := settled(object)
		return ready && image == want, fmt.Sprintf("lastSuccessfulImage %q; %s", image, told), nil
	})
	if err != nil {
		return r, err
	}
	if !done {
		r.Fail("the roll to %s did not end within %s: %s", want, readyTimeout, seen)
		return r, nil
	}
	after, err := Observe(ctx, t)
	if err != nil {
		return r, err
	}
	r.Add(judgeInFlight(before, after, began))
	return r, nil
}

func judgeInFlight(before, after *Snapshot, began time.Time) Result {
	var r Result
	taken := after.LeaseTaken()
	if taken.Before(began) {
		r.Fail("the new operator led %s before the roll had begun: nothing was in flight", began.Sub(taken).Round(time.Millisecond))
	}
	var told []string
	for _, p := range pairs(before.Events, after.Events) {
		reason := ""
		if p.before == nil {
			reason, _, _ = unstructured.NestedString(p.after.Object, "reason")
		}
		switch reason {
		case "RuntimeUpgradeStarted", "RuntimeUpgradeCompleted", "RuntimeUpgradeFailed":
			told = append(told, reason)
		default:
			continue
		}
		if at := timeAt(p.after, "eventTime"); reason == "RuntimeUpgradeCompleted" && at.Before(taken) {
			r.Fail("the image was complete %s before the new operator led: nothing was in flight", taken.Sub(at).Round(time.Millisecond))
		}
	}
	slices.Sort(told)
	if want := []string{"RuntimeUpgradeCompleted", "RuntimeUpgradeStarted"}; !slices.Equal(told, want) {
		r.Fail("the upgrade events are %q, want one Started and one Completed", told)
	}
	r.See("the new operator led since %s; the upgrade events: %q", taken.Format(time.TimeOnly), told)
	return r
}

// timeAt is the zero time where there is none.
func timeAt(object *unstructured.Unstructured, path ...string) time.Time {
	text, _, _ := unstructured.NestedString(object.Object, path...)
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

// SetReplicas gives the target's first runtime that many pods, and waits until they are Ready.
func SetReplicas(ctx context.Context, t Target, count int) (Result, error) {
	name := t.Runtimes[0]
	object := t.newRuntime(name)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return Result{}, fmt.Errorf("read TrussiumRuntime %s/%s: %w", t.Namespace, name, err)
	}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, count)
	if isAutoscaled(object) { // its autoscaler decides above the fewest
		patch = fmt.Sprintf(`{"spec":{"replicas":%d,"autoscaling":{"minReplicas":%d,"maxReplicas":%d}}}`, count, count, count+2)
	}
	if err := t.Client.Patch(ctx, t.newRuntime(name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return Result{}, fmt.Errorf("scale TrussiumRuntime %s/%s to %d: %w", t.Namespace, name, count, err)
	}
	return AwaitReady(ctx, t, name)
}

func isAutoscaled(runtime *unstructured.Unstructured) bool {
	return slices.ContainsFunc(kindsOf(runtime), func(kind managedKind) bool { return kind.askedFor == fieldAutoscaling })
}
