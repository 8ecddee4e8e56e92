package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/millwright-dev/millwright/internal/bundle"
)

func kubeadmConfig(configuration string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": configuration},
	}
}

func dnsService(address string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"},
		Spec:       corev1.ServiceSpec{ClusterIP: address},
	}
}

func TestFactsComeFromWhoeverKnowsThem(t *testing.T) {
	workload := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	workload.Spec.ClusterNetwork.Pods.CIDRBlocks = []string{"10.1.0.0/16", "fd01::/48"}
	workload.Spec.ClusterNetwork.ServiceDomain = "prod.example"
	workload.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "fd00::7", Port: 6443}

	const kubeadm = `
clusterName: plain
controlPlaneEndpoint: api.example.com
networking: {podSubnet: "10.3.0.0/16,fd03::/48", serviceSubnet: 10.4.0.0/16, dnsDomain: plain.example}
`
	cases := map[string]struct {
		cluster *clusterv1.Cluster
		objects []client.Object
		given   factFlags
		want    bundle.Facts
	}{
		"a Cluster object, with kubeadm's default for what it leaves open": {
			cluster: workload,
			want: bundle.Facts{
				Name: "prod", KubernetesVersion: "v1.37.2", PodCIDR: "10.1.0.0/16", ServiceCIDR: "10.96.0.0/12",
				DNSIP: "10.96.0.10", Domain: "prod.example", ControlPlaneHost: "[fd00::7]", ControlPlanePort: "6443",
			},
		},
		"kubeadm's own record": {
			objects: []client.Object{kubeadmConfig(kubeadm)},
			want: bundle.Facts{
				Name: "plain", KubernetesVersion: "v1.37.2", PodCIDR: "10.3.0.0/16", ServiceCIDR: "10.4.0.0/16",
				DNSIP: "10.4.0.10", Domain: "plain.example", ControlPlaneHost: "api.example.com", ControlPlanePort: "6443",
			},
		},
		"the DNS Service that is there decides": {
			objects: []client.Object{kubeadmConfig(kubeadm), dnsService("10.4.0.53")},
			want: bundle.Facts{
				Name: "plain", KubernetesVersion: "v1.37.2", PodCIDR: "10.3.0.0/16", ServiceCIDR: "10.4.0.0/16",
				DNSIP: "10.4.0.53", Domain: "plain.example", ControlPlaneHost: "api.example.com", ControlPlanePort: "6443",
			},
		},
		"a cluster that tells nothing": {
			want: bundle.Facts{
				KubernetesVersion: "v1.37.2", Domain: "cluster.local", ControlPlaneHost: "192.0.2.1", ControlPlanePort: "443",
			},
		},
		"flags go before the cluster": {
			objects: []client.Object{kubeadmConfig(kubeadm)},
			given: factFlags{
				facts:    bundle.Facts{KubernetesVersion: "1.36.3", PodCIDR: "10.8.0.0/16", DNSIP: "10.4.0.99"},
				endpoint: "198.51.100.1:8443",
			},
			want: bundle.Facts{
				Name: "plain", KubernetesVersion: "v1.36.3", PodCIDR: "10.8.0.0/16", ServiceCIDR: "10.4.0.0/16",
				DNSIP: "10.4.0.99", Domain: "plain.example", ControlPlaneHost: "198.51.100.1", ControlPlanePort: "8443",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			target := &target{
				client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(tc.objects...).Build(),
				name:   "test", host: "https://192.0.2.1", version: "v1.37.2+build", cluster: tc.cluster,
			}
			facts, err := target.place().Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.given.complete(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.given.over(facts)); diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMissingFactNamesItsFlag(t *testing.T) {
	for fact, flag := range map[string]string{
		"cluster.podCIDR": "--pod-cidr", "cluster.dnsIP": "--dns-ip or --service-cidr", "cluster.controlPlanePort": "--control-plane-endpoint",
	} {
		err := explainFact(&bundle.UnknownFactError{Addon: "demo", Fact: fact})
		if want := ": give it with " + flag; !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %q does not end with %q", fact, err, want)
		}
	}
	if other := errors.New("other"); explainFact(other) != other {
		t.Error("another error is changed")
	}
}
