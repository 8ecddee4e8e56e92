package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workloadTimeout is how long one request to a workload cluster may take; it may well be down when somebody looks.
const workloadTimeout = 20 * time.Second

// machineNode is a machine with its Node and the way to its cluster.
type machineNode struct {
	machine *clusterv1.Machine
	node    *corev1.Node
	client  kubernetes.Interface
}

// readMachineNode finds the Node of a machine in the workload cluster.
func readMachineNode(ctx context.Context, c client.Client, key client.ObjectKey) (machineNode, error) {
	machine, err := getMachine(ctx, c, key)
	if err != nil {
		return machineNode{}, err
	}
	name := machine.Status.NodeRef.Name
	if name == "" {
		return machineNode{}, fmt.Errorf("machine %q has no node (phase %s): %s", machine.Name, phase(machine.Status.Phase, machine),
			withMessage("there is nothing to cordon or drain", machineMessage(machine)))
	}
	workload, err := workloadClient(ctx, c, client.ObjectKey{Namespace: key.Namespace, Name: machine.Spec.ClusterName})
	if err != nil {
		return machineNode{}, err
	}
	node, err := workload.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return machineNode{}, fmt.Errorf("machine %q: its node %q does not exist in cluster %q any more: see why: kubectl machines tree %s",
			machine.Name, name, machine.Spec.ClusterName, machine.Spec.ClusterName)
	}
	if err != nil {
		return machineNode{}, fmt.Errorf("machine %q: read node %q from cluster %q: %w", machine.Name, name, machine.Spec.ClusterName, err)
	}
	return machineNode{machine: machine, node: node, client: workload}, nil
}

// workloadClient connects to a workload cluster by its kubeconfig Secret.
func workloadClient(ctx context.Context, c client.Client, cluster client.ObjectKey) (kubernetes.Interface, error) {
	config, err := workloadConfig(ctx, c, cluster)
	if err != nil {
		return nil, err
	}
	workload, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %q: connect by its kubeconfig Secret: %w", cluster.Name, err)
	}
	return workload, nil
}

// workloadConfig reads how to connect to a workload cluster from its kubeconfig Secret.
func workloadConfig(ctx context.Context, c client.Client, cluster client.ObjectKey) (*rest.Config, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-kubeconfig"}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("cluster %q: read its kubeconfig from Secret %s: %w", cluster.Name, key.Name, err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[kubeconfigKey])
	if err != nil {
		return nil, fmt.Errorf("cluster %q: Secret %s, key %q is no kubeconfig: %w", cluster.Name, key.Name, kubeconfigKey, err)
	}
	config.Timeout = workloadTimeout
	config.UserAgent = "kubectl-machines"
	return config, nil
}
