package bootstrap

import (
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// step is what a KubeadmConfig needs next.
type step string

const (
	// waitForInfrastructure, waitForControlPlane and waitForEndpoint are left by an event of the Cluster.
	waitForInfrastructure step = "wait for infrastructure"
	waitForControlPlane   step = "wait for control plane"
	waitForEndpoint       step = "wait for endpoint"
	// refuse tells the user why there cannot be any user data.
	refuse step = "refuse"
	// takeOver copies the name of user data that the Machine already has: status was lost, by a move or
	// a restore.
	takeOver step = "take over"
	// initialize renders kubeadm init, if the lock can be had.
	initialize step = "initialize"
	// joinControlPlane and joinWorker render kubeadm join.
	joinControlPlane step = "join control plane"
	joinWorker       step = "join worker"
	// refreshToken keeps the token of a machine that has not joined yet alive.
	refreshToken step = "refresh token"
	// done has nothing left to do.
	done step = "done"
)

// snapshot is all that the next step depends on.
type snapshot struct {
	config  *bootstrapv1.KubeadmConfig
	machine *clusterv1.Machine
	cluster *clusterv1.Cluster
}

// decision is a step, and for waits and refusals what to tell the user.
type decision struct {
	step    step
	message string
}

// next decides on the next step of a KubeadmConfig.
func next(s snapshot) decision {
	switch {
	case ptr.Deref(s.config.Status.Initialization.DataSecretCreated, false) && s.config.Status.DataSecretName != "":
		if s.config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token != "" && !s.machine.Status.NodeRef.IsDefined() && s.machine.DeletionTimestamp.IsZero() {
			return decision{step: refreshToken}
		}
		return decision{step: done}
	case !s.machine.DeletionTimestamp.IsZero():
		// It must neither take the init lock nor a token.
		return decision{refuse, "Machine " + s.machine.Name + " is being deleted"}
	case s.machine.Spec.Bootstrap.DataSecretName != nil:
		return decision{step: takeOver}
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return decision{waitForInfrastructure, "Waiting for the infrastructure of Cluster " + s.cluster.Name}
	case s.machine.Spec.Version == "":
		return decision{refuse, "Machine " + s.machine.Name + " has no spec.version, by which kubeadm's configuration is written: set it"}
	}

	if !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false) {
		if !isControlPlane(s.machine) {
			return decision{waitForControlPlane, "Waiting for the control plane of Cluster " + s.cluster.Name + " to be initialized"}
		}
		return decision{step: initialize}
	}

	switch join := s.config.Spec.JoinConfiguration; {
	case !isControlPlane(s.machine) && join.ControlPlane != nil:
		return decision{refuse, "spec.joinConfiguration.controlPlane is set, but Machine " + s.machine.Name + " is a worker: remove it"}
	case needsEndpoint(join) && !s.cluster.Spec.ControlPlaneEndpoint.IsValid():
		return decision{waitForEndpoint, "Waiting for spec.controlPlaneEndpoint of Cluster " + s.cluster.Name}
	case isControlPlane(s.machine):
		return decision{step: joinControlPlane}
	default:
		return decision{step: joinWorker}
	}
}

func isControlPlane(machine *clusterv1.Machine) bool {
	_, ok := machine.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// joins tells whether user data was made, or is to be made, for a machine that joins.
func joins(join bootstrapv1.JoinConfiguration) bool {
	return join.ControlPlane != nil || join.Discovery.BootstrapToken.Token != "" || join.Discovery.File.IsDefined()
}

// needsEndpoint tells whether discovery is left to us: a user's own endpoint or kubeconfig is taken
// as it is.
func needsEndpoint(join bootstrapv1.JoinConfiguration) bool {
	if join.Discovery.File.IsDefined() {
		kubeconfig := join.Discovery.File.KubeConfig
		return kubeconfig.IsDefined() && kubeconfig.Cluster.Server == ""
	}
	return join.Discovery.BootstrapToken.APIServerEndpoint == ""
}
