package vcenter

import "github.com/prometheus/client_golang/prometheus"

// Metrics count what sessions do. A nil *Metrics counts nothing.
type Metrics struct {
	logins, calls *prometheus.CounterVec
}

// NewMetrics registers the counters. One process can do that once for a registerer.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_vcenter_logins_total", Help: "Logins at a vCenter, by outcome.",
		}, []string{"server", "outcome"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millwright_vcenter_calls_total", Help: "Calls to a vCenter, by method.",
		}, []string{"server", "method"}),
	}
	registerer.MustRegister(m.logins, m.calls)
	return m
}

func (m *Metrics) login(server string, err error) {
	if m == nil {
		return
	}
	outcome := "success"
	if err != nil {
		outcome = "failure"
	}
	m.logins.WithLabelValues(server, outcome).Inc()
}

func (m *Metrics) call(server, method string) {
	if m != nil {
		m.calls.WithLabelValues(server, method).Inc()
	}
}
