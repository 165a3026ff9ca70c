package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The three times at which the operator must prove that it lives.
var (
	BaselineAlive = Check{
		ID:    "baseline-alive",
		Claim: "The release we come from really reconciles: a fresh runtime becomes Ready, a spec change is carried out, drift and deletion of every managed kind are repaired.",
	}
	AliveAfter = Check{
		ID:    "alive-after",
		Claim: "The new operator really reconciles, without any manual restart: fresh runtimes, spec changes, drift and deletion of every managed kind, and the objects the old operator made.",
	}
	OldAlive = Check{
		ID:    "old-alive",
		Claim: "After the chart rollback the old operator really reconciles again: fresh runtimes, spec changes, drift and deletion of every managed kind, and the objects the newer operator left.",
	}
)

// drifted is the value that a check gives a managed label, for the operator to repair.
const drifted = "drifted"

// Alive makes the installed operator work, on a fresh runtime and on the target's own, and judges
// whether it does. Only what it does from now on counts: the status that an earlier operator
// left says nothing. It leaves the target's runtimes and their pods as they were.
func Alive(ctx context.Context, t Target) (result Result, err error) {
	probe := &aliveProbe{target: t, name: "alive-" + rand.String(6)}
	ends, err := t.operatorEnds(ctx)
	if err != nil {
		return probe.result, err
	}
	object := t.RuntimeObject(probe.name, 1)
	probe.kinds = t.Subject.kindsOf(object)
	if err := t.Client.Create(ctx, object); err != nil {
		return probe.result, fmt.Errorf("create %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, probe.name, err)
	}
	defer func() {
		if cleanup := probe.remove(ctx, err == nil); err == nil {
			err = cleanup
		}
		probe.result.See("the slowest of these repairs took %s", probe.slowest.Round(100*time.Millisecond))
		if unstable := probe.staysUp(ctx, ends); err == nil {
			err = unstable
		}
		result = probe.result
	}()
	steps := []func(context.Context) (bool, error){probe.becomesReady, probe.carriesOutSpecChange, probe.repairsDrift, probe.recreates, probe.adopts, probe.settles}
	for _, step := range steps {
		if ok, err := step(ctx); err != nil || !ok {
			return probe.result, err // an operator that fails a step would only time out in the next
		}
	}
	return probe.result, nil
}

// AwaitReady waits for a runtime of the target to become Ready.
func AwaitReady(ctx context.Context, t Target, name string) (Result, error) {
	probe := &aliveProbe{target: t, name: name}
	_, err := probe.becomesReady(ctx)
	return probe.result, err
}

type aliveProbe struct {
	target Target
	name   string
	result Result
	// kinds are those of the fresh runtime's objects.
	kinds []managedKind
	// slowest is the longest time that the operator took to answer to a change of one object.
	slowest time.Duration
}

func (p *aliveProbe) becomesReady(ctx context.Context) (bool, error) {
	return p.see(ctx, readyTimeout, fmt.Sprintf("runtime %s is Ready", p.name), func(ctx context.Context) (bool, string, error) {
		object := p.target.newRuntime(p.name)
		if err := p.read(ctx, object); err != nil {
			return false, "", err
		}
		done, seen := settled(object)
		return done, seen, nil
	})
}

// carriesOutSpecChange makes the declared change and waits for its trace.
func (p *aliveProbe) carriesOutSpecChange(ctx context.Context) (bool, error) {
	change := p.target.Subject.Resource.Change
	kind, ok := p.target.Subject.kind(change.Kind)
	if !ok {
		return false, fmt.Errorf("operator.resource.change names the kind %s, which is not managed", change.Kind)
	}
	if err := p.target.patchRuntime(ctx, p.name, change.Spec); err != nil {
		return false, err
	}
	return p.see(ctx, readyTimeout, fmt.Sprintf("observedGeneration follows a spec change, and the %s carries it", change.Kind), func(ctx context.Context) (bool, string, error) {
		child := p.target.newChild(kind, p.name)
		if err := p.read(ctx, child); err != nil {
			return false, "", err
		}
		shown, told := shows(child, change.Shows)
		object := p.target.newRuntime(p.name)
		if err := p.read(ctx, object); err != nil {
			return false, "", err
		}
		done, seen := settled(object)
		return done && shown, seen + "; " + told, nil
	})
}

func (p *aliveProbe) repairsDrift(ctx context.Context) (bool, error) {
	for _, kind := range p.kinds {
		if ok, err := p.repairs(ctx, kind, p.name); err != nil || !ok {
			return ok, err
		}
	}
	p.result.See("drifted labels were repaired: %s", kindNames(p.kinds))
	return true, nil
}

func kindNames(kinds []managedKind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, kind.Kind)
	}
	return strings.Join(names, ", ")
}

// adopts drifts some objects of each runtime that an earlier operator reconciled: those whose labels
// touch no pod.
func (p *aliveProbe) adopts(ctx context.Context) (bool, error) {
	kinds := p.target.Subject.gentle()
	if len(kinds) == 0 {
		p.result.See("the runtimes that an earlier operator may have made have no object whose labels touch no pod")
		return true, nil
	}
	for _, name := range p.target.Runtimes {
		for _, kind := range kinds {
			if ok, err := p.repairs(ctx, kind, name); err != nil || !ok {
				return ok, err
			}
		}
		p.result.See("drifted labels of %s, which an earlier operator may have made, were repaired: %s", name, kindNames(kinds))
	}
	return true, nil
}

