package check

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangedWhileDown is the check that an operator catches up with what it missed.
var ChangedWhileDown = Check{
	ID:    "changed-while-down",
	Claim: "A change of the spec made while no operator ran was carried out when the operator was back, without a nudge.",
}

// unattended is how long the change is left alone, to see that nobody else carries it out.
const unattended = 2 * time.Second

// JudgeChangedWhileDown stops the operator, makes the declared change that touches no pod to the
// first runtime, starts the operator again and judges ChangedWhileDown. Both are as before afterwards.
func JudgeChangedWhileDown(ctx context.Context, t Target) (result Result, err error) {
	change, err := t.gentleChange(ctx)
	if err != nil {
		return result, err
	}
	deployment, err := t.operatorDeployment(ctx)
	if err != nil {
		return result, err
	}
	scale := func(ctx context.Context, replicas int32) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
		if err := t.Client.Patch(ctx, deployment.DeepCopy(), patch); err != nil {
			return fmt.Errorf("scale the operator to %d: %w", replicas, err)
		}
		return nil
	}
	running := *deployment.Spec.Replicas
	if err := scale(ctx, 0); err != nil {
		return result, err
	}
	stopped := true
	defer func() {
		if stopped {
			err = errors.Join(err, scale(context.WithoutCancel(ctx), running))
		}
	}()
	gone, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		snapshot, err := Observe(ctx, t)
		if err != nil {
			return false, "", err
		}
		return len(snapshot.OperatorPods) == 0, fmt.Sprintf("%d operator pods", len(snapshot.OperatorPods)), nil
	})
	if err != nil || !gone {
		return result, errors.Join(err, fmt.Errorf("the operator did not stop: %s", seen))
	}

	if err := t.patchRuntime(ctx, t.Runtimes[0], change.forth); err != nil {
		return result, err
	}
	if err := pause(ctx, unattended); err != nil {
		return result, err
	}
	done, seen, err := t.carriedOut(ctx, change.kind, change.shows)
	if err != nil {
		return result, err
	}
	if done {
		result.Fail("the change was carried out while no operator ran: %s", seen)
	}
	result.See("without an operator for %s: %s", unattended, seen)

	stopped = false
	if err := scale(ctx, running); err != nil {
		return result, err
	}
	for _, wanted := range []map[string]any{change.shows, change.showed} {
		if reflect.DeepEqual(wanted, change.showed) { // back to what it was, with an operator
			if err := t.patchRuntime(ctx, t.Runtimes[0], change.back); err != nil {
				return result, err
			}
		}
		look := func(ctx context.Context) (bool, string, error) { return t.carriedOut(ctx, change.kind, wanted) }
		done, seen, err := t.eventually(ctx, readyTimeout, look)
		if err != nil {
			return result, err
		}
		if !done {
			result.Fail("with the operator back for %s: %s", readyTimeout, seen)
			return result, nil
		}
		result.See("with the operator back: %s", seen)
	}
	return result, nil
}

// gentleChange is the declared change that touches no pod, and the way back.
type gentleChange struct {
	kind managedKind
	// forth and back are laid over the spec; shows and showed are the fields of the object after each.
	forth, back   map[string]any
	shows, showed map[string]any
}

func (t Target) gentleChange(ctx context.Context) (gentleChange, error) {
	declared := t.Subject.Resource.ChangeWithoutRoll
	if declared == nil {
		return gentleChange{}, fmt.Errorf("%w: the compatibility file declares no operator.resource.changeWithoutRoll", ErrNotApplicable)
	}
	kind, ok := t.Subject.kind(declared.Kind)
	if !ok {
		return gentleChange{}, fmt.Errorf("operator.resource.changeWithoutRoll names the kind %s, which is not managed", declared.Kind)
	}
	runtime, child := t.newRuntime(t.Runtimes[0]), t.newChild(kind, t.Runtimes[0])
	for _, object := range []*unstructured.Unstructured{runtime, child} {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return gentleChange{}, fmt.Errorf("read %s %s/%s: %w", object.GetKind(), t.Namespace, object.GetName(), err)
		}
	}
	change := gentleChange{
		kind: kind, forth: declared.Spec, shows: declared.Shows,
		back: undo(runtime, []string{"spec"}, declared.Spec), showed: undo(child, nil, declared.Shows),
	}
	if reflect.DeepEqual(change.shows, change.showed) {
		return change, fmt.Errorf("operator.resource.changeWithoutRoll changes nothing: %s %s is like that already", kind.Kind, child.GetName())
	}
	return change, nil
}

// carriedOut tells whether the object of the first runtime has the fields and the operator says so.
func (t Target) carriedOut(ctx context.Context, kind managedKind, fields map[string]any) (bool, string, error) {
	runtime, child := t.newRuntime(t.Runtimes[0]), t.newChild(kind, t.Runtimes[0])
	for _, object := range []*unstructured.Unstructured{runtime, child} {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, "", fmt.Errorf("read %s %s/%s: %w", object.GetKind(), t.Namespace, object.GetName(), err)
		}
	}
	done, seen := settled(runtime)
	shown, told := shows(child, fields)
	return done && shown, told + "; " + seen, nil
}
