//go:build linux

package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const namespace = metav1.NamespaceDefault

// newPod is a pod of podImage that is ready when its server answers.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:  "pod",
				Image: podImage,
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
					PeriodSeconds: 1,
				},
			}},
		},
	}
}

func (f *fixture) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := f.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := int64(0)
		_ = f.client.CoreV1().Pods(namespace).Delete(context.Background(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	})
}

// waitForPod waits until wanted returns nil for the pod's first container.
func (f *fixture) waitForPod(t *testing.T, name string, wanted func(corev1.ContainerStatus) error) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name, func() error {
		var err error
		if pod, err = f.client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		if len(pod.Status.ContainerStatuses) == 0 {
			return errors.New("no container status")
		}
		if err := wanted(pod.Status.ContainerStatuses[0]); err != nil {
			status, _ := json.Marshal(pod.Status.ContainerStatuses[0])
			return fmt.Errorf("%w: %s", err, status)
		}
		return nil
	})
	return pod
}

func ready(status corev1.ContainerStatus) error {
	if !status.Ready {
		return errors.New("not ready")
	}
	return nil
}

// get reads a path of a pod through the API server.
func (f *fixture) get(t *testing.T, pod, path string, parameters map[string]string) string {
	t.Helper()
	content, err := f.client.CoreV1().Pods(namespace).ProxyGet("http", pod, "8080", path, parameters).DoRaw(t.Context())
	if err != nil {
		t.Fatalf("%s%s: %v: %s", pod, path, err, content)
	}
	return string(content)
}

type podState struct {
	UID, GID, PID                                   int
	Groups                                          []int
	Dir, Hostname, RootWriteError, VolumeWriteError string
	Args, Env                                       []string
	Status                                          map[string]string
	TokenReadable, DeletedFileExists                bool
	ImageFile                                       string
}

func (f *fixture) state(t *testing.T, pod string) podState {
	t.Helper()
	var state podState
	if err := json.Unmarshal([]byte(f.get(t, pod, "/state", nil)), &state); err != nil {
		t.Fatal(err)
	}
	return state
}

func TestContainerIsWhatItsImageSays(t *testing.T) {
	f := shared.use(t)
	pod := newPod("as-image")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "FROM_BOTH", Value: "pod"}}
	f.create(t, pod)
	started := f.waitForPod(t, pod.Name, ready)

	state := f.state(t, pod.Name)
	if state.UID != 10001 || state.GID != 10002 {
		t.Errorf("runs as %d:%d, want the image's user app, 10001:10002", state.UID, state.GID)
	}
	// An ordinary user without a subordinate range of ids has no other group to give.
	singleID := slices.ContainsFunc(f.cluster.Info().Limits, func(limit string) bool {
		return strings.Contains(limit, "as one user of the machine")
	})
	if !singleID && !slices.Contains(state.Groups, 10003) {
		t.Errorf("has the groups %v, want also 10003 of the image's /etc/group", state.Groups)
	}
	if want := []string{"/app/pod", "serve"}; !slices.Equal(state.Args, want) {
		t.Errorf("arguments %q, want the image's entrypoint and command %q", state.Args, want)
	}
	for _, want := range []string{"FROM_IMAGE=image", "FROM_BOTH=pod"} {
		if !slices.Contains(state.Env, want) {
			t.Errorf("environment %q lacks %s", state.Env, want)
		}
	}
	if state.Dir != "/data" || state.Hostname != pod.Name || state.PID != 1 {
		t.Errorf("working directory %q, host name %q, process id %d", state.Dir, state.Hostname, state.PID)
	}
	if state.ImageFile != "second" || state.DeletedFileExists {
		t.Errorf("/data/file is %q and /data/deleted exists: %v; the second layer replaces one and deletes the other", state.ImageFile, state.DeletedFileExists)
	}
	if !state.TokenReadable {
		t.Error("the service account token can't be read")
	}
	status := started.Status.ContainerStatuses[0]
	if want := "registry.example.com/test/pod@" + f.registry.digest; status.ImageID != want || status.Image != podImage {
		t.Errorf("the status says image %q, imageID %q, want %q, %q", status.Image, status.ImageID, podImage, want)
	}
}

