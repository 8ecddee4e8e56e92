package kubelet

import (
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudproviderapi "k8s.io/cloud-provider/api"
)

// Port is where a kubelet serves its API.
const Port = 10250

// Machine is what the kubelet finds of the machine that it runs on.
type Machine struct {
	Hostname string
	// SystemUUID is the BIOS UUID, BootID differs from boot to boot.
	SystemUUID, BootID string
	Address            string
	// Version is the kubelet's, with its v.
	Version   string
	CPUs      int64
	MemoryMiB int64
}

// reservedMiB is the memory below which a kubelet evicts by default, and which
// it therefore does not offer.
const reservedMiB = 100

// newNode returns the Node that the kubelet registers.
func newNode(s Settings, m Machine, now time.Time) *corev1.Node {
	labels := defaultLabels(s)
	for key, value := range s.Labels {
		labels[key] = value
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.NodeName, Labels: labels,
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Spec: corev1.NodeSpec{ProviderID: s.ProviderID, Taints: append([]corev1.Taint(nil), s.Taints...)},
	}
	if s.CloudProvider == "external" {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key: cloudproviderapi.TaintExternalCloudProvider, Value: "true", Effect: corev1.TaintEffectNoSchedule})
		if s.NodeIP != "" {
			node.Annotations[cloudproviderapi.AnnotationAlphaProvidedIPAddr] = s.NodeIP
		}
	}
	node.Status = nodeStatus(s, m, corev1.NodeStatus{}, now)
	return node
}

func defaultLabels(s Settings) map[string]string {
	return map[string]string{
		corev1.LabelHostname:      s.NodeName,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    runtime.GOARCH,
		"beta.kubernetes.io/os":   "linux",
		"beta.kubernetes.io/arch": runtime.GOARCH,
	}
}

// nodeStatus returns the status that the kubelet reports, keeping what others
// wrote into the former one and the times of conditions that did not change.
func nodeStatus(s Settings, m Machine, former corev1.NodeStatus, now time.Time) corev1.NodeStatus {
	status := *former.DeepCopy()
	mebibytes := func(n int64) resource.Quantity { return *resource.NewQuantity(n<<20, resource.BinarySI) }
	status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.CPUs, resource.DecimalSI),
		corev1.ResourceMemory:           mebibytes(m.MemoryMiB),
		corev1.ResourceEphemeralStorage: mebibytes(20 << 10),
		corev1.ResourcePods:             *resource.NewQuantity(s.MaxPods, resource.DecimalSI),
	}
	status.Allocatable = status.Capacity.DeepCopy()
	status.Allocatable[corev1.ResourceMemory] = mebibytes(max(m.MemoryMiB-reservedMiB, 0))
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: m.Address},
		{Type: corev1.NodeHostName, Address: m.Hostname},
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = Port
	status.NodeInfo = corev1.NodeSystemInfo{
		MachineID:               strings.ReplaceAll(m.SystemUUID, "-", ""),
		SystemUUID:              m.SystemUUID,
		BootID:                  m.BootID,
		KernelVersion:           "millwright-sandbox",
		OSImage:                 "Ubuntu 24.04 LTS (sandbox process guest)",
		ContainerRuntimeVersion: "process://1.0.0",
		KubeletVersion:          m.Version,
		OperatingSystem:         "linux",
		Architecture:            runtime.GOARCH,
	}
	for _, c := range []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	} {
		setNodeCondition(&status, c, metav1.NewTime(now))
	}
	return status
}

func setNodeCondition(status *corev1.NodeStatus, condition corev1.NodeCondition, now metav1.Time) {
	condition.LastHeartbeatTime, condition.LastTransitionTime = now, now
	for n := range status.Conditions {
		if former := &status.Conditions[n]; former.Type == condition.Type {
			if former.Status == condition.Status {
				condition.LastTransitionTime = former.LastTransitionTime
			}
			*former = condition
			return
		}
	}
	status.Conditions = append(status.Conditions, condition)
}

// sameBeyondHeartbeat tells whether two statuses say the same, whenever they said it.
func sameBeyondHeartbeat(a, b corev1.NodeStatus) bool {
	a, b = *a.DeepCopy(), *b.DeepCopy()
	for _, conditions := range [][]corev1.NodeCondition{a.Conditions, b.Conditions} {
		for n := range conditions {
			conditions[n].LastHeartbeatTime = metav1.Time{}
		}
	}
	return equality.Semantic.DeepEqual(a, b)
}
