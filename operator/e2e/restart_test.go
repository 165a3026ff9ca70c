package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/operator/desired"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// restartedAt is what `kubectl rollout restart` writes.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

func TestARestartByKubectlIsNoUpgrade(t *testing.T) {
	t.Parallel()
	s := start(t, tagA, nil)
	s.setTag(tagB)
	s.reaches("the upgrade is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		events: []string{"RuntimeUpgradeStarted", "RuntimeReady", "RuntimeUpgradeCompleted"},
	})
	before := s.pods()[0].UID
	upgrading := *meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionUpgrading)

	restart := fmt.Appendf(nil, `{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, time.Now().Format(time.RFC3339))
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	patch := client.RawPatch(types.StrategicMergePatchType, restart)
	if err := api.Patch(t.Context(), deployment, patch, client.FieldOwner("kubectl-rollout")); err != nil {
		t.Fatal(err)
	}
	s.podOf(tagB, "is new and ready", func(pod corev1.Pod, status corev1.ContainerStatus) error {
		if pod.UID == before {
			return fmt.Errorf("%s is the old one", pod.Name)
		}
		return isReady(pod, status)
	})
	s.reaches("the restart is complete", stage{
		conditions: complete, upgrading: "False UpgradeComplete", message: upgraded(tagA, tagB), desired: tagB, last: tagB,
		// The rollout may be observed before the operator sees the request.
		events: []string{"RuntimeProgressing", "RuntimeReady?"},
	})
	s.runs(tagB, 1)
	// A fresh object, because reading into the patched one would keep its annotations.
	live := &appsv1.Deployment{}
	if err := api.Get(t.Context(), s.ObjectKey, live); err != nil {
		t.Fatal(err)
	}
	annotations := live.Spec.Template.Annotations
	if annotations[restartedAt] == "" || annotations[desired.AnnotationConfigChecksum] == "" {
		t.Errorf("the template has the annotations %v, want kubectl's and the operator's", annotations)
	}
	after := *meta.FindStatusCondition(s.get().Status.Conditions, v1alpha1.ConditionUpgrading)
	after.ObservedGeneration = upgrading.ObservedGeneration
	if difference := cmp.Diff(upgrading, after); difference != "" {
		t.Errorf("Upgrading has changed (-before +after):\n%s", difference)
	}
}

// A runtime that dies is restarted by the kubelet at once, one that hangs by its liveness probe.
func TestAFailedRuntimeIsRestarted(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"it dies": syscall.SIGKILL, "it hangs": syscall.SIGSTOP} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tagA, func(runtime *v1alpha1.TrussiumRuntime) {
				// One that hangs does not hear that it shall end, and gets this long.
				runtime.Spec.Runtime = &v1alpha1.RuntimeSettings{ShutdownDrainTimeoutSeconds: new(int32(1))}
			})
			pod := s.pods()[0]
			process := embeddedtest.ProcessOf(t, pod.Name)
			send(t, process, signal)
			resume := func() {}
			if signal == syscall.SIGKILL {
				// Its successor may be ready before a busy machine has told anybody of its end.
				successor := successorOf(t, pod.Name, process)
				send(t, successor, syscall.SIGSTOP)
				resume = func() { send(t, successor, syscall.SIGCONT) }
			}
			operatortest.WaitCondition(t, api, s.ObjectKey, v1alpha1.ConditionReady, "False", "RuntimeNotReady")
			resume()
			s.podOf(tagA, "has been restarted", func(pod corev1.Pod, status corev1.ContainerStatus) error {
				if status.RestartCount != 1 {
					return fmt.Errorf("%d restarts: %+v", status.RestartCount, status.State)
				}
				if ended := status.LastTerminationState.Terminated; ended == nil || ended.ExitCode != 128+int32(syscall.SIGKILL) {
					return fmt.Errorf("it ended with %+v, want a kill", ended)
				}
				return isReady(pod, status)
			})
			s.reaches("the runtime is ready again", stage{
				conditions: complete, upgrading: "False NoUpgrade", message: "No upgrade is active.", desired: tagA, last: tagA,
				events: []string{"RuntimeProgressing", "RuntimeReady"},
			})
			s.runs(tagA, 1)
			if now := s.pods()[0]; now.UID != pod.UID {
				t.Errorf("pod %s was replaced by %s", pod.Name, now.Name)
			}
			s.wentThrough(slices.Concat(first, first)...)
		})
	}
}

func send(t *testing.T, process *os.Process, signal syscall.Signal) {
	t.Helper()
	if err := process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// successorOf waits for the process that the kubelet starts in the place of the one that ended.
func successorOf(t *testing.T, pod string, ended *os.Process) *os.Process {
	t.Helper()
	var found *os.Process
	operatortest.Eventually(t, "the container is started again", func() error {
		for _, process := range embeddedtest.ProcessesOf(t, pod) {
			if process.Pid != ended.Pid {
				found = process
				return nil
			}
		}
		return errors.New("it has no process")
	})
	return found
}