func TestContainerGivesUpWhatItsPodForbids(t *testing.T) {
	f := shared.use(t)
	yes, no, user, group := true, false, int64(20001), int64(20002)
	pod := newPod("restricted")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, FSGroup: &group}
	pod.Spec.Volumes = []corev1.Volume{{Name: "volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: "/volume"}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		RunAsUser:                &user,
		RunAsGroup:               &group,
		ReadOnlyRootFilesystem:   &yes,
		AllowPrivilegeEscalation: &no,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)

	state := f.state(t, pod.Name)
	if state.UID != 20001 || state.GID != 20002 {
		t.Errorf("runs as %d:%d, want 20001:20002", state.UID, state.GID)
	}
	if !strings.Contains(state.RootWriteError, "read-only file system") {
		t.Errorf("writing to / gave %q, want a read-only file system", state.RootWriteError)
	}
	if state.VolumeWriteError != "" {
		t.Errorf("writing to the volume: %s", state.VolumeWriteError)
	}
	for _, set := range []string{"CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"} {
		if strings.Trim(state.Status[set], "0") != "" {
			t.Errorf("%s is %s, want none", set, state.Status[set])
		}
	}
	if state.Status["NoNewPrivs"] != "1" {
		t.Errorf("NoNewPrivs is %q", state.Status["NoNewPrivs"])
	}
}

func TestWritableRootIsTheContainersOwn(t *testing.T) {
	f := shared.use(t)
	root := int64(0)
	for _, name := range []string{"writer-a", "writer-b"} {
		pod := newPod(name)
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &root}
		f.create(t, pod)
		f.waitForPod(t, name, ready)
		state := f.state(t, name)
		if state.RootWriteError != "" {
			t.Errorf("%s: writing to /: %s", name, state.RootWriteError)
		}
		if state.Status["CapEff"] != "00000000a80425fb" {
			t.Errorf("%s: capabilities %s, want containerd's default set", name, state.Status["CapEff"])
		}
	}
}

func TestServiceIsFoundByName(t *testing.T) {
	f := shared.use(t)
	pod := newPod("server")
	pod.Spec.Hostname, pod.Spec.Subdomain = "zero", "headless"
	f.create(t, pod)
	addresses := map[string]string{}
	for name, clusterIP := range map[string]string{"web": "", "headless": corev1.ClusterIPNone} {
		service, err := f.client.CoreV1().Services(namespace).Create(t.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: clusterIP,
				Selector:  map[string]string{"app": "server"},
				Ports:     []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = f.client.CoreV1().Services(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
		})
		addresses[name] = service.Spec.ClusterIP
	}
	server := f.waitForPod(t, pod.Name, ready)
	for name, want := range map[string]string{
		"web":                           addresses["web"],
		"web.default.svc.cluster.local": addresses["web"],
		"headless":                      server.Status.PodIP,
		"zero.headless.default.svc.cluster.local": server.Status.PodIP,
	} {
		eventually(t, "resolve "+name, func() error {
			got, err := f.client.CoreV1().Pods(namespace).
				ProxyGet("http", "server", "8080", "/resolve", map[string]string{"name": name}).DoRaw(t.Context())
			if err == nil && string(got) != want {
				err = fmt.Errorf("got %s, want %s", got, want)
			}
			return err
		})
	}
	if got := f.get(t, "server", "/fetch", map[string]string{"url": "http://web/healthz"}); got != "" {
		t.Errorf("the pod reaches itself through its Service and gets %q", got)
	}
	eventually(t, "reach the Service through the API server", func() error {
		content, err := f.client.CoreV1().Services(namespace).ProxyGet("http", "web", "http", "/state", nil).DoRaw(t.Context())
		if err == nil && !strings.Contains(string(content), `"Hostname":"zero"`) {
			err = fmt.Errorf("another answer: %s", content)
		}
		return err
	})
	_, err := f.client.CoreV1().Pods(namespace).
		ProxyGet("http", "server", "8080", "/resolve", map[string]string{"name": "nothing.default.svc.cluster.local"}).DoRaw(t.Context())
	if err == nil {
		t.Error("a Service that does not exist was resolved")
	}
}

