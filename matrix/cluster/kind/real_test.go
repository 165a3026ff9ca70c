//go:build kind

package kind

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster"
)

// rounds is how often clusters are made and deleted, two at a time.
var rounds = flag.Int("rounds", 2, "how many clusters to make and delete, two at a time")

// hang is a time after which something is taken to be stuck, not slow.
const hang = 5 * time.Minute

func provider(t *testing.T) Provider {
	t.Helper()
	found, err := checkout.Find()
	if err != nil {
		t.Fatal(err)
	}
	return Provider{Repository: found.Repository, CacheDir: found.CacheDir}
}

// traces are what a cluster must not leave on the machine: containers, volumes, networks, loop
// devices and rules of the packet filter.
func traces(t *testing.T) string {
	t.Helper()
	e, err := findEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, args := range [][]string{
		{string(e), "ps", "--all", "--format", "container {{.Names}}"},
		{string(e), "volume", "ls", "--format", "volume {{.Name}}"},
		{string(e), "network", "ls", "--format", "network {{.Name}}"},
		{"losetup", "--list", "--noheadings"},
		{"iptables-save"}, {"ip6tables-save"},
	} {
		out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).Output()
		if err != nil && args[0] == string(e) {
			t.Fatalf("%s: %v", strings.Join(args, " "), err)
		}
		for line := range strings.Lines(string(out)) {
			// Counters, times, and tables that are now there but empty are no traces.
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "*") && line != "COMMIT\n" {
				all = append(all, line)
			}
		}
	}
	return strings.Join(all, "")
}

// A user's kubeconfig that clusters must not touch.
const userKubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: mine\n"

func TestRounds(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, []byte(userKubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	p := provider(t)
	if _, err := Prepare(t.Context(), Source{Repository: p.Repository, CacheDir: p.CacheDir, Kubernetes: DefaultKubernetes, Progress: func(text string) { t.Log(text) }}); err != nil {
		t.Fatal(err)
	}
	before := traces(t)
	var group sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range *rounds {
		slots <- struct{}{}
		dir := filepath.Join(t.TempDir(), "cluster")
		group.Go(func() {
			defer func() { <-slots }()
			if err := round(t, p, dir); err != nil {
				t.Errorf("round %d: %v", i, err)
			}
		})
	}
	group.Wait()
	if after := traces(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if content, err := os.ReadFile(kubeconfig); err != nil || string(content) != userKubeconfig {
		t.Errorf("the user's kubeconfig is now %s, %v", content, err)
	}
}

func round(t *testing.T, p Provider, dir string) error {
	start := time.Now()
	live, err := p.Start(t.Context(), cluster.Spec{Dir: dir})
	if err != nil {
		return err
	}
	ready := time.Since(start)
	start = time.Now()
	if err := answers(t.Context(), live); err != nil {
		return errors.Join(err, live.Stop(t.Context()))
	}
	err = live.Stop(t.Context())
	t.Logf("ready in %s, deleted in %s", ready.Round(time.Millisecond), time.Since(start).Round(time.Millisecond))
	if _, stat := os.Stat(dir); err == nil && !errors.Is(stat, os.ErrNotExist) {
		err = fmt.Errorf("the folder of the cluster: %w", stat)
	}
	return err
}

func answers(ctx context.Context, live cluster.Cluster) error {
	config, err := clientcmd.BuildConfigFromFlags("", live.Kubeconfig())
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if version.GitVersion != "v"+live.Info().Kubernetes {
		return fmt.Errorf("the API server has version %s, want %s", version.GitVersion, live.Info().Kubernetes)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		return fmt.Errorf("%d nodes, %w", len(nodes.Items), err)
	}
	return nil
}

// A start that is cancelled ends soon, and leaves nothing.
func TestCancelledStart(t *testing.T) {
	p := provider(t)
	before := traces(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := make(chan error, 1)
	go func() {
		_, err := p.Start(ctx, cluster.Spec{Dir: filepath.Join(t.TempDir(), "cluster"), Progress: func(text string) {
			if strings.Contains(text, "Starting control-plane") {
				cancel()
			}
		}})
		started <- err
	}()
	select {
	case err := <-started:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled start says %v", err)
		}
	case <-time.After(hang):
		t.Fatal("a cancelled start hangs")
	}
	if after := traces(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// childVariable makes this test program a starter of a cluster in that folder, for the test to kill;
// retainVariable has it retain the cluster.
const (
	childVariable  = "KIND_TEST_CLUSTER"
	retainVariable = "KIND_TEST_RETAIN"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childVariable)
	if dir == "" {
		os.Exit(m.Run())
	}
	found, err := checkout.Find()
	if err == nil {
		spec := cluster.Spec{Dir: dir, Retain: os.Getenv(retainVariable) != ""}
		_, err = Provider{Repository: found.Repository, CacheDir: found.CacheDir}.Start(context.Background(), spec)
	}
	fmt.Println("started:", err) // the test reads it
	time.Sleep(hang)
}

// killedStarter has a process start a cluster in dir, attaches to it, and kills the process.
func killedStarter(t *testing.T, dir string, environment ...string) *Cluster {
	t.Helper()
	child := exec.CommandContext(t.Context(), "/proc/self/exe")
	child.Env = append(append(os.Environ(), childVariable+"="+dir), environment...)
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 200)
	n, err := stdout.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "started: <nil>") {
		t.Fatalf("the starter says %s, %v", line[:n], err)
	}
	attached, err := Attach(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	return attached
}

// A cluster ends with its starter, also when that is killed.
func TestKilledStarter(t *testing.T) {
	before := traces(t)
	dir := filepath.Join(t.TempDir(), "cluster")
	ended := killedStarter(t, dir).Done()
	for deadline := time.Now().Add(hang); traces(t) != before; time.Sleep(pollInterval) {
		if time.Now().After(deadline) {
			t.Fatalf("before:\n%s\nafter:\n%s", before, traces(t))
		}
	}
	<-ended
	if _, err := Attach(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("attached to a cluster that ended: %v", err)
	}
}

// A retained cluster outlives its starter, tells what happened in it, and ends when it is told to.
func TestRetainedCluster(t *testing.T) {
	before := traces(t)
	live := killedStarter(t, filepath.Join(t.TempDir(), "cluster"), retainVariable+"=yes")
	if err := answers(t.Context(), live); err != nil {
		t.Error(err)
	}
	diagnostics := t.TempDir()
	if err := live.Diagnose(t.Context(), diagnostics); err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{"*.yaml", "logs/*/kubelet.log", "logs/*/containers/kube-apiserver-*.log"} {
		if found, err := filepath.Glob(filepath.Join(diagnostics, pattern)); err != nil || len(found) == 0 {
			t.Errorf("the diagnostics have no %s (%v)", pattern, err)
		}
	}
	if err := live.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if after := traces(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
