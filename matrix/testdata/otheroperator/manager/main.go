// Command manager is the kiosk operator.
//
// +kubebuilder:rbac:groups=fair.example.com,resources=kiosks,verbs=get;list;watch
// +kubebuilder:rbac:groups=fair.example.com,resources=kiosks/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set by the linker.
var version = "unknown"

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	retry := time.Second
	manager, err := ctrl.NewManager(config, ctrl.Options{
		HealthProbeBindAddress:        ":8081",
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "kiosks.fair.example.com",
		LeaderElectionReleaseOnCancel: true,
		RetryPeriod:                   &retry,
	})
	if err != nil {
		return fmt.Errorf("set up the manager: %w", err)
	}
	// Ready means that everything can be read that is to be reconciled.
	for resource, object := range map[string]client.Object{
		"kiosks": newKiosk(), "configmaps": &corev1.ConfigMap{}, "services": &corev1.Service{}, "deployments": &appsv1.Deployment{},
	} {
		informer, err := manager.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", resource, err)
		}
		if err := manager.AddReadyzCheck(resource, func(*http.Request) error {
			if !informer.HasSynced() {
				return errors.New("not read yet")
			}
			return nil
		}); err != nil {
			return fmt.Errorf("set up the readiness: %w", err)
		}
	}
	if err := manager.AddHealthzCheck("ping", func(*http.Request) error { return nil }); err != nil {
		return fmt.Errorf("set up the liveness: %w", err)
	}
	reconciler := &kioskReconciler{client: manager.GetClient(), live: manager.GetAPIReader()}
	if err := ctrl.NewControllerManagedBy(manager).Named("kiosk").For(newKiosk()).
		Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Owns(&appsv1.Deployment{}).Complete(reconciler); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	ctrl.Log.Info("starting", "version", version)
	return manager.Start(ctx)
}
