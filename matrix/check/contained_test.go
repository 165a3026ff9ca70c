package check

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trussiumhq/trussium-operator/matrix/check/mutation"
	"github.com/trussiumhq/trussium-operator/matrix/confinement"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
)

// confinedPod asks for what contract.md, section 2, says.
func confinedPod() corev1.PodSpec {
	id := int64(10001)
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &id, RunAsGroup: &id, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
}

func TestJudgeConfinement(t *testing.T) {
	confined := confinement.Facts{UID: 10001, GID: 10001, NoNewPrivileges: true, Seccomp: true, ReadOnlyRoot: true}
	if sound := JudgeConfinement(confinedPod(), confined); sound.Outcome() != evidence.Passed {
		t.Fatalf("a confined process is red: %q", sound.Failures)
	}
	for _, test := range []struct {
		what, says string
		pod        func(*corev1.PodSpec)
		facts      func(*confinement.Facts)
	}{
		{"the process is root", "asks for a user other", nil, func(f *confinement.Facts) { f.UID = 0 }},
		{"the process has another group", "asks for a group other", nil, func(f *confinement.Facts) { f.GID = 0 }},
		{"the process can get a capability", "asks for no capabilities", nil, func(f *confinement.Facts) { f.Capabilities = 1 << 10 }},
		{"the process can get privileges", "asks for no new privileges", nil, func(f *confinement.Facts) { f.NoNewPrivileges = false }},
		{"no system call is filtered", "asks for a seccomp filter", nil, func(f *confinement.Facts) { f.Seccomp = false }},
		{"the root can be written", "asks for a read-only root", nil, func(f *confinement.Facts) { f.ReadOnlyRoot = false }},
		{"the pod asks for nothing", "does not ask for a user", func(p *corev1.PodSpec) { p.SecurityContext, p.Containers[0].SecurityContext = nil, nil }, nil},
	} {
		pod, facts := confinedPod(), confined
		if test.pod != nil {
			test.pod(&pod)
		}
		if test.facts != nil {
			test.facts(&facts)
		}
		result := JudgeConfinement(pod, facts)
		mutation.Record(t, ContainerConfined.ID, test.what, result.Outcome() == evidence.Failed, result.Failures, test.says)
	}
}

func TestJudgeMemoryLimit(t *testing.T) {
	if sound := JudgeMemoryLimit(&corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}); sound.Outcome() != evidence.Passed {
		t.Fatalf("a container that was ended for its memory is red: %q", sound.Failures)
	}
	for what, end := range map[string]corev1.ContainerStateTerminated{
		"the container took all that it wanted": {ExitCode: 0, Reason: "Completed"},
		"the container never ended":             {Reason: "Running"},
	} {
		result := JudgeMemoryLimit(&end)
		mutation.Record(t, MemoryLimited.ID, what, result.Outcome() == evidence.Failed, result.Failures, "not ended for its memory")
	}
}

func TestJudgeDrain(t *testing.T) {
	deleted := time.Date(2026, 1, 1, 12, 0, 0, 900e6, time.UTC)
	ended := func(code int32, after time.Duration) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(deleted.Truncate(time.Second).Add(after))}
	}
	const grace = 36 * time.Second
	for _, code := range []int32{0, 143} {
		if sound := JudgeDrain(ended(code, 0), deleted, grace); sound.Outcome() != evidence.Passed {
			t.Fatalf("a container that ended in time with %d is red: %q", code, sound.Failures)
		}
	}
	for _, test := range []struct {
		what, says string
		end        *corev1.ContainerStateTerminated
	}{
		{"the container was killed", "exit code 137", ended(137, 20*time.Second)},
		{"the container used up its grace period", "it may take 36s", ended(0, grace)},
		{"the container failed", "exit code 2", ended(2, time.Second)},
	} {
		result := JudgeDrain(test.end, deleted, grace)
		mutation.Record(t, DrainsOnTerm.ID, test.what, result.Outcome() == evidence.Failed, result.Failures, test.says)
	}
}

func TestJudgeMissingImage(t *testing.T) {
	waiting := func(reason string) *corev1.ContainerStateWaiting {
		return &corev1.ContainerStateWaiting{Reason: reason}
	}
	for _, reason := range []string{"ErrImagePull", "ImagePullBackOff"} {
		if sound := JudgeMissingImage(waiting(reason), false, "not ready"); sound.Outcome() != evidence.Passed {
			t.Fatalf("%s is red: %q", reason, sound.Failures)
		}
	}
	for _, test := range []struct {
		what, says string
		waiting    *corev1.ContainerStateWaiting
		ready      bool
	}{
		{"the pod runs without its image", "does not tell", nil, false},
		{"the pod waits for something else", "does not tell", waiting("ContainerCreating"), false},
		{"the runtime is Ready without its image", "is Ready without", waiting("ErrImagePull"), true},
	} {
		result := JudgeMissingImage(test.waiting, test.ready, "told")
		mutation.Record(t, MissingImageTold.ID, test.what, result.Outcome() == evidence.Failed, result.Failures, test.says)
	}
}
