package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trussiumhq/trussium-operator/operator/status"
)

var (
	rolloutsTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trussium_operator_rollouts_total",
		Help: "Rollouts of runtimes that have ended, by result: complete or failed.",
	}, []string{"result"})

	rolloutSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "trussium_operator_rollout_duration_seconds",
		Help: "Time from the start of a rollout to its end, by result: complete or failed.",
		// From a scaled down Deployment to the progress deadline of 600 seconds and beyond.
		Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200},
	}, []string{"result"})
)

func init() {
	metrics.Registry.MustRegister(rolloutsTotal, rolloutSeconds)
}

// countRollout records a rollout that ended at now with a written status.
func countRollout(ended status.EndedRollout, now time.Time) {
	rolloutsTotal.WithLabelValues(ended.Result).Inc()
	rolloutSeconds.WithLabelValues(ended.Result).Observe(now.Sub(ended.Started).Seconds())
}
