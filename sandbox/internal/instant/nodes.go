package instant

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/millwright-dev/millwright/sandbox/internal/vcenter"
)

// uninitialized is the taint with which the Cluster API contract has a worker
// join, until its labels and taints are set.
var uninitialized = corev1.Taint{Key: "node.cluster.x-k8s.io/uninitialized", Effect: corev1.TaintEffectNoSchedule}

// Nodes are the Nodes of machines in one API server.
type Nodes struct{ client kubernetes.Interface }

// Connect returns the Nodes of an API server. A thousand machines are powered
// on at once, so there is no limit but the server's own.
func Connect(config *rest.Config) (*Nodes, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "sandbox"
	client, err := kubernetes.NewForConfig(config)
	return &Nodes{client: client}, err
}

// Up registers the machine's Node, or makes the one that it had Ready again.
func (n *Nodes) Up(ctx context.Context, m vcenter.Machine, address string) error {
	node := newNode(m, address, time.Now())
	_, err := n.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("register Node %q: %w", m.Name, err)
	}
	if err == nil {
		return nil
	}
	return n.update(ctx, m.Name, func(old *corev1.Node) { old.Status = node.Status })
}

// Down has the Node of a machine that is off say so, as the node lifecycle
// controller would. To delete it is the owner's business; one that is gone is
// no error.
func (n *Nodes) Down(ctx context.Context, m vcenter.Machine) error {
	err := n.update(ctx, m.Name, func(node *corev1.Node) {
		now := metav1.Now()
		for i := range node.Status.Conditions {
			c := &node.Status.Conditions[i]
			c.Status, c.LastTransitionTime = corev1.ConditionUnknown, now
			c.Reason, c.Message = "NodeStatusUnknown", "Kubelet stopped posting node status."
		}
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// update changes a Node's status; the operator writes the same Node.
func (n *Nodes) update(ctx context.Context, name string, change func(*corev1.Node)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("status of Node %q: %w", name, err)
	}
	return nil
}

func newNode(m vcenter.Machine, address string, now time.Time) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(m.NumCPUs), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(m.MemoryMiB)<<20, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(110, resource.DecimalSI),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: map[string]string{
			corev1.LabelHostname:   m.Name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: runtime.GOARCH,
		}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{uninitialized}},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: address}, {Type: corev1.NodeHostName, Address: m.Name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:               strings.ReplaceAll(m.UUID, "-", ""),
				SystemUUID:              m.UUID,
				KernelVersion:           "millwright-sandbox",
				OSImage:                 "Ubuntu 24.04 LTS (sandbox instant guest)",
				ContainerRuntimeVersion: "instant://1.0.0",
				KubeletVersion:          m.KubernetesVersion,
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
			},
		},
	}
	for _, c := range []struct {
		kind    corev1.NodeConditionType
		status  corev1.ConditionStatus
		reason  string
		message string
	}{
		{corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
		{corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
		{corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
		{corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"},
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: c.kind, Status: c.status, Reason: c.reason, Message: c.message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		})
	}
	return node
}
