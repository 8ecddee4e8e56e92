package controlplane

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
)

// snapshot is all that one reconcile decides on and tells. controlPlane is the working copy.
type snapshot struct {
	now          time.Time
	controlPlane *controlplanev1.KubeadmControlPlane
	cluster      *clusterv1.Cluster
	// replicas are the Machines of the control plane, those being deleted too, oldest first.
	replicas []*replica
	workload inspection
}

// replica is one Machine with the objects made for it.
type replica struct {
	machine *clusterv1.Machine
	// config and infrastructure are nil when they do not exist.
	config         *bootstrapv1.KubeadmConfig
	infrastructure *unstructured.Unstructured
}

// inspection is what the workload cluster shows of its control plane.
type inspection struct {
	// connected tells whether the API server answers; if not, lastSeen is when it last did (zero: never).
	connected bool
	lastSeen  time.Time
	// settling is what is left of the time that a new operator has to connect; until then what was known stays told.
	settling time.Duration
	// kubeadmConfig tells whether kubeadm init has left its configuration: the control plane is initialized.
	kubeadmConfig bool
	// nodes and pods by name; what is not there does not exist, unless the error of its name says that
	// it could not be read.
	nodes    map[string]*corev1.Node
	pods     map[string]*corev1.Pod
	failures map[string]error
	// expiries tells, by Machine, when the certificate ends that its API server has shown.
	// readAgain is when to try again what could not be read of them; zero for never.
	expiries  map[string]time.Time
	readAgain time.Duration
	// etcd is nil when it was not asked, or did not answer: then etcdErr tells why.
	etcd    *etcd.Status
	etcdErr error
}

func (r *replica) node() string { return r.machine.Status.NodeRef.Name }

func (r *replica) deleting() bool { return !r.machine.DeletionTimestamp.IsZero() }

// released tells whether the host of a Machine that is being deleted may be gone at any moment. Until then our hook
// keeps it, with all that runs on it.
func (r *replica) released() bool {
	_, hooked := r.machine.Annotations[hook]
	return r.deleting() && !hooked
}

// healthy tells whether all that the control plane checks of a Machine is good, and that it stays.
func (r *replica) healthy(conditionTypes []string) bool {
	return !r.deleting() && r.serves(conditionTypes)
}

// serves tells whether all that the control plane checks of a Machine is good, though it may be kept for the time being only.
func (r *replica) serves(conditionTypes []string) bool {
	if r.released() || r.node() == "" {
		return false
	}
	for _, conditionType := range conditionTypes {
		if !conditions.IsTrue(r.machine, conditionType) {
			return false
		}
	}
	return true
}

func (s *snapshot) initialized() bool {
	return ptr.Deref(s.controlPlane.Status.Initialization.ControlPlaneInitialized, false)
}

// stackedEtcd tells whether etcd runs on the control plane's machines and is ours to look after.
func (s *snapshot) stackedEtcd() bool {
	return !s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.IsDefined()
}

func (s *snapshot) desired() int { return int(ptr.Deref(s.controlPlane.Spec.Replicas, 0)) }

func (s *snapshot) machines() []*clusterv1.Machine {
	out := make([]*clusterv1.Machine, 0, len(s.replicas))
	for _, r := range s.replicas {
		out = append(out, r.machine)
	}
	return out
}

// gates are the conditions that we set on Machines and that make them ready, in upstream's order.
func (s *snapshot) gates() []string {
	gates := []string{
		controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
	}
	if s.stackedEtcd() {
		gates = append(gates,
			controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
			controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition)
	}
	return gates
}
