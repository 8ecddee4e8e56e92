package kubeadm

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/kubeadm"
)

// components is what users append to our documents to configure kubelet and kube-proxy.
const components = `---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 60
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
`

func TestKubeadmTakesEachConfigurationOfAFirstMachine(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			kubeadm := program(t, version)
			for name, set := range initOptions() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					documents := initDocuments(t, version, set)
					if err := judge(t, kubeadm, documents); err != nil {
						t.Errorf("%v\n%s", err, documents)
					}
				})
			}
			t.Run("kubelet and kube-proxy appended", func(t *testing.T) {
				documents := append(initDocuments(t, version, func(*spec) {}), components...)
				if err := judge(t, kubeadm, documents); err != nil {
					t.Errorf("%v\n%s", err, documents)
				}
			})
		})
	}
}

func TestKubeadmTakesEachConfigurationOfAFurtherMachine(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			program := program(t, version)
			discovery := filepath.Join(t.TempDir(), "discovery.conf")
			if err := os.WriteFile(discovery, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for name, set := range joinOptions(discovery) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					documents := joinDocuments(t, version, set)
					if err := judge(t, program, documents); err != nil {
						t.Errorf("%v\n%s", err, documents)
					}
				})
			}
		})
	}
}

// The kubeadm of v1.34 still reads what those before v1.31 read, and as strictly; only the version is not to its taste.
func TestKubeadmTakesEachConfigurationInItsOldAPI(t *testing.T) {
	const old, reader = "v1.30.14", "v1.34.4"
	program := program(t, reader)
	check := func(t *testing.T, documents []byte) {
		t.Helper()
		t.Parallel()
		if !bytes.Contains(documents, []byte("kubeadm.k8s.io/v1beta3")) {
			t.Fatalf("not of the old API:\n%s", documents)
		}
		documents = bytes.Replace(documents, []byte("kubernetesVersion: "+old), []byte("kubernetesVersion: "+reader), 1)
		if err := judge(t, program, documents); err != nil {
			t.Errorf("%v\n%s", err, documents)
		}
	}
	for name, set := range initOptions() {
		t.Run("init/"+name, func(t *testing.T) { check(t, initDocuments(t, old, set)) })
	}
	discovery := filepath.Join(t.TempDir(), "discovery.conf")
	if err := os.WriteFile(discovery, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range joinOptions(discovery) {
		t.Run("join/"+name, func(t *testing.T) { check(t, joinDocuments(t, old, set)) })
	}
}

func TestOurFeatureGatesAreThoseThatKubeadmTakes(t *testing.T) {
	every := map[string]bool{}
	for _, version := range versions {
		gates, known := kubeadm.FeatureGates(version)
		if !known {
			t.Fatalf("no feature gates are known of %s", version)
		}
		for _, gate := range gates {
			every[gate] = true
		}
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			program := program(t, version)
			ours, _ := kubeadm.FeatureGates(version)
			plain := string(initDocuments(t, version, func(*spec) {}))
			for gate := range every {
				documents := strings.Replace(plain, "kind: ClusterConfiguration\n", "kind: ClusterConfiguration\nfeatureGates:\n  "+gate+": true\n", 1)
				err := judge(t, program, []byte(documents))
				if taken := err == nil; taken != slices.Contains(ours, gate) {
					t.Errorf("gate %s: kubeadm takes it: %t, our list has it: %t (%v)", gate, taken, !taken, err)
				}
			}
		})
	}
}

// Without this the tests above could pass because nothing is ever refused.
func TestKubeadmRefusesAFieldThatItDoesNotKnow(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			documents := initDocuments(t, version, func(*spec) {})
			documents = bytes.Replace(documents, []byte("kind: ClusterConfiguration\n"), []byte("kind: ClusterConfiguration\nclusterNam: prod\n"), 1)
			if err := judge(t, program(t, version), documents); err == nil {
				t.Error("a misspelt field passes")
			}
		})
	}
}

func initDocuments(t *testing.T, version string, set func(*spec)) []byte {
	t.Helper()
	s := spec{}
	set(&s)
	documents, err := kubeadm.InitConfig(s, prod(), version)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func joinDocuments(t *testing.T, version string, set func(*bootstrapv1.JoinConfiguration)) []byte {
	t.Helper()
	join := bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{BootstrapToken: bootstrapv1.BootstrapTokenDiscovery{
		Token: "abcdef.0123456789abcdef", APIServerEndpoint: "10.0.0.1:6443",
		CACertHashes: []string{"sha256:7c2e69131a36ae2a042a339b33381c6d0d43887e2de83720eff5359e26aec866"},
	}}}
	set(&join)
	documents, err := kubeadm.JoinConfig(join, version)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}
