package manager

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// gracefulShutdown is how long running reconciliations may take to finish after
	// SIGTERM. The chart's termination grace period is longer.
	gracefulShutdown = 15 * time.Second

	// probeTimeout bounds reading one probe request and closing the probe server.
	probeTimeout = 5 * time.Second
)

// Options configure the manager.
type Options struct {
	// MetricsAddress is where metrics are served over HTTPS; "0" turns them off.
	MetricsAddress string
	// ProbeAddress is where /healthz and /readyz are served over HTTP.
	ProbeAddress string
	// LeaderElect makes sure that only one replica works at a time.
	LeaderElect bool
	// LeaderElectionNamespace holds the Lease; empty means the Pod's own namespace.
	LeaderElectionNamespace string
	// WatchNamespace restricts the operator to one namespace; empty means all.
	WatchNamespace string
	// LogLevel is the lowest level that is logged.
	LogLevel slog.Level
}

// DefaultOptions are the options of a manager started without flags.
func DefaultOptions() Options {
	return Options{
		MetricsAddress: ":8443",
		ProbeAddress:   ":8081",
		LogLevel:       slog.LevelInfo,
	}
}

// AddFlags binds the options to command line flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.MetricsAddress, "metrics-bind-address", o.MetricsAddress,
		`address that serves metrics over HTTPS to authorized clients; "0" turns metrics off`)
	flags.StringVar(&o.ProbeAddress, "health-probe-bind-address", o.ProbeAddress,
		"address that serves /healthz and /readyz")
	flags.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect,
		"work only while holding the leader election Lease")
	flags.StringVar(&o.LeaderElectionNamespace, "leader-election-namespace", o.LeaderElectionNamespace,
		"namespace of the leader election Lease (default: the Pod's own)")
	flags.StringVar(&o.WatchNamespace, "watch-namespace", o.WatchNamespace,
		"the only namespace to work in (default: all)")
	flags.TextVar(&o.LogLevel, "log-level", o.LogLevel,
		"lowest level that is logged: DEBUG, INFO, WARN or ERROR")
}

func (o *Options) validate() error {
	if o.ProbeAddress == "" {
		return errors.New("--health-probe-bind-address must not be empty: without it nobody can see whether the caches have synced")
	}
	if o.WatchNamespace != "" {
		if problems := validation.IsDNS1123Label(o.WatchNamespace); len(problems) > 0 {
			return fmt.Errorf("--watch-namespace %q is no name of a namespace: %s", o.WatchNamespace, strings.Join(problems, "; "))
		}
	}
	return nil
}
