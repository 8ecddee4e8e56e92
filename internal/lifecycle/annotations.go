package lifecycle

// Annotations of our own on Cluster API objects.
const (
	// SpreadFailureDomainsAnnotation on a MachineDeployment or MachineSet, with the value "true", spreads Machines over
	// the failure domains of the Cluster, unless the template names one.
	SpreadFailureDomainsAnnotation = "millwright.dev/spread-failure-domains"

	// RolloutAfterAnnotation records on a MachineSet for which spec.rollout.after it was made, in RFC 3339. The clock that
	// stamps objects and the one that decides that the time has come are two.
	RolloutAfterAnnotation = "millwright.dev/rollout-after"

	// PropagatedAnnotation records which labels and annotations of an object came from its template, so that they can be
	// taken away when the template has them no more: keys of labels, a semicolon, keys of annotations.
	PropagatedAnnotation = "millwright.dev/propagated"

	// BeginAnewAnnotation on a KubeadmControlPlane whose API server does not answer confirms that what etcd holds is given
	// up: its Machines are deleted, and a new one initializes the control plane. The value is the control plane's name.
	BeginAnewAnnotation = "millwright.dev/begin-anew"

	// BegunAnewAnnotation records on a KubeadmControlPlane when that was done last, in RFC 3339.
	BegunAnewAnnotation = "millwright.dev/begun-anew"

	// CapacityAnnotation records which of the annotations for cluster-autoscaler on a MachineDeployment are ours, by what
	// stands behind CapacityPrefix. All others were put there by a user and are left alone.
	CapacityAnnotation = "millwright.dev/capacity"
)

// CapacityPrefix begins the annotations by which cluster-autoscaler knows the machines of a node group that has none
// (its clusterapi provider, "Scale from zero support").
const CapacityPrefix = "capacity.cluster-autoscaler.kubernetes.io/"
