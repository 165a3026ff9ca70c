package manager

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/trussiumhq/trussium-operator/api/v1alpha1"
	"github.com/trussiumhq/trussium-operator/operator/controller"
	"github.com/trussiumhq/trussium-operator/operator/election"
)

// NewScheme knows every kind that the operator reads or writes.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register the Kubernetes kinds: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register TrussiumRuntime: %w", err)
	}
	return scheme, nil
}

// Run runs the operator against the cluster until ctx ends. It then
// finishes running reconciliations, gives back the Lease and returns nil.
func Run(ctx context.Context, cluster *rest.Config, options Options, log logr.Logger) error {
	if err := options.validate(); err != nil {
		return err
	}
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	ready := newReadiness(log.WithName("readiness"))

	cacheOptions := controller.CacheOptions()
	cacheOptions.DefaultWatchErrorHandler = ready.watchFailed
	if options.WatchNamespace != "" {
		cacheOptions.DefaultNamespaces = map[string]cache.Config{options.WatchNamespace: {}}
	}

	shutdown := gracefulShutdown
	// There is one controller by construction; a process may run it more than once.
	anyName := true
	managerOptions := ctrl.Options{
		Scheme: scheme,
		Logger: log,
		Cache:  cacheOptions,
		Metrics: metricsserver.Options{
			BindAddress:    options.MetricsAddress,
			SecureServing:  true,
			FilterProvider: metricsFilter(log.WithName("metrics")),
		},
		// The probes are served below, because their answer names the cause.
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: &shutdown,
		Controller:              config.Controller{SkipNameValidation: &anyName},
	}
	election.Configure(&managerOptions, options.LeaderElect, options.LeaderElectionNamespace)

	operator, err := ctrl.NewManager(cluster, managerOptions)
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	if err := operator.Add(probeServer(options.ProbeAddress, ready)); err != nil {
		return fmt.Errorf("set up the probes: %w", err)
	}
	if err := startCaches(ctx, operator, ready); err != nil {
		return err
	}
	if err := controller.Setup(ctx, operator); err != nil {
		return err
	}

	publishBuildInfo()
	log.Info("starting the operator", "version", CurrentVersion())
	if err := operator.Start(ctx); err != nil {
		return fmt.Errorf("run the operator: %w", err)
	}
	log.Info("the operator has stopped")
	return nil
}

// startCaches registers the caches of all kinds up front. The manager takes part
// in leader election only when all have synced, so that a replica that can't read
// a kind neither becomes Ready nor takes the Lease from one that can.
func startCaches(ctx context.Context, operator ctrl.Manager, ready *readiness) error {
	for _, object := range controller.CachedObjects() {
		resource, err := resourceOf(operator, object)
		if err != nil {
			return err
		}
		informer, err := operator.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("set up the cache of %s: %w", resource, err)
		}
		ready.expect(resource, informer.HasSynced)
	}
	return nil
}

func resourceOf(operator ctrl.Manager, object client.Object) (schema.GroupResource, error) {
	kind, err := apiutil.GVKForObject(object, operator.GetScheme())
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("find the kind of %T: %w", object, err)
	}
	mapping, err := operator.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupResource{}, fmt.Errorf("the cluster does not serve %s; install the operator's CustomResourceDefinition first: %w", kind, err)
	}
	return mapping.Resource.GroupResource(), nil
}

// probeServer serves the probes on every replica, leading or not, from the start.
func probeServer(address string, ready http.Handler) *manager.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(response http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(response, "ok")
	})
	mux.Handle("/readyz", ready)
	timeout := time.Duration(probeTimeout)
	return &manager.Server{
		Name:            "probes",
		Server:          &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: probeTimeout},
		ShutdownTimeout: &timeout,
	}
}
