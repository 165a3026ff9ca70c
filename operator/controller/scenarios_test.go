package controller_test

import (
	"fmt"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// scenario is one thing that a user does to a runtime called rt.
type scenario struct {
	name string
	// before is the spec with which the runtime has come to rest; nil when it does not exist.
	before func(*v1alpha1.TrussiumRuntimeSpec)
	// act changes the spec. The runtime is deleted when it is nil.
	act func(*v1alpha1.TrussiumRuntimeSpec)
	// reached says what the end is short of what the user wanted.
	reached func(t *testing.T, namespace string) error
}

func scenarios() []scenario {
	asMinimal := func(*v1alpha1.TrussiumRuntimeSpec) {}
	scalable := func(spec *v1alpha1.TrussiumRuntimeSpec) {
		replicas := int32(3)
		spec.Replicas = &replicas
		spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	}
	closed := func(spec *v1alpha1.TrussiumRuntimeSpec) {
		spec.NetworkPolicy = &v1alpha1.NetworkPolicySpec{Enabled: true, Ingress: []v1alpha1.NetworkPolicyPeer{{}}}
	}
	return []scenario{
		{
			name:    "create",
			act:     asMinimal,
			reached: runs("ghcr.io/trussiumhq/trussium:1.27.0", 1),
		},
		{
			name:   "config change",
			before: asMinimal,
			act:    func(spec *v1alpha1.TrussiumRuntimeSpec) { spec.Provider.BaseURL = "http://ollama.example:11434" },
			reached: func(t *testing.T, namespace string) error {
				data := get(t, namespace, "rt", &corev1.ConfigMap{}).Data
				if data["TRUSSIUM_PROVIDER__BASE_URL"] != "http://ollama.example:11434" {
					return fmt.Errorf("the ConfigMap has %v", data)
				}
				return nil
			},
		},
		{
			name:    "image change",
			before:  asMinimal,
			act:     func(spec *v1alpha1.TrussiumRuntimeSpec) { spec.Image.Tag = "1.30.0" },
			reached: runs("ghcr.io/trussiumhq/trussium:1.30.0", 1),
		},
		{
			name:    "enable autoscaling",
			before:  scalable,
			act:     func(spec *v1alpha1.TrussiumRuntimeSpec) { spec.Autoscaling = autoscaled(2, 6) },
			reached: exists(&autoscalingv2.HorizontalPodAutoscaler{}, true),
		},
		{
			name: "disable autoscaling",
			before: func(spec *v1alpha1.TrussiumRuntimeSpec) {
				scalable(spec)
				spec.Autoscaling = autoscaled(2, 6)
			},
			act: func(spec *v1alpha1.TrussiumRuntimeSpec) { spec.Autoscaling.Enabled = false },
			reached: func(t *testing.T, namespace string) error {
				if err := exists(&autoscalingv2.HorizontalPodAutoscaler{}, false)(t, namespace); err != nil {
					return err
				}
				return runs("ghcr.io/trussiumhq/trussium:1.27.0", 3)(t, namespace)
			},
		},
		{
			name:    "network policy on",
			before:  asMinimal,
			act:     closed,
			reached: exists(&networkingv1.NetworkPolicy{}, true),
		},
		{
			name:    "network policy off",
			before:  closed,
			act:     func(spec *v1alpha1.TrussiumRuntimeSpec) { spec.NetworkPolicy.Enabled = false },
			reached: exists(&networkingv1.NetworkPolicy{}, false),
		},
		{
			name:    "delete",
			before:  asMinimal,
			reached: exists(&appsv1.Deployment{}, false),
		},
	}
}

// runs says that the Deployment is to ask for Pods of the image.
func runs(image string, replicas int32) func(*testing.T, string) error {
	return func(t *testing.T, namespace string) error {
		spec := get(t, namespace, "rt", &appsv1.Deployment{}).Spec
		if got := spec.Template.Spec.Containers[0].Image; got != image || *spec.Replicas != replicas {
			return fmt.Errorf("the Deployment asks for %d of %s, want %d of %s", *spec.Replicas, got, replicas, image)
		}
		return nil
	}
}

func exists(object client.Object, want bool) func(*testing.T, string) error {
	return func(t *testing.T, namespace string) error {
		found := object.DeepCopyObject().(client.Object)
		err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "rt"}, found)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if exists := err == nil; exists != want {
			return fmt.Errorf("%T exists: %t, want %t", object, exists, want)
		}
		return nil
	}
}

// run is a scenario that is played in a namespace of its own.
type run struct {
	scenario
	namespace string
	wire      *wire
	operator  *operator
}

