package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Snapshot is what the cluster holds at one moment, as far as the checks compare it.
type Snapshot struct {
	Taken    time.Time                   `json:"taken"`
	Runtimes []unstructured.Unstructured `json:"runtimes"`
	// Children are the objects of the managed kinds for one of the runtimes, Wanted how many of them the runtimes ask for.
	Children []unstructured.Unstructured `json:"children"`
	Wanted   int                         `json:"wanted"`
	// ReplicaSets and Pods are those that the runtimes' Deployments select.
	ReplicaSets []unstructured.Unstructured `json:"replicaSets"`
	Pods        []unstructured.Unstructured `json:"pods"`
	// Events are the events.k8s.io/v1 events about the runtimes.
	Events []unstructured.Unstructured `json:"events"`
	CRD    *unstructured.Unstructured  `json:"crd"`
	Lease  *unstructured.Unstructured  `json:"lease,omitempty"`
	// OperatorPods are the pods of the operator's Deployment.
	OperatorPods []unstructured.Unstructured `json:"operatorPods"`
}

// Observe takes a snapshot. What is not there is left out; any other error is returned.
func Observe(ctx context.Context, t Target) (*Snapshot, error) {
	s := &Snapshot{Taken: time.Now()}
	reader := snapshotReader{ctx: ctx, target: t}
	for _, name := range t.Runtimes {
		for _, runtime := range reader.get(t.Subject.Kind, t.Namespace, name) {
			s.Runtimes = append(s.Runtimes, runtime)
			s.Wanted += len(t.Subject.kindsOf(&runtime))
		}
		for _, kind := range t.Subject.managed {
			children := reader.get(kind.gvk, t.Namespace, kind.NameFor(name))
			s.Children = append(s.Children, children...)
			for i := range children {
				labels := selectedBy(&children[i])
				if len(labels) == 0 {
					continue
				}
				s.ReplicaSets = append(s.ReplicaSets, reader.list(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, t.Namespace, labels)...)
				s.Pods = append(s.Pods, reader.list(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, t.Namespace, labels)...)
			}
		}
	}
	for _, event := range reader.list(schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}, t.Namespace) {
		kind, _, _ := unstructured.NestedString(event.Object, "regarding", "kind")
		name, _, _ := unstructured.NestedString(event.Object, "regarding", "name")
		if kind == t.Subject.Kind.Kind && slices.Contains(t.Runtimes, name) {
			s.Events = append(s.Events, event)
		}
	}
	s.CRD = only(reader.get(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "", t.Subject.Resource.CRD))
	s.Lease = only(reader.get(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, t.OperatorNamespace, t.Subject.Lease))
	s.OperatorPods = reader.list(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, t.OperatorNamespace, t.operatorLabels())
	if reader.err != nil {
		return nil, fmt.Errorf("take a snapshot: %w", reader.err)
	}
	return s, nil
}

// selectedBy are the labels by which a Deployment selects its pods; nil for any other object.
func selectedBy(object *unstructured.Unstructured) client.MatchingLabels {
	if object.GetKind() != kindDeployment {
		return nil
	}
	labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
	return labels
}

// crdName is the name of the CRD in either snapshot.
func crdName(snapshots ...*Snapshot) string {
	for _, s := range snapshots {
		if s.CRD != nil {
			return s.CRD.GetName()
		}
	}
	return ""
}

// ObserveAtRest takes a snapshot once no Deployment of the runtimes is rolling, and no pod on its way out any more.
func ObserveAtRest(ctx context.Context, t Target) (*Snapshot, error) {
	var snapshot *Snapshot
	rested, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		var err error
		if snapshot, err = Observe(ctx, t); err != nil {
			return false, "", err
		}
		for _, deployment := range ofKind(snapshot.Children, kindDeployment) {
			if told := rolling(&deployment); told != "" {
				return false, told, nil
			}
		}
		for i := range snapshot.Pods {
			if snapshot.Pods[i].GetDeletionTimestamp() != nil {
				return false, "pod " + snapshot.Pods[i].GetName() + " is being deleted", nil
			}
		}
		return true, "", nil
	})
	if err == nil && !rested {
		err = fmt.Errorf("no rest within %s: %s", goneTimeout, seen)
	}
	return snapshot, err
}

