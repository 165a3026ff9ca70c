package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trussiumhq/trussium-operator/matrix/confinement"
)

// The checks of what only a container runtime shows: that a runtime's container is what its pod asks for.
var (
	ContainerConfined = Check{
		ID:    "container-confined",
		Claim: "The process of a runtime is confined as its pod asks for: its user and group, no capabilities, no new privileges, a seccomp filter, a root that it can't write to.",
	}
	MemoryLimited = Check{
		ID:    "memory-limited",
		Claim: "The kernel ends a container that takes more memory than its limit, and the pod tells so.",
	}
	DrainsOnTerm = Check{
		ID:    "drains-on-term",
		Claim: "A runtime that is told to stop ends by itself, with exit code 0 or 143, before its grace period is over.",
	}
	MissingImageTold = Check{
		ID:    "missing-image-told",
		Claim: "A runtime whose image can't be pulled is not Ready, and its pod tells why.",
	}
)

// containedTimeout is how long a pod may take to show what is wanted of it; pulls of an image that is
// not there may wait for a resolver that does not answer.
const containedTimeout = 2 * time.Minute

// withRuntime makes a fresh runtime, lets look use it when its pods are there, and removes it.
func withRuntime(ctx context.Context, t Target, prefix string, look func(name string) error) (err error) {
	name := prefix + rand.String(6)
	if err := t.Client.Create(ctx, t.RuntimeObject(name, 1)); err != nil {
		return fmt.Errorf("create %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, name, err)
	}
	defer func() {
		removal := t.Client.Delete(context.WithoutCancel(ctx), t.newRuntime(name))
		if removal = client.IgnoreNotFound(removal); removal != nil && err == nil {
			err = fmt.Errorf("remove %s %s/%s: %w", t.Subject.Kind.Kind, t.Namespace, name, removal)
		}
		if err == nil {
			err = t.awaitNoPods(ctx, name)
		}
	}()
	return look(name)
}

// awaitNoPods waits until a removed runtime's pods are gone, so that later checks find things at rest.
func (t Target) awaitNoPods(ctx context.Context, runtime string) error {
	gone, seen, err := t.eventually(ctx, goneTimeout, func(ctx context.Context) (bool, string, error) {
		pods, err := t.runtimePods(ctx, runtime)
		return len(pods) == 0, fmt.Sprintf("%d pods", len(pods)), err
	})
	if err == nil && !gone {
		err = fmt.Errorf("the pods of the removed runtime %s are still there: %s", runtime, seen)
	}
	return err
}

// runtimePods are the pods of a runtime, by its name label, which all objects made for it carry.
func (t Target) runtimePods(ctx context.Context, runtime string) ([]corev1.Pod, error) {
	workload, err := t.Subject.workload()
	if err != nil {
		return nil, err
	}
	prefix := workload.NameFor(runtime) + "-"
	var pods corev1.PodList
	if err := t.Client.List(ctx, &pods, client.InNamespace(t.Namespace)); err != nil {
		return nil, fmt.Errorf("list the pods of runtime %s: %w", runtime, err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		return !slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, prefix)
		})
	}), nil
}

// readyPod waits for the runtime to be Ready and returns its pod.
func readyPod(ctx context.Context, t Target, name string, result *Result) (*corev1.Pod, error) {
	ready, err := AwaitReady(ctx, t, name)
	if err != nil || len(ready.Failures) > 0 {
		result.Add(ready)
		return nil, err
	}
	pods, err := t.runtimePods(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(pods) != 1 {
		return nil, fmt.Errorf("runtime %s has %d pods, 1 is wanted", name, len(pods))
	}
	return &pods[0], nil
}

// AwaitConfined looks, from a container beside it, at the process of a fresh runtime.
func AwaitConfined(ctx context.Context, t Target, image string) (Result, error) {
	var result Result
	err := withRuntime(ctx, t, "confined-", func(name string) error {
		pod, err := readyPod(ctx, t, name, &result)
		if err != nil || pod == nil {
			return err
		}
		facts, err := t.lookInto(ctx, pod, image)
		if err != nil {
			return err
		}
		result.Add(JudgeConfinement(pod.Spec, facts))
		return nil
	})
	return result, err
}

// lookInto adds a container to the pod that shares the processes of its first one, and reads what it tells.
func (t Target) lookInto(ctx context.Context, pod *corev1.Pod, image string) (confinement.Facts, error) {
	var facts confinement.Facts
	look := insiderContainer(image, "look")
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: look.Name, Image: look.Image, Args: look.Args, SecurityContext: look.SecurityContext},
		TargetContainerName:      pod.Spec.Containers[0].Name,
	})
	if _, err := t.Clientset.CoreV1().Pods(pod.Namespace).UpdateEphemeralContainers(ctx, pod.Name, pod, metav1.UpdateOptions{}); err != nil {
		return facts, fmt.Errorf("add a container to pod %s: %w", pod.Name, err)
	}
	ended, seen, err := t.eventually(ctx, containedTimeout, func(ctx context.Context) (bool, string, error) {
		live, err := t.Clientset.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		for _, status := range live.Status.EphemeralContainerStatuses {
			if status.State.Terminated != nil {
				return true, fmt.Sprintf("exit code %d", status.State.Terminated.ExitCode), nil
			}
		}
		return false, "it has not ended", nil
	})
	if err == nil && !ended {
		err = fmt.Errorf("the container added to pod %s: %s", pod.Name, seen)
	}
	if err != nil {
		return facts, err
	}
	log, err := t.Clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: look.Name}).DoRaw(ctx)
	if err != nil {
		return facts, fmt.Errorf("read the log of the container added to pod %s: %w", pod.Name, err)
	}
	if err := json.Unmarshal(log, &facts); err != nil {
		return facts, fmt.Errorf("the container added to pod %s (%s) tells %q: %w", pod.Name, seen, log, err)
	}
	return facts, nil
}

