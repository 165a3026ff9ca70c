package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
)

const (
	// hangGuard ends what would otherwise wait for ever.
	hangGuard = time.Minute
	// failingAssert is how long an assertion is tried that a test wants to fail.
	failingAssert = 5 * time.Second
)

// config reaches the API server of all tests.
var config *rest.Config

func TestMain(m *testing.M) {
	// Chainsaw waits for the end of the namespaces that it made.
	options := embedded.Options{ControllerManagerArgs: []string{"--controllers=namespace-controller"}}
	embeddedtest.Main(m, options, func(c *embedded.Cluster) { config = c.RESTConfig() })
}

// errTooSlow says what to do when go test's time limit is shorter than the first build.
var errTooSlow = errors.New("go test's time limit is near and chainsaw is not built: the progress is kept in Go's build cache, run the tests again")

var chainsaw struct {
	once sync.Once
	path string
	err  error
}

// buildChainsaw returns the pinned chainsaw, built once for all tests; the first time on a
// machine this takes minutes.
func buildChainsaw(t *testing.T) string {
	t.Helper()
	chainsaw.once.Do(func() {
		ctx := context.Background()
		if deadline, limited := t.Deadline(); limited {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadlineCause(ctx, deadline.Add(-hangGuard), errTooSlow)
			defer cancel()
		}
		var cache, repository string
		if cache, chainsaw.err = os.UserCacheDir(); chainsaw.err != nil {
			return
		}
		if repository, chainsaw.err = filepath.Abs("../.."); chainsaw.err != nil {
			return
		}
		progress := func(line string) { fmt.Fprintln(os.Stderr, line) }
		chainsaw.path, chainsaw.err = Program(repository).Cached(ctx, filepath.Join(cache, "trussium-matrix"), progress)
		if ctx.Err() != nil {
			chainsaw.err = context.Cause(ctx)
		}
	})
	if chainsaw.err != nil {
		t.Fatal(chainsaw.err)
	}
	return chainsaw.path
}

// installAPI gives the API server the chart's TrussiumRuntime, once for all tests.
var installAPI = sync.OnceValue(func() error {
	content, err := os.ReadFile("../../charts/trussium-operator/crds/runtime.trussium.io_trussiumruntimes.yaml")
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &definition); err != nil {
		return err
	}
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), hangGuard)
	defer cancel()
	created, err := client.ApiextensionsV1().CustomResourceDefinitions().Create(ctx, &definition, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for !established(created) {
		if created, err = client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, created.Name, metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
})

func established(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}

// stage is a played operator, the way to it, and a request for a run against it.
type stage struct {
	t       *testing.T
	runner  Runner
	gateway *gateway
	dynamic dynamic.Interface
	client  kubernetes.Interface
	request Request
}

// newStage plays an operator with that fault for the runtime, whose name is unique among
// the tests.
func newStage(t *testing.T, runtime string, fault fault) *stage {
	t.Helper()
	if err := installAPI(); err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t:       t,
		runner:  Runner{Suite: Suite{Dir: suiteDir}, Chainsaw: buildChainsaw(t)},
		gateway: newGateway(t, config, runtime),
		dynamic: dynamic.NewForConfigOrDie(config),
		client:  kubernetes.NewForConfigOrDie(config),
	}
	s.request = Request{
		Kubeconfig: s.gateway.kubeconfig,
		Values:     Values{Runtime: runtime, Repository: "registry.example/trussium", From: "1.27", To: "1.27.1"},
		LogDir:     t.TempDir(),
	}
	operator := &playedOperator{t: t, fault: fault, looked: s.gateway.looked, dynamic: s.dynamic, events: s.client}
	operator.play(runtime)
	return s
}

