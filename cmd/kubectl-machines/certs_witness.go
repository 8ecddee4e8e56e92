package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/kubeadm"
	"github.com/millwright-dev/millwright/internal/pki"
)

// handshakeWithin bounds one handshake, so that one machine that is silent does not hold up the table.
const handshakeWithin = 10 * time.Second

// readKeptCertificates reads the Secrets of a cluster.
func readKeptCertificates(ctx context.Context, c client.Client, cluster *clusterv1.Cluster) (keptSecrets, error) {
	kept := keptSecrets{
		cluster: cluster.Name, secrets: map[string]*corev1.Secret{},
		required: cluster.Spec.ControlPlaneRef.APIGroup == controlplanev1.GroupVersion.Group,
	}
	for _, k := range keptNames {
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-" + k.suffix}, secret)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return kept, fmt.Errorf("cluster %q: read Secret %s-%s: %w", cluster.Name, cluster.Name, k.suffix, err)
		default:
			kept.secrets[k.suffix] = secret
		}
	}
	return kept, nil
}

// certificateWitness sees certificates by shaking hands with those that serve with them.
type certificateWitness struct {
	config      *rest.Config
	authorities map[string][]*x509.Certificate
}

// endpoint asks the address of the kubeconfig.
func (w certificateWitness) endpoint(ctx context.Context) []certificate {
	c := certificate{name: "apiserver", source: "handshake with " + w.config.Host}
	address, err := url.Parse(w.config.Host)
	if err != nil {
		c.problem = problemOf(err)
		return []certificate{c}
	}
	host := address.Host
	if address.Port() == "" {
		host = net.JoinHostPort(address.Hostname(), "443")
	}
	name := address.Hostname()
	if w.config.ServerName != "" {
		name = w.config.ServerName
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	chain, err := pki.ServedChain(ctx, name, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", host)
	})
	if err != nil {
		c.problem = problemOf(err)
		return []certificate{c}
	}
	authority := w.authorities["ca"]
	if len(authority) == 0 {
		authority = parseChain(w.config.CAData)
	}
	return []certificate{c.of(chain, authority)}
}

// machines asks the API servers and etcd members of machines, all at once.
func (w certificateWitness) machines(ctx context.Context, machines []clusterv1.Machine) []certificate {
	workload, err := kubernetes.NewForConfig(w.config)
	if err != nil {
		return recordedCertificates(machines, err)
	}
	// One question tells whether the cluster answers: else every machine would take its time to say that it does not.
	pods, err := workload.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "tier=control-plane"})
	if err != nil {
		return recordedCertificates(machines, err)
	}
	byName := map[string]*corev1.Pod{}
	for i := range pods.Items {
		byName[pods.Items[i].Name] = &pods.Items[i]
	}
	var out []certificate
	var group sync.WaitGroup
	var mu sync.Mutex
	add := func(c certificate) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, c)
	}
	for i := range machines {
		m := &machines[i]
		if pod := byName["etcd-"+m.Status.NodeRef.Name]; pod != nil {
			group.Go(func() { add(w.member(ctx, workload, m, pod, "etcd-server", "etcd-ca", etcd.Port)) })
		}
		pod := byName["kube-apiserver-"+m.Status.NodeRef.Name]
		if pod == nil {
			for _, c := range recordedCertificates(machines[i:i+1], fmt.Errorf("there is no pod kube-apiserver-%s", m.Status.NodeRef.Name)) {
				add(c)
			}
			continue
		}
		group.Go(func() {
			c := w.member(ctx, workload, m, pod, "apiserver", "ca", kubeadm.APIServerPort(pod))
			if at := recordedExpiry(m); c.expires.IsZero() && !at.IsZero() {
				c = certificate{name: "apiserver", machine: m.Name, source: "Machine " + m.Name, expires: at}
			}
			add(c)
		})
	}
	group.Wait()
	slices.SortFunc(out, byMachine)
	return out
}

// member asks one pod of a machine through the cluster's API server.
func (w certificateWitness) member(ctx context.Context, workload kubernetes.Interface, m *clusterv1.Machine, pod *corev1.Pod, name, authority string, port int) certificate {
	c := certificate{name: name, machine: m.Name, source: "handshake with pod " + pod.Name}
	forwarder, err := etcd.NewForwarder(w.config, workload, pod.Namespace, pod.Name, port)
	if err != nil {
		c.problem = problemOf(err)
		return c
	}
	defer forwarder.Close()
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	chain, err := pki.ServedChain(ctx, "localhost", func(ctx context.Context) (net.Conn, error) { return forwarder.Dial(ctx, "") })
	if err != nil {
		c.problem = problemOf(err)
		return c
	}
	return c.of(chain, w.authorities[authority])
}