// begin brings the runtime to rest at where the scenario starts.
func (s scenario) begin(t *testing.T) *run {
	t.Helper()
	namespace := newNamespace(t)
	r := &run{scenario: s, namespace: namespace, wire: &wire{namespace: namespace}}
	r.operator = startOperator(t, namespace, r.wire.connect)
	if s.before != nil {
		runtime := minimal(namespace, "rt")
		s.before(&runtime.Spec)
		create(t, runtime)
		r.processed(t)
		r.rollOut(t)
		r.ready(t)
	}
	r.rest(t)
	r.wire.forget()
	return r
}

// steps are what users and Kubernetes do in turn; the operator comes to rest after each.
func (r *run) steps() []func(*testing.T) {
	if r.scenario.act == nil {
		return []func(*testing.T){r.remove}
	}
	return []func(*testing.T){r.change, r.rollOut}
}

func (r *run) change(t *testing.T) {
	t.Helper()
	runtime := minimal(r.namespace, "rt")
	if r.before == nil {
		r.act(&runtime.Spec)
		create(t, runtime)
		return
	}
	change(t, runtime, func(runtime *v1alpha1.TrussiumRuntime) { r.act(&runtime.Spec) })
}

func (r *run) remove(t *testing.T) {
	t.Helper()
	if err := api.Delete(t.Context(), minimal(r.namespace, "rt")); err != nil {
		t.Fatal(err)
	}
}

// rollOut does the work of the Deployment controller.
func (r *run) rollOut(t *testing.T) {
	t.Helper()
	completeRollout(t, r.namespace, "rt")
}

// processed waits until the operator has seen the runtime's latest generation to its
// end, or Kubernetes has removed what belonged to a deleted one.
func (r *run) processed(t *testing.T) {
	t.Helper()
	operatortest.Eventually(t, "the runtime is processed", func() error {
		runtime := &v1alpha1.TrussiumRuntime{}
		err := api.Get(t.Context(), client.ObjectKey{Namespace: r.namespace, Name: "rt"}, runtime)
		if apierrors.IsNotFound(err) && r.act == nil {
			if left := objectsOf(t, r.namespace, "rt", nil); len(left) > 0 {
				return fmt.Errorf("%d objects are left", len(left))
			}
			return nil
		}
		if err == nil && runtime.Status.ObservedGeneration != runtime.Generation {
			err = fmt.Errorf("generation %d, observed %d", runtime.Generation, runtime.Status.ObservedGeneration)
		}
		return err
	})
}

// ready waits for what follows a rollout.
func (r *run) ready(t *testing.T) {
	t.Helper()
	waitCondition(t, r.namespace, "rt", v1alpha1.ConditionReady, metav1.ConditionTrue, "RuntimeReady")
}

// rest waits until nothing has come through the wire for a while. An operator that has
// died is followed by another.
func (r *run) rest(t *testing.T) {
	t.Helper()
	operatortest.Eventually(t, "the operator comes to rest", func() error {
		silence, dead, _ := r.wire.look()
		if dead {
			r.restart(t)
			return fmt.Errorf("the operator has just been started again")
		}
		if silence < quiet {
			return fmt.Errorf("writes so far: %v", r.wire.written())
		}
		return nil
	})
}

func (r *run) restart(t *testing.T) {
	t.Helper()
	r.operator.stop()
	r.operator = startOperator(t, r.namespace, r.wire.connect)
}

// outcome is how a scenario goes when nothing disturbs it.
type outcome struct {
	before state
	// states are what is there after each step.
	states []state
	// writes are the operator's, and upTo how many of them there were after each step.
	writes []write
	upTo   []int
}

// play plays the scenario to its end, undisturbed.
func (s scenario) play(t *testing.T) (*run, outcome) {
	t.Helper()
	r := s.begin(t)
	result := outcome{before: r.state(t)}
	for i, step := range r.steps() {
		step(t)
		r.processed(t)
		if i > 0 {
			r.ready(t)
		}
		r.rest(t)
		result.states = append(result.states, r.state(t))
		result.writes = r.wire.written()
		result.upTo = append(result.upTo, len(result.writes))
	}
	if err := s.reached(t, r.namespace); err != nil {
		t.Fatal(err)
	}
	return r, result
}

// together runs named tests at the same time. They wait more than they compute, so that
// the number of cores, which bounds go test's own parallel tests, is no measure.
func together(t *testing.T, names []string, test func(t *testing.T, i int)) {
	t.Helper()
	const width = 16
	next := make(chan int)
	var group sync.WaitGroup
	for range width {
		group.Go(func() {
			for i := range next {
				t.Run(names[i], func(t *testing.T) { test(t, i) })
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	group.Wait()
}