func (s *stage) run(scenario string) Result {
	s.t.Helper()
	s.request.Scenario = scenario
	result, err := s.runner.Run(s.t.Context(), s.request)
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// namespace makes a namespace with a runtime at the first image in it.
func (s *stage) namespace() {
	s.t.Helper()
	values := s.request.Values
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: values.Runtime}}
	if _, err := s.client.CoreV1().Namespaces().Create(s.t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
	s.request.Namespace = namespace.Name
	runtime := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "runtime.trussium.io/v1alpha1",
		"kind":       "TrussiumRuntime",
		"metadata":   map[string]any{"name": values.Runtime},
		"spec": map[string]any{
			"image":    map[string]any{"repository": values.Repository, "tag": values.From},
			"provider": map[string]any{"type": "openai", "model": "kept"},
		},
	}}
	if _, err := s.dynamic.Resource(runtimes).Namespace(namespace.Name).Create(s.t.Context(), runtime, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func TestScenariosRunAlone(t *testing.T) {
	for _, scenario := range []string{"roll-forward", "roll-back"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, "alone-"+scenario, noFault)
			if result := s.run(scenario); !result.Passed {
				t.Fatalf("failed: %s", result.Failures())
			}
			left, err := s.dynamic.Resource(runtimes).List(t.Context(), metav1.ListOptions{
				FieldSelector: "metadata.name=" + s.request.Values.Runtime,
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(left.Items) > 0 {
				t.Errorf("runtime %s is left behind", s.request.Values.Runtime)
			}
		})
	}
}

// Two scenarios in one run of chainsaw, of which one fails.
func TestRunAll(t *testing.T) {
	t.Parallel()
	s := newStage(t, "several", noFault)
	s.request.AssertTimeout = failingAssert
	var mu sync.Mutex
	began := map[string]bool{}
	s.request.Progress = func(step string) {
		mu.Lock()
		defer mu.Unlock()
		began[step] = true
	}
	// Nobody plays an operator for the runtimes that other scenarios make.
	results, err := s.runner.RunAll(t.Context(), s.request, "scale-to-zero", "roll-forward")
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || results[0].Name != "scale-to-zero" || results[0].Passed || results[1].Name != "roll-forward" || !results[1].Passed {
		t.Errorf("want a failed scale-to-zero and a passed roll-forward:\n%s\n%s", results[0].Failures(), results[1].Failures())
	}
	for _, step := range []string{"scale-to-zero: all conditions are well", "roll-forward: settled at the target image"} {
		if !began[step] {
			t.Errorf("the beginning of %q was not told: %v", step, began)
		}
	}
}

// The matrix lets the scenarios work on a runtime that it made, one after the other.
func TestScenariosShareARuntime(t *testing.T) {
	t.Parallel()
	s := newStage(t, "shared", noFault)
	s.namespace()
	for _, scenario := range []string{"roll-forward", "roll-back", "roll-forward"} {
		if result := s.run(scenario); !result.Passed {
			t.Fatalf("%s failed: %s", scenario, result.Failures())
		}
	}
	kept, err := s.dynamic.Resource(runtimes).Namespace("shared").Get(t.Context(), "shared", metav1.GetOptions{})
	if err != nil {
		t.Fatalf("the runtime is not kept: %v", err)
	}
	if model, _, _ := unstructured.NestedString(kept.Object, "spec", "provider", "model"); model != "kept" {
		t.Errorf("spec.provider.model is %q: the scenario changed more than the image", model)
	}
}

func TestScenariosFindFaults(t *testing.T) {
	for name, test := range map[string]struct {
		fault fault
		step  string
		words []string
	}{
		"records-early":      {recordsEarly, "the last successful image stays while rolling", []string{"status.lastSuccessfulImage", `"registry.example/trussium:1.27.1"`, `Expected value: "registry.example/trussium:1.27"`}},
		"keeps-current":      {keepsCurrent, "settled at the target image", []string{"status.currentImage", `"registry.example/trussium:1.27"`, `Expected value: "registry.example/trussium:1.27.1"`}},
		"never-completes":    {neverCompletes, "the upgrade completes", []string{"Upgrading", `"True UpgradeInProgress"`, `Expected value: "False UpgradeComplete"`}},
		"ends-not-ready":     {endsNotReady, "settled at the target image", []string{"Ready", `"False"`, `Expected value: "True"`}},
		"starts-twice":       {startsTwice, "one started and one completed event", []string{`"RuntimeUpgradeStarted, RuntimeUpgradeStarted, RuntimeUpgradeCompleted"`, `Expected value: "RuntimeUpgradeStarted, RuntimeUpgradeCompleted"`}},
		"completes-silently": {completesSilently, "one started and one completed event", []string{`Invalid value: "RuntimeUpgradeStarted"`}},
		"confuses-images":    {confusesImages, "one started and one completed event", []string{`Invalid value: ""`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, name, test.fault)
			s.namespace()
			s.request.AssertTimeout = failingAssert
			result := s.run("roll-forward")
			if result.Passed {
				t.Fatalf("passed although the operator has the fault: %s", test.fault)
			}
			last := result.Steps[len(result.Steps)-1]
			if last.Passed || last.Name != test.step {
				t.Fatalf("the last step is %q (passed: %v), want a failure of %q\n%s", last.Name, last.Passed, test.step, result.Failures())
			}
			for _, words := range test.words {
				if !strings.Contains(last.Failure, words) {
					t.Errorf("the failure does not say %s:\n%s", words, last.Failure)
				}
			}
		})
	}
}