// JudgeConfinement judges ContainerConfined: what a pod's first container asks for against what its process has.
func JudgeConfinement(pod corev1.PodSpec, facts confinement.Facts) Result {
	var r Result
	r.See("the process has %s", facts)
	own := pod.Containers[0].SecurityContext
	if own == nil {
		own = &corev1.SecurityContext{}
	}
	all := pod.SecurityContext
	if all == nil {
		all = &corev1.PodSecurityContext{}
	}
	check := func(asked bool, holds bool, what string) {
		switch {
		case !asked:
			r.Fail("the pod does not ask for %s", what)
		case !holds:
			r.Fail("the pod asks for %s, the process has %s", what, facts)
		}
	}
	user, group := firstOf(own.RunAsUser, all.RunAsUser), firstOf(own.RunAsGroup, all.RunAsGroup)
	check(user != nil && *user != 0, user != nil && facts.UID == *user, "a user other than root")
	check(group != nil && *group != 0, group != nil && facts.GID == *group, "a group other than root's")
	check(own.Capabilities != nil && slices.Contains(own.Capabilities.Drop, "ALL"), facts.Capabilities == 0, "no capabilities")
	check(own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, facts.NoNewPrivileges, "no new privileges")
	seccomp := firstOf(own.SeccompProfile, all.SeccompProfile)
	check(seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeUnconfined, facts.Seccomp, "a seccomp filter")
	check(own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem, facts.ReadOnlyRoot, "a read-only root")
	return r
}

// firstOf is the setting of the container, or else that of its pod.
func firstOf[T any](own, all *T) *T {
	if own != nil {
		return own
	}
	return all
}

// Memory that the matrix's own pod may take, and that it takes, in MiB.
const (
	memoryLimit = 32
	memoryEaten = 128
)

// AwaitMemoryLimit has a pod of its own take more memory than its limit.
func AwaitMemoryLimit(ctx context.Context, t Target, image string) (Result, error) {
	pod, err := t.newEater(ctx, image)
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = t.Client.Delete(context.WithoutCancel(ctx), pod, client.GracePeriodSeconds(0)) }()
	var end *corev1.ContainerStateTerminated
	ended, seen, err := t.eventually(ctx, containedTimeout, func(ctx context.Context) (bool, string, error) {
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return false, "", err
		}
		for _, status := range pod.Status.ContainerStatuses {
			end = status.State.Terminated
		}
		return end != nil, string(pod.Status.Phase), nil
	})
	if err != nil {
		return Result{}, err
	}
	if !ended {
		end = &corev1.ContainerStateTerminated{Reason: seen}
	}
	return JudgeMemoryLimit(end), nil
}

// newEater makes a pod that takes more memory than it may.
func (t Target) newEater(ctx context.Context, image string) (*corev1.Pod, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: insiderNamespace}}
	if err := client.IgnoreAlreadyExists(t.Client.Create(ctx, namespace)); err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", insiderNamespace, err)
	}
	container := insiderContainer(image, "eat", fmt.Sprint(memoryEaten))
	container.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(memoryLimit<<20, resource.BinarySI)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "eater-", Namespace: insiderNamespace},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container}, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		},
	}
	if err := t.Client.Create(ctx, pod); err != nil {
		return nil, fmt.Errorf("create a pod with a memory limit in %s: %w", insiderNamespace, err)
	}
	return pod, nil
}

