package machine

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// provisioningSeconds tells how long users wait for a machine; controller-runtime only knows how long a reconcile takes.
var provisioningSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
	Name:    "millwright_machine_provisioning_seconds",
	Help:    "Time from the creation of a Machine until its Node was found.",
	Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 1200, 1800},
})

// deletionSeconds tells the same for the way back, of which drains are the long part.
var deletionSeconds = prometheus.NewHistogram(prometheus.HistogramOpts{
	Name:    "millwright_machine_deletion_seconds",
	Help:    "Time from the deletion of a Machine until everything that belonged to it was gone.",
	Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
})

func init() {
	metrics.Registry.MustRegister(provisioningSeconds, deletionSeconds)
}
