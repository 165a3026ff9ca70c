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

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded/embeddedtest"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/crds"
	"github.com/trussiumhq/trussium-operator/operator/manager"
)

const (
	// patience bounds every wait; it is a guard against hanging, not an expectation.
	patience = 30 * time.Second
	pause    = 20 * time.Millisecond
	// quiet is how long nothing may happen for a runtime to count as settled.
	quiet = 500 * time.Millisecond
)

var (
	restConfig *rest.Config
	api        client.Client
)

// The tests act as the Deployment controller themselves, to have its status in hand.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	options := embedded.Options{
		ControllerManagerArgs: []string{"--controllers=*,-deployment-controller,-replicaset-controller"},
	}
	embeddedtest.Main(m, options, func(cluster *embedded.Cluster) {
		if err := prepare(cluster); err != nil {
			fmt.Fprintln(os.Stderr, "prepare the cluster:", err)
			os.Exit(1)
		}
	})
}

func prepare(cluster *embedded.Cluster) error {
	restConfig = rest.CopyConfig(cluster.RESTConfig())
	restConfig.QPS, restConfig.Burst = -1, -1
	scheme, err := manager.NewScheme()
	if err != nil {
		return err
	}
	api, err = client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	_, err = crds.Apply(context.Background(), restConfig)
	return err
}

// operator is a running operator that works in one namespace, and all requests
// that it sends.
type operator struct {
	namespace string
	stop      func()

	mu       sync.Mutex
	requests []string
}

// startOperator runs an operator for one namespace until the test ends.
func startOperator(t *testing.T, namespace string) *operator {
	t.Helper()
	running := &operator{namespace: namespace}
	counted := rest.CopyConfig(restConfig)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			running.record(request)
			return next.RoundTrip(request)
		})
	})

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
	eventually(t, "the operator falls silent", func() error {
		if count := len(o.seen()); count != last {
			last, since = count, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("%d requests so far: %v", last, o.seen())
		}
		return nil
	})
}

// eventually polls until check returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited %s until %s; last seen: %v", patience, what, err)
		}
		time.Sleep(pause)
	}
}

// newNamespace makes a namespace for one test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	return namespace.Name
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

// change reads, mutates and updates an object, again if somebody else was faster.
func change[T client.Object](t *testing.T, object T, mutate func(T), options ...client.UpdateOption) {
	t.Helper()
	eventually(t, "the update is accepted", func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		mutate(object)
		err := api.Update(t.Context(), object, options...)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatalf("update %T %s: %v", object, object.GetName(), err)
		}
		return err
	})
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
	eventually(t, "the Deployment exists", func() error {
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
	eventually(t, "the Deployment's status is written", func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		set(object)
		return api.Status().Update(t.Context(), object, client.FieldOwner("kube-controller-manager"))
	})
}

// waitCondition waits until a condition of a runtime has a status and a reason
// for the runtime's latest generation.
func waitCondition(t *testing.T, namespace, name, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	eventually(t, fmt.Sprintf("%s is %s/%s", kind, status, reason), func() error {
		runtime := get(t, namespace, name, &v1alpha1.TrussiumRuntime{})
		for _, condition := range runtime.Status.Conditions {
			if condition.Type == kind && condition.Status == status && condition.Reason == reason &&
				condition.ObservedGeneration == runtime.Generation {
				found = condition
				return nil
			}
		}
		return fmt.Errorf("generation %d, conditions %s", runtime.Generation, describe(runtime.Status.Conditions))
	})
	return found
}

func describe(conditions []metav1.Condition) string {
	var lines []string
	for _, condition := range conditions {
		lines = append(lines, fmt.Sprintf("%s=%s/%s@%d (%s)", condition.Type, condition.Status, condition.Reason,
			condition.ObservedGeneration, condition.Message))
	}
	return strings.Join(lines, "; ")
}

// reasons are the reasons of all events about a runtime, in the order of their time.
func reasons(t *testing.T, namespace, name string) []string {
	t.Helper()
	var list eventsv1.EventList
	if err := api.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var found []eventsv1.Event
	for _, event := range list.Items {
		if event.Regarding.Kind == v1alpha1.Kind && event.Regarding.Name == name {
			found = append(found, event)
		}
	}
	sortByTime(found)
	var result []string
	for _, event := range found {
		count := int32(1)
		if event.Series != nil {
			count = event.Series.Count
		}
		for range count {
			result = append(result, event.Reason)
		}
	}
	return result
}
