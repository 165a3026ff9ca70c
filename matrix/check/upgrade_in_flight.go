package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
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
	fill := compat.Placeholders{Repository: t.RuntimeRepository, Tag: tag}
	if err := t.patchRuntime(ctx, t.Runtimes[0], fill.Render(compat.Parts(t.Subject.Resource.Spec, compat.ImagePlaceholders))); err != nil {
		return r, err
	}
	want := t.RuntimeRepository + ":" + tag
	done, seen, err := t.eventually(ctx, repairTimeout, func(ctx context.Context) (bool, string, error) {
		snapshot, err := Observe(ctx, t)
		if err != nil {
			return false, "", err
		}
		for _, deployment := range ofKind(snapshot.Children, kindDeployment) {
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
	report := t.Subject.Resource.Upgrade
	if report == nil {
		return r, fmt.Errorf("%w: the compatibility file does not declare by operator.resource.upgrade how the operator tells of an image change", ErrNotApplicable)
	}
	name, want := t.Runtimes[0], t.RuntimeRepository+":"+tag
	done, seen, err := t.eventually(ctx, readyTimeout, func(ctx context.Context) (bool, string, error) {
		object := t.newRuntime(name)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, "", err
		}
		image, _, _ := unstructured.NestedString(object.Object, "status", report.Image)
		ready, told := settled(object)
		return ready && image == want, fmt.Sprintf("%s %q; %s", report.Image, image, told), nil
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
	r.Add(judgeInFlight(*report, before, after, began))
	return r, nil
}

func judgeInFlight(report compat.UpgradeReport, before, after *Snapshot, began time.Time) Result {
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
		case report.Started, report.Completed, report.Failed:
			told = append(told, reason)
		default:
			continue
		}
		if at := timeAt(p.after, "eventTime"); reason == report.Completed && at.Before(taken) {
			r.Fail("the image was complete %s before the new operator led: nothing was in flight", taken.Sub(at).Round(time.Millisecond))
		}
	}
	slices.Sort(told)
	want := []string{report.Completed, report.Started}
	slices.Sort(want)
	if !slices.Equal(told, want) {
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

// SetReplicas gives the target's first runtime that many pods, and waits until they are Ready. The
// features that hold the count, as an autoscaler's bounds do, follow.
func SetReplicas(ctx context.Context, t Target, count int) (Result, error) {
	name := t.Runtimes[0]
	object := t.newRuntime(name)
	if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return Result{}, fmt.Errorf("read %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, name, err)
	}
	parts, _ := compat.Parts(t.Subject.Resource.Spec, compat.ReplicasPlaceholders).(map[string]any)
	if parts == nil {
		return Result{Seen: []string{"the compatibility file declares no field of the spec for the count of pods"}}, nil
	}
	for _, feature := range t.Subject.Resource.Features {
		if part := compat.Parts(feature.Value, compat.ReplicasPlaceholders); part != nil && asksFor(object, feature.Field) {
			parts[feature.Field] = part
		}
	}
	if err := t.patchRuntime(ctx, name, compat.Placeholders{Replicas: count}.Render(parts)); err != nil {
		return Result{}, err
	}
	return AwaitReady(ctx, t, name)
}
