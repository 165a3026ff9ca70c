package e2e

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// subject is the runtime of one test, alone in its namespace.
type subject struct {
	client.ObjectKey
	t       *testing.T
	history *history
	// events are those of the stages so far.
	events []string
	// barriers counts the changes that settle has made.
	barriers int
}

func image(tag string) string { return artifact.RuntimeRepository + ":" + tag }

// create makes a runtime that wants the image of that tag.
func create(t *testing.T, tag string, mutate func(*v1alpha1.TrussiumRuntime)) *subject {
	t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatortest.Namespace(t, api), Name: "rt"},
		Spec: v1alpha1.TrussiumRuntimeSpec{
			Image:    v1alpha1.ImageSpec{Repository: artifact.RuntimeRepository, Tag: tag},
			Provider: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOllama, Model: "llama3.2"},
		},
	}
	if mutate != nil {
		mutate(runtime)
	}
	s := &subject{ObjectKey: client.ObjectKeyFromObject(runtime), t: t, history: follow(t, runtime.Namespace)}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator's log about %s:\n%s", s.Namespace, operatorLog.about(s.Namespace))
		}
	})
	if err := api.Create(t.Context(), runtime); err != nil {
		t.Fatalf("create the runtime: %v", err)
	}
	return s
}

// start makes a runtime and waits until it runs.
func start(t *testing.T, tag string, mutate func(*v1alpha1.TrussiumRuntime)) *subject {
	t.Helper()
	s := create(t, tag, mutate)
	s.reaches("the first rollout is complete", stage{
		conditions: complete, upgrading: "False NoUpgrade", desired: tag, last: tag,
		events: []string{"RuntimeProgressing", "RuntimeReady"},
	})
	return s
}

func (s *subject) get() *v1alpha1.TrussiumRuntime {
	s.t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{}
	if err := api.Get(s.t.Context(), s.ObjectKey, runtime); err != nil {
		s.t.Fatalf("read the runtime: %v", err)
	}
	return runtime
}

// change updates the runtime.
func (s *subject) change(mutate func(*v1alpha1.TrussiumRuntime)) {
	s.t.Helper()
	runtime := &v1alpha1.TrussiumRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	operatortest.Change(s.t, api, runtime, mutate)
}

func (s *subject) setTag(tag string) {
	s.t.Helper()
	s.change(func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Image.Tag = tag })
}

func (s *subject) setReplicas(replicas int32) {
	s.t.Helper()
	s.change(func(runtime *v1alpha1.TrussiumRuntime) { runtime.Spec.Replicas = &replicas })
}

// settle returns when all that the operator did before is told: it changes what has no effect,
// and the operator, which works on one runtime in one place at a time, answers only after it has
// told everything before.
func (s *subject) settle() {
	s.t.Helper()
	s.barriers++
	s.change(func(runtime *v1alpha1.TrussiumRuntime) {
		runtime.Spec.Provider.Model = fmt.Sprintf("model-%d", s.barriers)
	})
	operatortest.Eventually(s.t, "the operator has processed the runtime", func() error {
		if runtime := s.get(); runtime.Status.ObservedGeneration != runtime.Generation {
			return fmt.Errorf("generation %d of %d", runtime.Status.ObservedGeneration, runtime.Generation)
		}
		return nil
	})
}

// pods are the runtime's pods that are not on their way out, oldest first.
func (s *subject) pods() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	if err := api.List(s.t.Context(), &list, client.InNamespace(s.Namespace), client.MatchingLabels(desired.Selector(s.Name))); err != nil {
		s.t.Fatal(err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return pods
}

// podOf waits for a pod with the image of that tag for which check returns nil.
func (s *subject) podOf(tag, what string, check func(corev1.Pod, corev1.ContainerStatus) error) *corev1.Pod {
	s.t.Helper()
	var found *corev1.Pod
	operatortest.Eventually(s.t, "a pod of "+tag+" "+what, func() error {
		last := errors.New("there is no such pod")
		for _, pod := range s.pods() {
			if pod.Spec.Containers[0].Image != image(tag) || len(pod.Status.ContainerStatuses) == 0 {
				continue
			}
			if last = check(pod, pod.Status.ContainerStatuses[0]); last == nil {
				found = &pod
				return nil
			}
		}
		return last
	})
	return found
}

func isReady(_ corev1.Pod, status corev1.ContainerStatus) error {
	if !status.Ready {
		return fmt.Errorf("not ready: %+v", status.State)
	}
	return nil
}

// runs demands that this many pods, and no others, run the image now.
func (s *subject) runs(tag string, want int) {
	s.t.Helper()
	pods := s.pods()
	if len(pods) != want {
		s.t.Errorf("there are %d pods, want %d", len(pods), want)
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if !status.Ready || status.Image != image(tag) {
				s.t.Errorf("pod %s runs %s (ready: %v), want %s", pod.Name, status.Image, status.Ready, image(tag))
			}
		}
	}
}

// serves demands that the runtime's Service answers every one of some requests.
func (s *subject) serves() {
	s.t.Helper()
	for range 10 {
		_, err := clientset.CoreV1().Services(s.Namespace).ProxyGet("http", s.Name, "http", "/health/ready", nil).DoRaw(s.t.Context())
		if err != nil {
			s.t.Errorf("a request to the Service: %v", err)
		}
	}
}

// notes are the notes of the runtime's events of that reason, sorted.
func (s *subject) notes(reason string) []string {
	s.t.Helper()
	var notes []string
	for _, event := range s.eventsAbout(v1alpha1.Kind, s.Name) {
		if event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	slices.Sort(notes)
	return notes
}

func (s *subject) eventsAbout(kind, name string) []eventsv1.Event {
	s.t.Helper()
	var list eventsv1.EventList
	if err := api.List(s.t.Context(), &list, client.InNamespace(s.Namespace)); err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(event eventsv1.Event) bool {
		return event.Regarding.Kind != kind || event.Regarding.Name != name
	})
}
