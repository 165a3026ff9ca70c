package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/manager"
	"github.com/trussiumhq/trussium-operator/operator/operatortest"
)

// quiet is how long nothing may happen for a runtime to count as settled.
const quiet = 500 * time.Millisecond

var (
	restConfig *rest.Config
	api        client.Client
)

// The tests act as the Deployment controller themselves, to have its status in hand.
func TestMain(m *testing.M) {
	options := embedded.Options{
		ControllerManagerArgs: []string{"--controllers=*,-deployment-controller,-replicaset-controller"},
	}
	operatortest.Main(m, options, func(config *rest.Config, client client.Client) { restConfig, api = config, client })
}

// operator is a running operator that works in one namespace, and all requests
// that it sends.
type operator struct {
	namespace string
	stop      func()

	mu       sync.Mutex
	requests []string
}

// startOperator runs an operator for one namespace until the test ends. Its requests go
// through wraps, the last first.
func startOperator(t *testing.T, namespace string, wraps ...func(http.RoundTripper) http.RoundTripper) *operator {
	t.Helper()
	running := &operator{namespace: namespace}
	counted := rest.CopyConfig(restConfig)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			running.record(request)
			return next.RoundTrip(request)
		})
	})
	for _, wrap := range wraps {
		counted.Wrap(wrap)
	}

	scheme, err := manager.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cacheOptions := controller.CacheOptions()
	cacheOptions.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	anyName := true
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cacheOptions,
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{SkipNameValidation: &anyName},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controller.Setup(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	running.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	t.Cleanup(running.stop)
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the operator's caches did not sync")
	}
	return running
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// record keeps what is not a watch or the list before one.
func (o *operator) record(request *http.Request) {
	query := request.URL.Query()
	isCache := query.Has("watch") || query.Has("resourceVersion") || query.Has("limit") || query.Has("labelSelector")
	if isCache || !strings.Contains(request.URL.Path, "/namespaces/"+o.namespace+"/") {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = append(o.requests, request.Method+" "+request.URL.Path)
}

func (o *operator) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.requests...)
}

func (o *operator) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests = nil
}

// settle waits until the operator has sent no request for a while.
func (o *operator) settle(t *testing.T) {
	t.Helper()
	last, since := -1, time.Now()
	operatortest.Eventually(t, "the operator falls silent", func() error {
		if count := len(o.seen()); count != last {
			last, since = count, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%d requests so far: %v", last, o.seen())
		}
		return nil
	})
}

func newNamespace(t *testing.T) string {
	t.Helper()
	return operatortest.Namespace(t, api)
}

func create(t *testing.T, object client.Object, options ...client.CreateOption) {
	t.Helper()
	if err := api.Create(t.Context(), object, options...); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func get[T client.Object](t *testing.T, namespace, name string, object T) T {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatalf("read %T %s: %v", object, name, err)
	}
	return object
}

func change[T client.Object](t *testing.T, object T, mutate func(T), options ...client.UpdateOption) {
	t.Helper()
	operatortest.Change(t, api, object, mutate, options...)
}

// minimal is the smallest runtime.
func minimal(namespace, name string) *v1alpha1.TrussiumRuntime {
	return &v1alpha1.TrussiumRuntime{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.TrussiumRuntimeSpec{
			Image:    v1alpha1.ImageSpec{Repository: "ghcr.io/trussiumhq/trussium", Tag: "1.27.0"},
			Provider: v1alpha1.ProviderSpec{Type: v1alpha1.ProviderOllama, Model: "llama3.2"},
		},
	}
}

// createManifest creates the objects of a file in testdata.
func createManifest(t *testing.T, namespace, file string) {
	t.Helper()
	for _, object := range readManifest(t, file) {
		object.SetNamespace(namespace)
		create(t, object)
	}
}

func readManifest(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(content), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// deployment waits for the Deployment of a runtime.
func deployment(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	object := &appsv1.Deployment{}
	operatortest.Eventually(t, "the Deployment exists", func() error {
		return api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
	return object
}

// completeRollout does the Deployment controller's work: all Pods run the latest template.
func completeRollout(t *testing.T, namespace, name string) {
	t.Helper()
	setDeploymentStatus(t, namespace, name, func(deployment *appsv1.Deployment) {
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation,
			Replicas:           replicas,
			UpdatedReplicas:    replicas,
			ReadyReplicas:      replicas,
			AvailableReplicas:  replicas,
		}
	})
}

func setDeploymentStatus(t *testing.T, namespace, name string, set func(*appsv1.Deployment)) {
	t.Helper()
	object := deployment(t, namespace, name)
	operatortest.Eventually(t, "the Deployment's status is written", func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		set(object)
		return api.Status().Update(t.Context(), object, client.FieldOwner("kube-controller-manager"))
	})
}

func waitCondition(t *testing.T, namespace, name, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return operatortest.WaitCondition(t, api, client.ObjectKey{Namespace: namespace, Name: name}, kind, status, reason)
}

func reasons(t *testing.T, namespace, name string) []string {
	t.Helper()
	return operatortest.Reasons(t, api, client.ObjectKey{Namespace: namespace, Name: name})
}
