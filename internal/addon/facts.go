package addon

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/internal/bundle"
)

// Defaults of kubeadm (its v1beta4 API) and of the kubelet.
const (
	defaultServiceCIDR = "10.96.0.0/12"
	defaultDomain      = "cluster.local"
	// dnsOffset is where in the Service range kubeadm puts the DNS Service.
	dnsOffset = 10
)

// Place is a cluster whose facts are asked for.
type Place struct {
	Client client.Reader
	// Name is what errors call the cluster.
	Name string
	// Host is the address of its API server.
	Host string
	// Version is that of its API server.
	Version string
	// Cluster is its object in the management cluster; nil for a cluster that has none.
	Cluster *clusterv1.Cluster
}

// Facts reads what the cluster tells of itself. What it does not tell is empty.
func (p Place) Facts(ctx context.Context) (bundle.Facts, error) {
	// Images are tagged with the version; a build ("+k3s1") is no part of a tag.
	version, _, _ := strings.Cut(p.Version, "+")
	facts := bundle.Facts{KubernetesVersion: version}
	if p.Cluster != nil {
		fromCluster(&facts, p.Cluster)
	} else if err := p.fromKubeadm(ctx, &facts); err != nil {
		return facts, err
	}
	if facts.ServiceCIDR == "" {
		if err := p.serviceCIDR(ctx, &facts); err != nil {
			return facts, err
		}
	}
	// A Service that is there already decides: its address never changes.
	service := &corev1.Service{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, service)
	switch {
	case err == nil:
		facts.DNSIP = service.Spec.ClusterIP
	case !apierrors.IsNotFound(err):
		return facts, fmt.Errorf("read Service kube-dns of %s: %w", p.Name, err)
	}
	if facts.ControlPlaneHost == "" {
		fromHost(&facts, p.Host)
	}
	return facts, nil
}

// fromCluster takes the facts from a Cluster object.
func fromCluster(facts *bundle.Facts, cluster *clusterv1.Cluster) {
	facts.Name = cluster.Name
	network := cluster.Spec.ClusterNetwork
	facts.Domain = network.ServiceDomain
	if blocks := network.Pods.CIDRBlocks; len(blocks) > 0 {
		facts.PodCIDR = blocks[0]
	}
	facts.ServiceCIDR = defaultServiceCIDR
	if blocks := network.Services.CIDRBlocks; len(blocks) > 0 {
		facts.ServiceCIDR = blocks[0]
	}
	if endpoint := cluster.Spec.ControlPlaneEndpoint; endpoint.IsValid() {
		facts.ControlPlaneHost = Bracketed(endpoint.Host)
		facts.ControlPlanePort = strconv.Itoa(int(endpoint.Port))
	}
}

// clusterConfiguration is what kubeadm keeps of itself, as far as it is read here.
type clusterConfiguration struct {
	ClusterName          string `json:"clusterName"`
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	Networking           struct {
		PodSubnet     string `json:"podSubnet"`
		ServiceSubnet string `json:"serviceSubnet"`
		DNSDomain     string `json:"dnsDomain"`
	} `json:"networking"`
}

// fromKubeadm takes the facts from ConfigMap kubeadm-config, where kubeadm made the cluster.
func (p Place) fromKubeadm(ctx context.Context, facts *bundle.Facts) error {
	config := &corev1.ConfigMap{}
	err := p.Client.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "kubeadm-config"}, config)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ConfigMap kubeadm-config of %s: %w", p.Name, err)
	}
	var kubeadm clusterConfiguration
	if err := yaml.Unmarshal([]byte(config.Data["ClusterConfiguration"]), &kubeadm); err != nil {
		return fmt.Errorf("ConfigMap kubeadm-config of %s: ClusterConfiguration: %w", p.Name, err)
	}
	facts.Name = kubeadm.ClusterName
	facts.PodCIDR = firstOf(kubeadm.Networking.PodSubnet)
	facts.ServiceCIDR = firstOf(kubeadm.Networking.ServiceSubnet)
	facts.Domain = kubeadm.Networking.DNSDomain
	setEndpoint(facts, kubeadm.ControlPlaneEndpoint)
	return nil
}

// serviceCIDR asks the API server's own ServiceCIDR, which servers have since Kubernetes 1.33.
func (p Place) serviceCIDR(ctx context.Context, facts *bundle.Facts) error {
	// The name is fixed: the API server makes it from its flags.
	cidr := &networkingv1.ServiceCIDR{}
	err := p.Client.Get(ctx, client.ObjectKey{Name: "kubernetes"}, cidr)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the ServiceCIDR of %s: %w", p.Name, err)
	}
	if len(cidr.Spec.CIDRs) > 0 {
		facts.ServiceCIDR = cidr.Spec.CIDRs[0]
	}
	return nil
}

// fromHost takes the control plane's address from that of the kubeconfig.
func fromHost(facts *bundle.Facts, host string) {
	u, err := url.Parse(host)
	if err != nil || u.Host == "" {
		return
	}
	facts.ControlPlaneHost, facts.ControlPlanePort = Bracketed(u.Hostname()), u.Port()
	if facts.ControlPlanePort == "" {
		facts.ControlPlanePort = "443"
	}
}

// setEndpoint sets the control plane's address from HOST[:PORT], as kubeadm writes it.
func setEndpoint(facts *bundle.Facts, endpoint string) {
	if endpoint == "" {
		return
	}
	host, port, err := net.SplitHostPort(endpoint)
	if err != nil {
		// kubeadm's default port.
		host, port = strings.Trim(endpoint, "[]"), "6443"
	}
	facts.ControlPlaneHost, facts.ControlPlanePort = Bracketed(host), port
}

// Bracketed is a host as URLs write it: IPv6 addresses in brackets.
func Bracketed(host string) string {
	if address, err := netip.ParseAddr(host); err == nil && address.Is6() {
		return "[" + host + "]"
	}
	return host
}

// firstOf is the first of the ranges that a dual-stack cluster lists with commas.
func firstOf(list string) string {
	first, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(first)
}

// WithDefaults fills in what follows from other facts, or is the same nearly everywhere.
func WithDefaults(facts bundle.Facts) bundle.Facts {
	if facts.Domain == "" {
		facts.Domain = defaultDomain
	}
	if facts.DNSIP == "" {
		facts.DNSIP = dnsAddress(facts.ServiceCIDR)
	}
	return facts
}

// dnsAddress is where kubeadm puts the DNS Service in a range; empty for what is no range.
func dnsAddress(serviceCIDR string) string {
	prefix, err := netip.ParsePrefix(serviceCIDR)
	if err != nil {
		return ""
	}
	address := prefix.Masked().Addr()
	for range dnsOffset {
		address = address.Next()
	}
	return address.String()
}
