package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/templates"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/pki"
)

// memberWithin bounds a short request to one etcd member.
const memberWithin = 10 * time.Second

func newEtcdCommand(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "etcd COMMAND",
		Short: "Look after the etcd of a cluster's control plane",
		Long: templates.LongDesc(`
			Look after the etcd that runs on the control-plane machines of a cluster.

			Its members are reached through the cluster's API server, with a certificate that is made for the command
			from the cluster's etcd authority, Secret CLUSTER-etcd. An etcd of its own, outside the machines, is left
			to its own tools.`),
		Example: templates.Examples(`
			# Show the members, their sizes and the leader
			{{kubectl}} etcd status prod

			# Keep a copy of all that the cluster knows
			{{kubectl}} etcd snapshot prod -f prod.db`),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEtcdStatusCommand(o), newEtcdSnapshotCommand(o), newEtcdDefragCommand(o))
	return cmd
}

// etcdTarget is the etcd of a cluster.
type etcdTarget struct {
	*cli.Options

	cluster  client.ObjectKey
	client   client.WithWatch
	config   *rest.Config
	workload kubernetes.Interface
	tls      *tls.Config
}

// complete finds the cluster and makes a certificate for its etcd.
func (o *etcdTarget) complete(ctx context.Context, arg string) error {
	name, err := clusterName(arg)
	if err != nil {
		return err
	}
	namespace, err := o.Namespace()
	if err != nil {
		return err
	}
	if o.client, err = o.ClusterAPI(ctx); err != nil {
		return err
	}
	o.cluster = client.ObjectKey{Namespace: namespace, Name: name}
	if _, err := getCluster(ctx, o.client, o.cluster); err != nil {
		return err
	}
	if o.tls, err = o.clientTLS(ctx); err != nil {
		return err
	}
	if o.config, err = workloadConfig(ctx, o.client, o.cluster); err != nil {
		return err
	}
	if o.workload, err = kubernetes.NewForConfig(o.config); err != nil {
		return fmt.Errorf("cluster %q: connect: %w", name, err)
	}
	// A snapshot streams for longer than a request may take; each request to a member has its own deadline.
	o.config = rest.CopyConfig(o.config)
	o.config.Timeout = 0
	return nil
}

func (o *etcdTarget) clientTLS(ctx context.Context) (*tls.Config, error) {
	key := client.ObjectKey{Namespace: o.cluster.Namespace, Name: o.cluster.Name + "-etcd"}
	secret := &corev1.Secret{}
	err := o.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cluster %q: there is no Secret %s with the authority of its etcd: its control plane is not made by "+
			"kubeadm, or not yet: see %s tree %s", o.cluster.Name, key.Name, o.Typed(), o.cluster.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %q: read the authority of its etcd: %w", o.cluster.Name, err)
	}
	ca := pki.KeyPair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
	if len(ca.Key) == 0 {
		return nil, fmt.Errorf("cluster %q: Secret %s has no private key: this etcd is external, or its authority signs elsewhere: "+
			"use etcdctl with a certificate of your own", o.cluster.Name, key.Name)
	}
	pair, err := pki.NewClientCert(ca, "kubectl-machines", nil, pki.Options{Algorithm: pki.ECDSAP256, Validity: 24 * time.Hour})
	if err != nil {
		return nil, fmt.Errorf("cluster %q: Secret %s: %w", o.cluster.Name, key.Name, err)
	}
	return etcd.ClientTLS(ca.Cert, pair)
}

// etcdMember is what is known of one member; err says why it could not be asked.
type etcdMember struct {
	machine *clusterv1.Machine
	node    string
	report  etcd.Report
	err     error
}

func (m etcdMember) leads() bool { return m.err == nil && m.report.Member == m.report.Leader }

// members asks all members, those of machines by their names.
func (o *etcdTarget) members(ctx context.Context) ([]etcdMember, error) {
	machines := &clusterv1.MachineList{}
	if err := o.client.List(ctx, machines, client.InNamespace(o.cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: o.cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return nil, fmt.Errorf("list the machines of cluster %q: %w", o.cluster.Name, err)
	}
	var members []etcdMember
	for i := range machines.Items {
		m := etcdMember{machine: &machines.Items[i], node: machines.Items[i].Status.NodeRef.Name}
		if m.node != "" {
			m.report, m.err = o.ask(ctx, m.node)
		} else {
			m.err = errors.New("the machine has no node yet")
		}
		members = append(members, m)
	}
	if len(members) == 0 {
		return nil, fmt.Errorf("cluster %q has no control-plane machines: see %s tree %s", o.cluster.Name, o.Typed(), o.cluster.Name)
	}
	slices.SortFunc(members, func(a, b etcdMember) int { return strings.Compare(a.machine.Name, b.machine.Name) })
	return members, nil
}

func (o *etcdTarget) ask(ctx context.Context, node string) (etcd.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, memberWithin)
	defer cancel()
	member, err := o.dial(node)
	if err != nil {
		return etcd.Report{}, err
	}
	defer member.Close()
	return member.Report(ctx)
}

// dial prepares a client of the member on a Node.
func (o *etcdTarget) dial(node string) (*etcd.Client, error) {
	pod := "etcd-" + node
	forwarder, err := etcd.NewForwarder(o.config, o.workload, metav1.NamespaceSystem, pod, etcd.Port)
	if err != nil {
		return nil, err
	}
	return etcd.New(pod, forwarder.Dial, o.tls, forwarder.Close)
}
