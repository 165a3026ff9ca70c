//go:build linux

package embedded

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func newClient(t *testing.T, c *Cluster) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// expectEnd waits until the cluster says that it has ended.
func expectEnd(t *testing.T, c *Cluster) {
	t.Helper()
	select {
	case <-c.Done():
	case <-time.After(gone):
		t.Fatalf("Done is still open %s after the end", gone)
	}
}

func TestAPIOnlyClusterStartsAndStops(t *testing.T) {
	interfaces := interfaceNames(t)
	built, err := Options{}.withDefaults() // so that the time below is without a build
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Build(t.Context(), built.Repository, built.CacheDir, built.Kubernetes, nil); err != nil {
		t.Fatal(err)
	}
	// As deep as folders of real use: a unix socket's path could not be that long.
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30), "state")
	started := time.Now()
	c, err := Start(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("API ready after %s", time.Since(started).Round(10*time.Millisecond))
	defer c.Stop(context.Background())
	version, err := newClient(t, c).Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if want := "v" + DefaultKubernetes; version.GitVersion != want || "v"+c.Info().Kubernetes != want {
		t.Errorf("the API server is %s, Info says %s, want %s", version.GitVersion, c.Info().Kubernetes, want)
	}
	info, err := os.Stat(c.Kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig's mode is %v, %v, want 0600", info.Mode(), err)
	}
	if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second cluster in the same folder: %v", err)
	}
	processes := descendants(t, c.handle.process.Pid)
	stopping := time.Now()
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %s", time.Since(stopping).Round(10*time.Millisecond))
	expectEnd(t, c)
	expectNothingLeft(t, processes, dir, interfaces)
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestKeptFolderHoldsTheLogs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c, err := Start(t.Context(), Options{Dir: dir, Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "logs", "kube-apiserver.log")); err != nil {
		t.Error(err)
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, err := Start(t.Context(), Options{Dir: dir, APIServerArgs: []string{"--no-such-flag"}})
	if err == nil {
		t.Fatal("a cluster started with a flag that does not exist")
	}
	for _, want := range []string{"kube-apiserver", "unknown flag: --no-such-flag"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "someone's")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Start(t.Context(), Options{Dir: dir})
	if err == nil {
		_ = c.Stop(t.Context())
		t.Fatal("a cluster started in a folder with someone's file")
	}
	if _, statErr := os.Stat(file); statErr != nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("the file: %v; the error: %v", statErr, err)
	}
}

func TestUnknownVersionNamesTheKnown(t *testing.T) {
	_, err := Start(t.Context(), Options{Kubernetes: "1.2.3"})
	if err == nil || !strings.Contains(err.Error(), DefaultKubernetes) {
		t.Errorf("the error does not name %s: %v", DefaultKubernetes, err)
	}
}

func TestCancelledStartLeavesNothing(t *testing.T) {
	f := shared.use(t)
	interfaces := interfaceNames(t)
	dir := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := Start(ctx, Options{Dir: dir, Node: true})
		failed <- err
	}()
	eventually(t, "the API server's start", func() error {
		_, err := os.Stat(filepath.Join(dir, "logs", "kube-apiserver.log"))
		return err
	})
	others := descendants(t, f.cluster.handle.process.Pid)
	processes := descendants(t, os.Getpid())[1:] // without this one
	processes = slicesWithout(processes, others)
	cancel()
	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the start failed with %v", err)
		}
	case <-time.After(gone):
		t.Fatalf("Start has not returned %s after it was cancelled", gone)
	}
	expectNothingLeft(t, processes, dir, interfaces)
}

func slicesWithout(all, without []processID) []processID {
	var rest []processID
	excluded := map[processID]bool{}
	for _, p := range without {
		excluded[p] = true
	}
	for _, p := range all {
		if !excluded[p] {
			rest = append(rest, p)
		}
	}
	return rest
}

func TestKilledClusterLeavesNoProcess(t *testing.T) {
	interfaces := interfaceNames(t)
	dir := filepath.Join(t.TempDir(), "state")
	c, err := Start(t.Context(), Options{Dir: dir, Node: true})
	if err != nil {
		t.Fatal(err)
	}
	processes := descendants(t, c.handle.process.Pid)
	if err := c.handle.process.Kill(); err != nil {
		t.Fatal(err)
	}
	expectEnd(t, c)
	// Its folder is still there, and another cluster can have it.
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	next, err := Start(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectNothingLeft(t, processes, dir, interfaces)
}

// A cluster whose component ends is over. What it logged can still be gathered.
func TestFailedClusterLeavesItsLogs(t *testing.T) {
	for name, node := range map[string]bool{"API only": false, "with a node": true} {
		t.Run(name, func(t *testing.T) {
			interfaces := interfaceNames(t)
			dir := filepath.Join(t.TempDir(), "state")
			c, err := Start(t.Context(), Options{Dir: dir, Node: node})
			if err != nil {
				t.Fatal(err)
			}
			processes := descendants(t, c.handle.process.Pid)
			killComponent(t, processes, "kube-apiserver")
			expectEnd(t, c)
			diagnostics := t.TempDir()
			_ = c.Diagnose(t.Context(), diagnostics) // there is no API server to ask for objects
			log := filepath.Join(diagnostics, "logs", "kube-apiserver.log")
			if info, err := os.Stat(log); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", log, err)
			}
			if err := c.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			expectNothingLeft(t, processes, dir, interfaces)
		})
	}
}

