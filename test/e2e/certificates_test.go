package e2e

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
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

// testARenewedCertificateIsSeen renews the certificate of an API server on its machine, as `kubeadm certs renew` does,
// and starts it again.
func testARenewedCertificateIsSeen(t *testing.T, cluster string) {
	machine := bed.Names(t, "machines.cluster.x-k8s.io", "-l", "cluster.x-k8s.io/control-plane,cluster.x-k8s.io/cluster-name="+cluster)[0]
	pki := filepath.Join(bed.Disk(t, machine), "etc/kubernetes/pki")
	served, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver.crt"), filepath.Join(pki, "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := tls.LoadX509KeyPair(filepath.Join(pki, "ca.crt"), filepath.Join(pki, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	renewed := *served.Leaf
	renewed.NotAfter = renewed.NotAfter.AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, &renewed, authority.Leaf, served.Leaf.PublicKey, authority.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pki, "apiserver.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	uid := bed.Run(t, "kubectl", "get", "machine", machine, "-o", "jsonpath={.metadata.uid}")
	bed.Reset(t, machine)
	bed.Run(t, "kubectl", "wait", "machine", machine, "--for=jsonpath={.status.certificatesExpiryDate}="+renewed.NotAfter.UTC().Format(time.RFC3339), "--timeout", "3m")
	bed.WaitReady(t, cluster)
	if now := bed.Run(t, "kubectl", "get", "machine", machine, "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Errorf("Machine %s was replaced", machine)
	}
}