// JudgeMemoryLimit judges MemoryLimited by how the container ended.
func JudgeMemoryLimit(end *corev1.ContainerStateTerminated) Result {
	var r Result
	r.See("a container with a limit of %d MiB that takes %d ended with exit code %d, %s", memoryLimit, memoryEaten, end.ExitCode, end.Reason)
	if end.Reason != "OOMKilled" {
		r.Fail("the container was not ended for its memory: exit code %d, %s", end.ExitCode, end.Reason)
	}
	return r
}

// AwaitDrain deletes the pod of a fresh runtime and watches how it ends.
func AwaitDrain(ctx context.Context, t Target) (Result, error) {
	var result Result
	err := withRuntime(ctx, t, "drains-", func(name string) error {
		pod, err := readyPod(ctx, t, name, &result)
		if err != nil || pod == nil {
			return err
		}
		end, deleted, err := t.deleteAndWatch(ctx, pod)
		if err != nil {
			return err
		}
		result.Add(JudgeDrain(end, deleted, time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second))
		return nil
	})
	return result, err
}

// deleteAndWatch returns how the pod's first container ended, and when it was told to.
func (t Target) deleteAndWatch(ctx context.Context, pod *corev1.Pod) (*corev1.ContainerStateTerminated, time.Time, error) {
	limit := time.Duration(*pod.Spec.TerminationGracePeriodSeconds)*time.Second + containedTimeout
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	watched, err := t.Clientset.CoreV1().Pods(pod.Namespace).Watch(ctx, metav1.SingleObject(metav1.ObjectMeta{Name: pod.Name, ResourceVersion: pod.ResourceVersion}))
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("watch pod %s: %w", pod.Name, err)
	}
	defer watched.Stop()
	deleted := time.Now()
	if err := t.Clientset.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		return nil, deleted, fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	for event := range watched.ResultChan() {
		live, ok := event.Object.(*corev1.Pod)
		if !ok || len(live.Status.ContainerStatuses) == 0 {
			continue
		}
		if end := live.Status.ContainerStatuses[0].State.Terminated; end != nil {
			return end, deleted, nil
		}
	}
	return nil, deleted, fmt.Errorf("pod %s was deleted, and how its container ended was not told in %s", pod.Name, limit)
}

// JudgeDrain judges DrainsOnTerm by how the container ended. Times of the API are whole seconds.
func JudgeDrain(end *corev1.ContainerStateTerminated, deleted time.Time, grace time.Duration) Result {
	var r Result
	took := max(0, end.FinishedAt.Sub(deleted.Truncate(time.Second)))
	r.See("the container ended with exit code %d, %s after it was told to, of %s that it may take", end.ExitCode, took, grace)
	const terminated = 128 + 15
	if end.ExitCode != 0 && end.ExitCode != terminated {
		r.Fail("the container ended with exit code %d (%s), 0 or %d is wanted", end.ExitCode, end.Reason, terminated)
	}
	if took >= grace {
		r.Fail("the container took %s to end, it may take %s", took, grace)
	}
	return r
}

// missingTag is a tag that no runtime has.
const missingTag = "0.0.0-not-there"

// AwaitMissingImage makes a runtime with an image that is not there.
func AwaitMissingImage(ctx context.Context, t Target) (Result, error) {
	var result Result
	t.RuntimeTag = missingTag
	err := withRuntime(ctx, t, "missing-", func(name string) error {
		var waiting *corev1.ContainerStateWaiting
		_, _, err := t.eventually(ctx, containedTimeout, func(ctx context.Context) (bool, string, error) {
			pods, err := t.runtimePods(ctx, name)
			for _, pod := range pods {
				for _, status := range pod.Status.ContainerStatuses {
					waiting = status.State.Waiting
				}
			}
			return pullFailed(waiting), "", err
		})
		if err != nil {
			return err
		}
		object := t.newRuntime(name)
		if err := t.Client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("read %s %s: %w", t.Subject.Kind.Kind, name, err)
		}
		ready, told := settled(object)
		result.Add(JudgeMissingImage(waiting, ready, told))
		return nil
	})
	return result, err
}

func pullFailed(waiting *corev1.ContainerStateWaiting) bool {
	return waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff")
}

// JudgeMissingImage judges MissingImageTold by what the pod waits for and what the runtime tells.
func JudgeMissingImage(waiting *corev1.ContainerStateWaiting, ready bool, told string) Result {
	var r Result
	if pullFailed(waiting) {
		r.See("the pod waits: %s; %s", waiting.Reason, told)
	} else {
		r.Fail("the pod does not tell that its image can't be pulled: it waits for %v", waiting)
	}
	if ready {
		r.Fail("the runtime is Ready without its image: %s", told)
	}
	return r
}