// rolling says how far the rollout of a Deployment is; empty if it is over.
func rolling(deployment *unstructured.Unstructured) string {
	number := func(path ...string) int64 {
		value, _, _ := unstructured.NestedInt64(deployment.Object, path...)
		return value
	}
	wanted := number("spec", "replicas")
	if number("status", "observedGeneration") >= deployment.GetGeneration() && number("status", "updatedReplicas") == wanted &&
		number("status", "replicas") == wanted && number("status", "availableReplicas") == wanted {
		return ""
	}
	return fmt.Sprintf("Deployment %s has %d pods, %d updated, %d available, %d are wanted", deployment.GetName(),
		number("status", "replicas"), number("status", "updatedReplicas"), number("status", "availableReplicas"), wanted)
}

// LeaseTaken is when the leading operator took the Lease; the zero time if nobody leads.
func (s *Snapshot) LeaseTaken() time.Time {
	if s.Lease == nil {
		return time.Time{}
	}
	return timeAt(s.Lease, "spec", "acquireTime")
}

// PodsReplaced is how many pods of runtimes in before are not in after.
func PodsReplaced(before, after *Snapshot) int {
	replaced := 0
	for _, p := range pairs(before.Pods, after.Pods) {
		if p.before != nil && (p.after == nil || p.before.GetUID() != p.after.GetUID()) {
			replaced++
		}
	}
	return replaced
}

// snapshotReader keeps the first error, so that the list of what is read stays readable.
type snapshotReader struct {
	ctx    context.Context
	target Target
	err    error
}

func (r *snapshotReader) get(kind schema.GroupVersionKind, namespace, name string) []unstructured.Unstructured {
	if r.err != nil {
		return nil
	}
	object := unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := r.target.Client.Get(r.ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object)
	if client.IgnoreNotFound(err) != nil {
		r.err = fmt.Errorf("read %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	if err != nil {
		return nil
	}
	return []unstructured.Unstructured{object}
}

func (r *snapshotReader) list(kind schema.GroupVersionKind, namespace string, options ...client.ListOption) []unstructured.Unstructured {
	if r.err != nil {
		return nil
	}
	list := unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.target.Client.List(r.ctx, &list, append(options, client.InNamespace(namespace))...); err != nil {
		r.err = fmt.Errorf("list %s in %s: %w", kind.Kind, namespace, err)
		return nil
	}
	return list.Items
}

func only(objects []unstructured.Unstructured) *unstructured.Unstructured {
	if len(objects) == 0 {
		return nil
	}
	return &objects[0]
}

// pair is one object in two snapshots; either side may be missing.
type pair struct {
	name          string
	before, after *unstructured.Unstructured
}

// pairs matches the objects of two lists by kind and name, in the order of the first.
func pairs(before, after []unstructured.Unstructured) []pair {
	var out []pair
	index := map[string]int{}
	for i := range before {
		index[objectName(&before[i])] = len(out)
		out = append(out, pair{name: objectName(&before[i]), before: &before[i]})
	}
	for i := range after {
		name := objectName(&after[i])
		if at, found := index[name]; found {
			out[at].after = &after[i]
			continue
		}
		out = append(out, pair{name: name, after: &after[i]})
	}
	return out
}

func objectName(o *unstructured.Unstructured) string {
	return o.GetKind() + "/" + o.GetName()
}

// same reports an object that came, went or was replaced; it returns false if so.
func (r *Result) same(p pair) bool {
	switch {
	case p.after == nil:
		r.Fail("%s is gone", p.name)
	case p.before == nil:
		r.Fail("%s was not there before", p.name)
	case p.before.GetUID() != p.after.GetUID():
		r.Fail("%s was replaced: UID %s before, %s after", p.name, p.before.GetUID(), p.after.GetUID())
	default:
		return true
	}
	return false
}

// controller is the controller owner reference without blockOwnerDeletion, which releases may differ in.
func controller(o *unstructured.Unstructured) string {
	owner := metav1.GetControllerOf(o)
	if owner == nil {
		return "none"
	}
	return fmt.Sprintf("%s/%s (UID %s)", owner.Kind, owner.Name, owner.UID)
}