func (p *aliveProbe) repairs(ctx context.Context, kind managedKind, name string) (bool, error) {
	object := p.target.newChild(kind, name)
	if err := p.read(ctx, object); err != nil {
		return false, fmt.Errorf("read %s %s: %w", kind.Kind, object.GetName(), err)
	}
	label, should, ok := driftable(object)
	if !ok {
		p.result.Fail("%s %s has none of the labels %s: who made it can't be told, nor a drift be repaired", kind.Kind, object.GetName(), strings.Join(driftLabels, ", "))
		return false, nil
	}
	patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, label, drifted)))
	if err := p.target.Client.Patch(ctx, object, patch); err != nil {
		return false, fmt.Errorf("drift the label of %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return p.answers(ctx, fmt.Sprintf("a drifted label of %s %s is repaired", kind.Kind, object.GetName()), func(ctx context.Context) (bool, string, error) {
		if err := p.read(ctx, object); err != nil {
			return false, "", err
		}
		value := object.GetLabels()[label]
		return value == should, fmt.Sprintf("label %s is %q", label, value), nil
	})
}

// driftLabels are the recommended labels that select nothing, one of which an operator gives its objects.
var driftLabels = []string{"app.kubernetes.io/component", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"}

// driftable is a label of the object that can be changed without harm, and its value.
func driftable(object *unstructured.Unstructured) (label, value string, ok bool) {
	for _, label := range driftLabels {
		if value := object.GetLabels()[label]; value != "" && value != drifted {
			return label, value, true
		}
	}
	return "", "", false
}

func (p *aliveProbe) recreates(ctx context.Context) (bool, error) {
	for _, kind := range p.kinds {
		object := p.target.newChild(kind, p.name)
		if err := p.read(ctx, object); err != nil {
			return false, fmt.Errorf("read %s %s: %w", kind.Kind, object.GetName(), err)
		}
		old := object.GetUID()
		if err := p.target.Client.Delete(ctx, object, client.PropagationPolicy("Background")); err != nil {
			return false, fmt.Errorf("delete %s %s: %w", kind.Kind, object.GetName(), err)
		}
		ok, err := p.answers(ctx, fmt.Sprintf("a deleted %s is made again", kind.Kind), func(ctx context.Context) (bool, string, error) {
			if err := p.read(ctx, object); err != nil {
				return false, "", err
			}
			return object.GetUID() != old, "the deleted object is still there", nil
		})
		if err != nil || !ok {
			return ok, err
		}
	}
	p.result.See("deleted objects were made again: %s", kindNames(p.kinds))
	return true, nil
}

// settles waits until everything is at rest again.
func (p *aliveProbe) settles(ctx context.Context) (bool, error) {
	return p.see(ctx, readyTimeout, "all runtimes are Ready at the end", func(ctx context.Context) (bool, string, error) {
		for _, name := range append([]string{p.name}, p.target.Runtimes...) {
			object := p.target.newRuntime(name)
			if err := p.target.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return false, "", err
			}
			if done, seen := settled(object); !done {
				return false, seen, nil
			}
		}
		return true, "", nil
	})
}

// staysUp fails the check if an operator container has ended since ends were counted: an operator
// that is started again and again does its work, too, only late.
func (p *aliveProbe) staysUp(ctx context.Context, before map[string]containerEnd) error {
	after, err := p.target.operatorEnds(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if end := after[name]; end.count > before[name].count {
			p.result.Fail("the operator's container in pod %s ended meanwhile (%d times): %s", name, end.count-before[name].count, end.last)
		}
	}
	return nil
}

// remove deletes the fresh runtime and, if the check could look at all, expects its objects to be
// collected.
func (p *aliveProbe) remove(ctx context.Context, judge bool) error {
	object := p.target.newRuntime(p.name)
	if err := client.IgnoreNotFound(p.target.Client.Delete(context.WithoutCancel(ctx), object)); err != nil {
		return fmt.Errorf("delete %s %s/%s: %w", object.GetKind(), p.target.Namespace, p.name, err)
	}
	if !judge {
		return nil
	}
	_, err := p.see(ctx, goneTimeout, "the objects of a deleted runtime are collected", func(ctx context.Context) (bool, string, error) {
		for _, kind := range p.kinds {
			err := p.read(ctx, p.target.newChild(kind, p.name))
			if err == nil {
				return false, kind.Kind + " is still there", nil
			}
			if !apierrors.IsNotFound(err) {
				return false, "", err
			}
		}
		return true, "", nil
	})
	return err
}

// read reads the object by its own name.
func (p *aliveProbe) read(ctx context.Context, object *unstructured.Unstructured) error {
	return p.target.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
}

// answers is expect for the operator's answer to a change of one object. It keeps the longest.
func (p *aliveProbe) answers(ctx context.Context, what string, look func(context.Context) (bool, string, error)) (bool, error) {
	start := time.Now()
	ok, err := p.expect(ctx, repairTimeout, what, look)
	p.slowest = max(p.slowest, time.Since(start))
	return ok, err
}

// expect looks until done; it fails the check if that does not come in time.
func (p *aliveProbe) expect(ctx context.Context, timeout time.Duration, what string, look func(context.Context) (bool, string, error)) (bool, error) {
	ok, seen, err := p.target.eventually(ctx, timeout, look)
	if err != nil {
		return false, err
	}
	if !ok {
		p.result.Fail("not seen within %s: %s (last seen: %s)", timeout, what, seen)
	}
	return ok, nil
}

// see is expect for what is a fact of its own.
func (p *aliveProbe) see(ctx context.Context, timeout time.Duration, what string, look func(context.Context) (bool, string, error)) (bool, error) {
	ok, err := p.expect(ctx, timeout, what, look)
	if ok {
		p.result.See("%s", what)
	}
	return ok, err
}
