package manager

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var buildInfo = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Name: "trussium_operator_build_info",
	Help: "Always 1; the labels say what is running.",
}, []string{"version", "goversion"})

func init() {
	metrics.Registry.MustRegister(buildInfo)
}

func publishBuildInfo() {
	buildInfo.WithLabelValues(CurrentVersion(), runtime.Version()).Set(1)
}