// A value that is missing is told at once, and not after minutes of trying.
func TestMissingValues(t *testing.T) {
	t.Parallel()
	s := newStage(t, "valueless", noFault)
	s.request.Values.To = ""
	result := s.run("chain-a-b-c")
	if result.Passed || len(result.Steps) == 0 || result.Duration > failingAssert {
		t.Fatalf("want a failure at once, not after %s:\n%s", result.Duration, strings.Join(result.Lines(), "\n"))
	}
	if told := result.Failures(); !strings.Contains(told, `["to","third"]`) {
		t.Errorf("the failure does not name the values to and third:\n%s", told)
	}
}

func TestCancelLeavesNoProcess(t *testing.T) {
	t.Parallel()
	s := newStage(t, "cancelled", neverCompletes)
	s.namespace()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		// The scenario is at work once it reads its runtime.
		if s.gateway.looked(ctx) == nil {
			cancel()
		}
	}()
	s.request.Scenario = "roll-forward"
	_, err := s.runner.Run(ctx, s.request)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v, want context.Canceled", err)
	}
	if left := processesNaming(t, s.request.LogDir); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

// processesNaming returns the command lines of the processes that have the text in theirs.
func processesNaming(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Fatalf("list processes: %v", err)
	}
	var found []string
	for _, file := range files {
		// A process may end between the list and the look.
		line, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(line), text) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// What keeps a scenario from running says nothing about the product, so it is an error.
func TestRunErrors(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, s *stage)
		want    string
	}{
		"unknown scenario": {
			prepare: func(t *testing.T, s *stage) { s.request.Scenario = "roll-sideways" },
			want:    "there is no roll-sideways/chainsaw-test.yaml",
		},
		"cluster away": {
			prepare: func(t *testing.T, s *stage) {
				s.request.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
				writeKubeconfig(t, s.request.Kubeconfig, "http://127.0.0.1:1")
			},
			want: "connect: connection refused",
		},
		"scenario in error": {
			prepare: func(t *testing.T, s *stage) {
				s.spoilSuite("roll-forward/chainsaw-test.yaml", "steps:", "stages:")
			},
			want: "read chainsaw's report",
		},
		"expression in error": {
			prepare: func(t *testing.T, s *stage) {
				s.spoilSuite("roll-forward/chainsaw-test.yaml", "($values.runtime ||", "(join($values.runtime) ||")
			},
			want: "that its report does not explain",
		},
		"crash": {
			prepare: func(t *testing.T, s *stage) {
				s.runner.Chainsaw = filepath.Join(t.TempDir(), "chainsaw")
				if err := os.WriteFile(s.runner.Chainsaw, []byte("#!/bin/sh\necho panic >&2\nexit 2\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			},
			want: "chainsaw: exit status 2",
		},
		"no chainsaw": {
			prepare: func(t *testing.T, s *stage) { s.runner.Chainsaw = filepath.Join(t.TempDir(), "chainsaw") },
			want:    "no such file or directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, strings.ReplaceAll(name, " ", "-"), noFault)
			s.request.Scenario = "roll-forward"
			s.request.AssertTimeout = failingAssert
			test.prepare(t, s)
			result, err := s.runner.Run(t.Context(), s.request)
			if err == nil {
				t.Fatalf("no error, but the result %+v", result)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "run scenario "+s.request.Scenario) {
				t.Errorf("the error does not say %q:\n%v", test.want, err)
			}
		})
	}
}

// spoilSuite lets the runner use a copy of the suite with one text replaced.
func (s *stage) spoilSuite(file, old, replacement string) {
	s.t.Helper()
	dir := s.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(suiteDir)); err != nil {
		s.t.Fatal(err)
	}
	spoil(s.t, filepath.Join(dir, file), old, replacement)
	s.runner.Suite.Dir = dir
}
