package cluster

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// copyInfrastructure takes over what the infrastructure reports. A Cluster without a reference brings its own.
func copyInfrastructure(s *snapshot) {
	cluster := s.cluster
	if !s.infrastructure.ref.IsDefined() {
		if !cluster.Spec.Topology.IsDefined() {
			cluster.Status.Initialization.InfrastructureProvisioned = new(true)
		}
		return
	}
	obj := s.infrastructure.obj
	if obj == nil {
		return
	}
	if endpoint := contract.ControlPlaneEndpoint(obj); !cluster.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
		cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	if !contract.Provisioned(obj) {
		return
	}
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	cluster.Status.FailureDomains = contract.FailureDomains(obj)
}

// copyControlPlane takes over what the control plane reports. Without a reference, a control-plane Machine with a Node
// is the sign that it is initialized. It goes back only where a person has given up what etcd held.
func copyControlPlane(s *snapshot) {
	cluster := s.cluster
	initialized := false
	if s.controlPlane.ref.IsDefined() {
		obj := s.controlPlane.obj
		if obj == nil {
			return
		}
		if endpoint := contract.ControlPlaneEndpoint(obj); !cluster.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
			cluster.Spec.ControlPlaneEndpoint = endpoint
		}
		initialized = contract.ControlPlaneInitialized(obj)
		if beginsAnew(obj) && isTrue(cluster.Status.Initialization.ControlPlaneInitialized) {
			cluster.Status.Initialization.ControlPlaneInitialized = new(false)
		}
	} else {
		initialized = slices.ContainsFunc(s.controlPlaneMachines, func(m clusterv1.Machine) bool { return m.Status.NodeRef.IsDefined() })
	}
	if initialized {
		cluster.Status.Initialization.ControlPlaneInitialized = new(true)
	}
}

// beginsAnew tells whether a control plane says, in so many words, that it is not initialized, and that a person wanted it
// to begin anew. The contract knows no way back: other control planes that say so are not believed.
func beginsAnew(controlPlane *unstructured.Unstructured) bool {
	_, asked := controlPlane.GetAnnotations()[lifecycle.BeginAnewAnnotation]
	_, begun := controlPlane.GetAnnotations()[lifecycle.BegunAnewAnnotation]
	return (asked || begun) && contract.ControlPlaneNotInitialized(controlPlane)
}

// mayConnect tells whether there is something to connect to: the kubeconfig is written once the endpoint is known.
func mayConnect(cluster *clusterv1.Cluster) bool {
	return cluster.Spec.ControlPlaneEndpoint.IsValid() && isTrue(cluster.Status.Initialization.InfrastructureProvisioned)
}

// phase summarizes the Cluster in one word.
func phase(s *snapshot) clusterv1.ClusterPhase {
	cluster := s.cluster
	switch {
	case !cluster.DeletionTimestamp.IsZero():
		return clusterv1.ClusterPhaseDeleting
	case failureOf(s.infrastructure) != "" || failureOf(s.controlPlane) != "":
		//lint:ignore SA1019 Only providers of the older contract report failures, and for them the phase is kept.
		return clusterv1.ClusterPhaseFailed
	case mayConnect(cluster):
		return clusterv1.ClusterPhaseProvisioned
	case s.infrastructure.ref.IsDefined() || s.controlPlane.ref.IsDefined():
		return clusterv1.ClusterPhaseProvisioning
	}
	return clusterv1.ClusterPhasePending
}

func failureOf(e external) string {
	if e.obj == nil {
		return ""
	}
	return contract.Failure(e.obj)
}

// counters are the replica fields of one part of a cluster.
type counters struct {
	desired, replicas, upToDate, ready, available int32
	versions                                      []clusterv1.StatusVersion
}

// countWorkers sums up deployments, sets and stand-alone Machines.
func countWorkers(s *snapshot) counters {
	c := counters{}
	for i := range s.deployments {
		spec, status := &s.deployments[i].Spec, &s.deployments[i].Status
		c.add(spec.Replicas, status.Replicas, status.UpToDateReplicas, status.ReadyReplicas, status.AvailableReplicas, status.Versions)
	}
	for i := range s.sets {
		spec, status := &s.sets[i].Spec, &s.sets[i].Status
		c.add(spec.Replicas, status.Replicas, status.UpToDateReplicas, status.ReadyReplicas, status.AvailableReplicas, status.Versions)
	}
	c.addMachines(s.workers)
	return c
}

// countControlPlane reads the control plane's own counters, or counts Machines where there is none.
func countControlPlane(s *snapshot) counters {
	c := counters{}
	if obj := s.controlPlane.obj; obj != nil {
		have := contract.Replicas(obj)
		versions := contract.Versions(obj)
		if version := contract.Version(obj); len(versions) == 0 && version != "" && have.Replicas != nil && *have.Replicas > 0 {
			versions = []clusterv1.StatusVersion{{Version: version, Replicas: *have.Replicas}}
		}
		c.add(have.Desired, have.Replicas, have.UpToDate, have.Ready, have.Available, versions)
	}
	c.addMachines(s.controlPlaneMachines)
	return c
}

func (c *counters) add(desired, replicas, upToDate, ready, available *int32, versions []clusterv1.StatusVersion) {
	for _, field := range []struct{ sum, value *int32 }{
		{&c.desired, desired}, {&c.replicas, replicas}, {&c.upToDate, upToDate}, {&c.ready, ready}, {&c.available, available},
	} {
		if field.value != nil {
			*field.sum += *field.value
		}
	}
	for _, v := range versions {
		c.addVersion(v.Version, v.Replicas)
	}
}

func (c *counters) addMachines(machines []clusterv1.Machine) {
	for i := range machines {
		machine := &machines[i]
		c.desired++
		c.replicas++
		// Nobody says of a stand-alone Machine that it is out of date.
		if !conditions.IsFalse(machine, clusterv1.MachineUpToDateCondition) {
			c.upToDate++
		}
		if conditions.IsTrue(machine, clusterv1.MachineReadyCondition) {
			c.ready++
		}
		if conditions.IsTrue(machine, clusterv1.MachineAvailableCondition) {
			c.available++
		}
		if machine.Spec.Version != "" {
			c.addVersion(machine.Spec.Version, 1)
		}
	}
}

func (c *counters) addVersion(version string, replicas int32) {
	i, found := slices.BinarySearchFunc(c.versions, version, func(have clusterv1.StatusVersion, want string) int {
		return strings.Compare(have.Version, want)
	})
	if !found {
		c.versions = slices.Insert(c.versions, i, clusterv1.StatusVersion{Version: version})
	}
	c.versions[i].Replicas += replicas
}
