// Package preflight reads what the preflight of an upgrade judges.
//
// In: clients of a management cluster and of a workload cluster. Out: the facts of package internal/lifecycle/upgrade, for
// the operator and for the command line alike. It judges nothing.
package preflight

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
	"github.com/millwright-dev/millwright/internal/pki"
)

// Names of the API server's metrics that the preflight reads.
const (
	metricDeprecated = "apiserver_requested_deprecated_apis"
	metricStorage    = "apiserver_storage_size_bytes"
)

// Authorities reads when the certificate authorities of a cluster end, by the name of their Secret.
func Authorities(ctx context.Context, management client.Reader, cluster client.ObjectKey) (map[string]time.Time, error) {
	ends := map[string]time.Time{}
	for _, purpose := range []string{"ca", "etcd", "proxy"} {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-" + purpose}
		if err := management.Get(ctx, key, secret); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("get Secret %q: %w", key, err)
			}
			continue
		}
		// One that is no certificate is told by the controller that uses it.
		if certificate, err := pki.ParseCertificate(secret.Data[corev1.TLSCertKey]); err == nil {
			ends[key.Name] = certificate.NotAfter
		}
	}
	return ends, nil
}

// Ask reads a workload cluster's PodDisruptionBudgets and its API server's metrics.
func Ask(ctx context.Context, cluster kubernetes.Interface) (*upgrade.Workload, error) {
	w := &upgrade.Workload{}
	budgets, err := cluster.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	w.Budgets = budgets.Items
	metrics, err := cluster.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the API server's metrics: %w", err)
	}
	return w, readMetrics(metrics, w)
}

// readMetrics takes two metrics out of what the API server tells in the text format of Prometheus.
func readMetrics(metrics []byte, w *upgrade.Workload) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return fmt.Errorf("read the API server's metrics: %w", err)
	}
	for _, metric := range families[metricDeprecated].GetMetric() {
		if metric.GetGauge().GetValue() == 0 {
			continue
		}
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		w.Deprecated = append(w.Deprecated, upgrade.DeprecatedAPI{
			Group: labels["group"], Version: labels["version"], Resource: labels["resource"], RemovedIn: labels["removed_release"]})
	}
	for _, metric := range families[metricStorage].GetMetric() {
		w.EtcdBytes = max(w.EtcdBytes, int64(metric.GetGauge().GetValue()))
	}
	return nil
}
