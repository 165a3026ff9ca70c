package trial

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/checkout"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/gobuild"
	"github.com/trussiumhq/trussium-operator/matrix/scenario"
	"github.com/trussiumhq/trussium-operator/operator/crds"
)

const (
	// atOnce is how many operators are tried at the same time, unless the command line says
	// otherwise: they wait more than they work.
	atOnce = 8
	// controlSize is how many scenarios an operator without a fault runs, one after the other.
	controlSize = 5
	// patience is how long an assertion is tried that a fault may keep from holding; without a
	// fault it is the suite's own time.
	patience      = 30 * time.Second
	suitePatience = 0
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(atOnce)); err != nil {
			panic(err) // there is no such flag any more
		}
	}
	os.Exit(m.Run())
}

// TestFaults runs every scenario against an operator with the fault that it is there for, and
// against one without. All the operators are of the checkout, but for the fault; each works in
// a namespace of its own.
func TestFaults(t *testing.T) {
	ctx := t.Context()
	places, err := checkout.Find()
	must(t, err)
	suite := scenario.Suite{Dir: filepath.Join(places.Repository, "chainsaw")}
	all, err := suite.Scenarios(labels.Everything())
	must(t, err)
	names := scenario.Names(all)
	for _, fault := range faults {
		for name := range fault.caught {
			if !slices.Contains(names, name) {
				t.Errorf("fault %s is for the scenario %s, which does not exist", fault.name, name)
			}
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.caught[name] != "" }) {
			t.Errorf("there is no fault for the scenario %s", name)
		}
	}
	tell := func(text string) { fmt.Fprintln(os.Stderr, text) }
	operator := buildSeeded(t, places.Repository)
	chainsaw, err := scenario.Program(places.Repository).Cached(ctx, places.CacheDir, tell)
	must(t, err)
	images, err := Resolve(ctx, &artifact.Builder{Repository: places.Repository, CacheDir: places.CacheDir, Progress: tell}, Usual)
	must(t, err)
	stage, err := Start(ctx, Options{Provider: embedded.Provider{}, Dir: t.TempDir(), Images: images, Progress: tell})
	must(t, err)
	t.Cleanup(func() { must(t, stage.Stop(context.Background())) })
	config, err := clientcmd.BuildConfigFromFlags("", stage.Cluster.Kubeconfig())
	must(t, err)
	_, err = crds.Apply(ctx, config)
	must(t, err)
	client, err := kubernetes.NewForConfig(config)
	must(t, err)

	lab := lab{stage: stage, client: client, operator: operator, runner: scenario.Runner{Suite: suite, Chainsaw: chainsaw}}
	t.Run("operators", func(t *testing.T) {
		for part := range slices.Chunk(names, controlSize) {
			t.Run("without a fault", func(t *testing.T) {
				t.Parallel()
				for _, result := range lab.run(t, "control-"+part[0], "", suitePatience, part) {
					if !result.Passed {
						t.Errorf("%s fails without a fault:\n%s", result.Name, result.Failures())
					}
				}
			})
		}
		for _, fault := range faults {
			t.Run(fault.name, func(t *testing.T) {
				t.Parallel()
				for _, result := range lab.run(t, "fault-"+fault.name, fault.name, patience, slices.Sorted(maps.Keys(fault.caught))) {
					lab.judge(t, fault, result)
				}
			})
		}
	})
	slices.Sort(lab.table)
	t.Logf("\nSCENARIO / FAULT / STEP THAT CAUGHT IT\n%s", strings.Join(lab.table, "\n"))
}

// lab is what the trials share.
type lab struct {
	stage    *Stage
	client   kubernetes.Interface
	operator string
	runner   scenario.Runner

	mu    sync.Mutex
	table []string
}

// run runs the scenarios in a new namespace with an operator of its own.
func (l *lab) run(t *testing.T, namespace, fault string, patience time.Duration, scenarios []string) []scenario.Result {
	t.Helper()
	_, err := l.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	runOperator(t, l.operator, l.stage.Cluster.Kubeconfig(), namespace, fault)
	results, err := l.runner.RunAll(t.Context(), scenario.Request{
		Kubeconfig: l.stage.Cluster.Kubeconfig(), Namespace: namespace, Values: l.stage.Values,
		AssertTimeout: patience, LogDir: t.TempDir(),
	}, scenarios...)
	must(t, err)
	return results
}

// judge wants the scenario to be red at the step that is there for the fault.
func (l *lab) judge(t *testing.T, fault fault, result scenario.Result) {
	t.Helper()
	i := slices.IndexFunc(result.Steps, func(step scenario.Step) bool { return !step.Passed })
	if i < 0 {
		t.Errorf("%s passes although the operator has the fault %s: %s", result.Name, fault.name, fault.text)
		return
	}
	if got, want := result.Steps[i].Name, fault.caught[result.Name]; got != want {
		t.Errorf("%s is red at the step %q, want %q:\n%s", result.Name, got, want, result.Failures())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.table = append(l.table, fmt.Sprintf("%-34s %-24s %s", result.Name, fault.name, result.Steps[i].Name))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// buildSeeded builds the operator with all faults in it, of which the environment turns one on.
func buildSeeded(t *testing.T, repository string) string {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	put := func(path string, content []byte) {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		must(t, os.WriteFile(file, content, 0o600))
		replaced[filepath.Join(repository, path)] = file
	}
	sources := map[string][]byte{}
	for _, fault := range faults {
		for _, edit := range fault.edits {
			source, known := sources[edit.file]
			if !known {
				var err error
				source, err = os.ReadFile(filepath.Join(repository, edit.file))
				must(t, err)
			}
			if count := bytes.Count(source, []byte(edit.old)); count != 1 {
				t.Fatalf("fault %s: %s holds %d times %q, want once: seed the fault anew", fault.name, edit.file, count, edit.old)
			}
			switched := strings.ReplaceAll(edit.new, "SEEDED", fmt.Sprintf("seeded(%q)", fault.name))
			sources[edit.file] = bytes.Replace(source, []byte(edit.old), []byte(switched), 1)
		}
	}
	packages := map[string]bool{}
	for path, source := range sources {
		put(path, source)
		packages[filepath.Dir(path)] = true
	}
	for path := range packages {
		put(filepath.Join(path, "seeded.go"), fmt.Appendf(nil, seededFile, filepath.Base(path)))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	must(t, err)
	overlayFile := filepath.Join(dir, "overlay.json")
	must(t, os.WriteFile(overlayFile, overlay, 0o600))
	program := gobuild.Program{Dir: repository, Package: "./operator", Overlay: overlayFile}
	binary := filepath.Join(dir, "manager")
	must(t, program.Build(t.Context(), binary, func(text string) { fmt.Fprintln(os.Stderr, text) }))
	return binary
}

// seededFile is added to every package with a fault.
const seededFile = `package %s

import "os"

func seeded(fault string) bool { return os.Getenv("SEEDED_FAULT") == fault }
`

// runOperator runs the operator in the namespace until the test ends.
func runOperator(t *testing.T, binary, kubeconfig, namespace, fault string) {
	t.Helper()
	var log logBuffer
	cmd := exec.Command(binary, "--kubeconfig="+kubeconfig, "--watch-namespace="+namespace, "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "SEEDED_FAULT="+fault)
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("the operator ended by itself: %v", err)
		default:
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
		}
		if t.Failed() {
			t.Logf("the end of the operator's log:\n%s", log.end())
		}
	})
}

// logBuffer keeps what a process writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *logBuffer) end() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	const most = 4000
	text := b.text.String()
	return text[max(0, len(text)-most):]
}
