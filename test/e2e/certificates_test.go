package e2e

import (
	"encoding/json"
	"testing"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// testTheEndOfCertificatesIsRecorded compares what Machines and KubeadmConfigs say with what the API servers show.
func testTheEndOfCertificatesIsRecorded(t *testing.T, cluster string, machines int) {
	var shown struct {
		Certificates []struct {
			Name, Machine string
			Expires       time.Time
		}
	}
	if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "machines", "certs", "check", cluster, "-o", "json")), &shown); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, certificate := range shown.Certificates {
		if certificate.Name != "apiserver" {
			continue
		}
		compared++
		want := certificate.Expires.UTC().Format(time.RFC3339)
		bed.Run(t, "kubectl", "wait", "machine", certificate.Machine, "--for=jsonpath={.status.certificatesExpiryDate}="+want, "--timeout", "2m")
		for _, kind := range []string{"machine.cluster.x-k8s.io", "kubeadmconfig.bootstrap.cluster.x-k8s.io"} {
			var object struct {
				Metadata struct{ Annotations map[string]string }
			}
			if err := json.Unmarshal([]byte(bed.Run(t, "kubectl", "get", kind, certificate.Machine, "-o", "json")), &object); err != nil {
				t.Fatal(err)
			}
			if got := object.Metadata.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]; got != want {
				t.Errorf("%s %s is annotated with %q, and its API server's certificate ends at %s", kind, certificate.Machine, got, want)
			}
		}
	}
	if compared != machines {
		t.Errorf("%d API servers were compared, want %d", compared, machines)
	}
}
