package machinehealthcheck

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// remediations counts what a graph of a fleet's health is made of; which Machines they were is told by events.
var remediations = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "millwright_machinehealthcheck_remediations_total",
	Help: "Machines whose remediation was asked for, by the reason of the condition HealthCheckSucceeded.",
}, []string{"reason"})

func init() {
	metrics.Registry.MustRegister(remediations)
}