func TestMissingImageIsSaid(t *testing.T) {
	f := shared.use(t)
	pod := newPod("missing-image")
	pod.Spec.Containers[0].Image = "registry.example.com/test/pod:missing"
	f.create(t, pod)
	f.waitForPod(t, pod.Name, func(status corev1.ContainerStatus) error {
		waiting := status.State.Waiting
		if waiting == nil || (waiting.Reason != "ErrImagePull" && waiting.Reason != "ImagePullBackOff") {
			return errors.New("the image is not said to be missing")
		}
		for _, want := range []string{pod.Spec.Containers[0].Image, "MANIFEST_UNKNOWN"} {
			if !strings.Contains(waiting.Message, want) {
				return fmt.Errorf("the message lacks %q", want)
			}
		}
		return nil
	})
}

func TestImageByDigest(t *testing.T) {
	f := shared.use(t)
	pod := newPod("by-digest")
	pod.Spec.Containers[0].Image = "registry.example.com/test/pod@" + f.registry.digest
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
}

func TestContainerIsRestarted(t *testing.T) {
	f := shared.use(t)
	pod := newPod("exits")
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
	// The connection breaks with the process, so there is no answer to look at.
	_, _ = f.client.CoreV1().Pods(namespace).ProxyGet("http", pod.Name, "8080", "/exit", map[string]string{"code": "3"}).DoRaw(t.Context())
	f.waitForPod(t, pod.Name, func(status corev1.ContainerStatus) error {
		ended := status.LastTerminationState.Terminated
		if status.RestartCount != 1 || ended == nil || ended.ExitCode != 3 || ended.Reason != "Error" {
			return errors.New("not restarted after exit code 3")
		}
		return ready(status)
	})
	logs, err := f.client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Previous: true}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(logs), "exiting with 3") {
		t.Errorf("the log of the previous container is %q, %v", logs, err)
	}
}

func TestFailedLivenessProbeRestarts(t *testing.T) {
	f := shared.use(t)
	pod := newPod("unhealthy")
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
		PeriodSeconds:    1,
		FailureThreshold: 2,
	}
	now := int64(1)
	pod.Spec.TerminationGracePeriodSeconds = &now
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
	f.get(t, pod.Name, "/fail", nil)
	f.waitForPod(t, pod.Name, func(status corev1.ContainerStatus) error {
		if status.RestartCount == 0 {
			return errors.New("not restarted")
		}
		return ready(status)
	})
}

// A container that is told to end when its program has just begun hears it, and is not killed at the
// end of its grace period of 30 s.
func TestContainerIsStoppedAtOnce(t *testing.T) {
	f := shared.use(t)
	for i := range 10 {
		pod := newPod(fmt.Sprintf("short-lived-%d", i))
		pod.Labels = map[string]string{"app": "short-lived"}
		f.create(t, pod)
		time.Sleep(time.Duration(i) * 50 * time.Millisecond) // one of them begins just then
		if err := f.client.CoreV1().Pods(namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	last := time.Now()
	eventually(t, "the end of the pods", func() error {
		pods, err := f.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=short-lived"})
		if err == nil && len(pods.Items) > 0 {
			err = fmt.Errorf("%s and %d others are still there", pods.Items[0].Name, len(pods.Items)-1)
		}
		return err
	})
	if took := time.Since(last); took > 20*time.Second {
		t.Errorf("the last pod was gone after %s", took)
	}
}