// killComponent kills the process of the cluster that runs the component.
func killComponent(t *testing.T, processes []processID, component string) {
	t.Helper()
	for _, p := range processes {
		content, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
		if arguments := strings.Split(string(content), "\x00"); len(arguments) > 1 && arguments[1] == component {
			process, err := os.FindProcess(p.pid)
			if err != nil {
				t.Fatal(err)
			}
			if err := process.Kill(); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no process of the cluster is %s", component)
}

// holder is another process of this test program, which holds a cluster.
func holder(t *testing.T, dir string, retain bool) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), holderVariable+"="+dir)
	if retain {
		cmd.Env = append(cmd.Env, holderRetains+"=1")
	}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return cmd
}

func TestClusterEndsWithItsKilledStarter(t *testing.T) {
	f := shared.use(t)
	interfaces := interfaceNames(t)
	dir := filepath.Join(t.TempDir(), "state")
	t.Setenv(holderMirror, f.registry.url)
	starter := holder(t, dir, false)
	c, err := Attach(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	// With a running container there is something to leave behind.
	other := &fixture{cluster: c, client: newClient(t, c)}
	if _, err := other.client.CoreV1().Pods(namespace).Create(t.Context(), newPod("left"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	other.waitForPod(t, "left", ready)
	processes := descendants(t, starter.Process.Pid)
	if err := starter.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	expectNothingLeft(t, processes, dir, interfaces)
	expectEnd(t, c)
}

// A cluster whose starter was killed takes its time to end, and deletes its folder last of all.
// Another one that is started there meanwhile must not lose its own state to that.
func TestNextClusterWaitsForTheEndOfTheFormer(t *testing.T) {
	f := shared.use(t)
	dir := filepath.Join(t.TempDir(), "state")
	t.Setenv(holderMirror, f.registry.url)
	starter := holder(t, dir, false)
	former := descendants(t, starter.Process.Pid)
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	folder, err := claim(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range former {
		// The last one gives the folder back on its way out, when it has no memory any more.
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); len(command) > 0 && alive(p) {
			t.Errorf("process %d of the former cluster is still there: %q", p.pid, command)
		}
	}
	folder.Close()
	next, err := Start(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer next.Stop(context.Background())
	if _, err := os.Stat(next.Kubeconfig()); err != nil {
		t.Errorf("the folder of the next cluster: %v", err)
	}
	if err := next.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRetainedClusterOutlivesItsStarter(t *testing.T) {
	interfaces := interfaceNames(t)
	dir := filepath.Join(t.TempDir(), "state")
	starter := holder(t, dir, true)
	if err := starter.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	c, err := Attach(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newClient(t, c).Discovery().ServerVersion(); err != nil {
		t.Fatalf("the API server does not answer after the end of its starter: %v", err)
	}
	if c.Info().Control == "" || c.Info().Provider != ProviderName {
		t.Errorf("an attached cluster says %+v of itself", c.Info())
	}
	processes := descendants(t, c.handle.process.Pid)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	expectEnd(t, c)
	expectNothingLeft(t, processes, dir, interfaces)
	if _, err := Attach(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("attaching to a stopped cluster: %v, want ErrNotRunning", err)
	}
}

func TestDiagnoseWritesLogsAndObjects(t *testing.T) {
	f := shared.use(t)
	pod := newPod("diagnosed")
	f.create(t, pod)
	f.waitForPod(t, pod.Name, ready)
	dir := t.TempDir()
	if err := f.cluster.Diagnose(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"logs/kube-apiserver.log", "logs/node.log", "events.yaml", "leases.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	pods, err := os.ReadFile(filepath.Join(dir, "pods.yaml"))
	if err != nil || !strings.Contains(string(pods), "name: diagnosed") {
		t.Errorf("pods.yaml does not show the pod: %v", err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "pod-logs", "default_diagnosed_*", "pod", "0.log"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("the container's log: %v, %v", logs, err)
	}
	if log, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(log), "listening on :8080") {
		t.Errorf("the container's log is %q, %v", log, err)
	}
}
