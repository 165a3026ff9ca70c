//go:build linux

package embedded

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
)

// hang is a time after which something is taken to be stuck, not slow.
const hang = 2 * time.Minute

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		holdCluster(dir)
		return
	}
	code := m.Run()
	shared.stop()
	os.Exit(code)
}

// fixture is the cluster with a node that most tests share, and the registry it pulls from.
type fixture struct {
	once     sync.Once
	err      error
	cluster  *Cluster
	client   *kubernetes.Clientset
	registry *testRegistry
}

var shared fixture

// use returns the shared cluster, started on first use.
func (f *fixture) use(t *testing.T) *fixture {
	t.Helper()
	f.once.Do(func() { f.err = f.start() })
	if f.err != nil {
		t.Fatal(f.err)
	}
	return f
}

func (f *fixture) start() error {
	var err error
	if f.registry, err = startRegistry(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), hang)
	defer cancel()
	started := time.Now()
	f.cluster, err = Start(ctx, Options{
		Node:     true,
		Mirrors:  map[string]string{"registry.example.com": f.registry.url},
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	})
	if err != nil {
		return err
	}
	fmt.Printf("cluster with a node ready after %s\n", time.Since(started).Round(10*time.Millisecond))
	f.client, err = kubernetes.NewForConfig(f.cluster.RESTConfig())
	return err
}

func (f *fixture) stop() {
	if f.cluster != nil {
		if err := f.cluster.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if f.registry != nil {
		f.registry.stop()
	}
}

// The first makes this test program a process that holds a cluster in that folder, for
// tests that kill it: one with a node that pulls through a mirror or, with the other, a
// retained API server.
const (
	holderVariable = "EMBEDDED_TEST_HOLD"
	holderMirror   = "EMBEDDED_TEST_HOLD_MIRROR"
	holderRetains  = "EMBEDDED_TEST_HOLD_RETAINED"
)

// holdCluster starts a cluster in dir and keeps it until this process is killed.
func holdCluster(dir string) {
	options := Options{
		Dir:     dir,
		Node:    true,
		Mirrors: map[string]string{"registry.example.com": os.Getenv(holderMirror)},
	}
	if os.Getenv(holderRetains) != "" {
		options = Options{Dir: dir, Retain: true}
	}
	cluster, err := Start(context.Background(), options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ready") // the test reads it
	<-cluster.Done()
}

// eventually polls until look returns nil; it fails with what it saw last.
func eventually(t *testing.T, what string, look func() error) {
	t.Helper()
	deadline := time.Now().Add(hang)
	for {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
