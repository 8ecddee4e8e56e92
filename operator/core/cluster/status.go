package cluster

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

// connectionGrace is how long RemoteConnectionProbe stays as it was while the operator makes its first attempts after a
// start.
const connectionGrace = 10 * time.Second

// report writes counters, phase and conditions of the Cluster from the snapshot. It returns when they have to be looked
// at again though nothing happens until then; zero for never.
func report(s *snapshot) time.Duration {
	cluster := s.cluster
	controlPlane, workers := countControlPlane(s), countWorkers(s)
	if s.controlPlane.obj != nil || len(s.controlPlaneMachines) > 0 {
		if cluster.Status.ControlPlane == nil {
			cluster.Status.ControlPlane = &clusterv1.ClusterControlPlaneStatus{}
		}
		have := cluster.Status.ControlPlane
		have.DesiredReplicas, have.Replicas, have.UpToDateReplicas = &controlPlane.desired, &controlPlane.replicas, &controlPlane.upToDate
		have.ReadyReplicas, have.AvailableReplicas, have.Versions = &controlPlane.ready, &controlPlane.available, controlPlane.versions
	}
	if cluster.Status.Workers == nil {
		cluster.Status.Workers = &clusterv1.WorkersStatus{}
	}
	have := cluster.Status.Workers
	have.DesiredReplicas, have.Replicas, have.UpToDateReplicas = &workers.desired, &workers.replicas, &workers.upToDate
	have.ReadyReplicas, have.AvailableReplicas, have.Versions = &workers.ready, &workers.available, workers.versions

	probe, again := probeCondition(s)
	workerParts := workerParts(s)
	all := append(controlPlaneParts(s), workerParts...)
	for _, c := range []metav1.Condition{
		infrastructureCondition(s),
		initializedCondition(s),
		controlPlaneCondition(s),
		workersAvailable(workerParts),
		probe,
		fold(controlPlaneParts(s), clusterv1.MachinesReadyCondition, clusterv1.ClusterControlPlaneMachinesReadyCondition, readyReasons),
		fold(workerParts, clusterv1.MachinesReadyCondition, clusterv1.ClusterWorkerMachinesReadyCondition, readyReasons),
		fold(controlPlaneParts(s), clusterv1.MachinesUpToDateCondition, clusterv1.ClusterControlPlaneMachinesUpToDateCondition, upToDateReasons),
		fold(workerParts, clusterv1.MachinesUpToDateCondition, clusterv1.ClusterWorkerMachinesUpToDateCondition, upToDateReasons),
		anyTrue(all, clusterv1.ScalingUpCondition, clusterv1.ClusterScalingUpReason, clusterv1.ClusterNotScalingUpReason),
		anyTrue(all, clusterv1.ScalingDownCondition, clusterv1.ClusterScalingDownReason, clusterv1.ClusterNotScalingDownReason),
		anyTrue(all, clusterv1.RollingOutCondition, clusterv1.ClusterRollingOutReason, clusterv1.ClusterNotRollingOutReason),
		anyTrue(all, clusterv1.RemediatingCondition, clusterv1.ClusterRemediatingReason, clusterv1.ClusterNotRemediatingReason),
		deletingCondition(s),
	} {
		conditions.Set(cluster, c)
	}
	conditions.Set(cluster, availableCondition(cluster))
	cluster.Status.SetTypedPhase(phase(s))
	cluster.Status.ObservedGeneration = cluster.Generation
	return again
}

func infrastructureCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.ClusterInfrastructureReadyCondition
	provisioned := isTrue(s.cluster.Status.Initialization.InfrastructureProvisioned)
	if !s.infrastructure.ref.IsDefined() {
		if provisioned {
			return conditions.True(kind, clusterv1.ClusterInfrastructureReadyReason, "")
		}
		return conditions.False(kind, clusterv1.ClusterInfrastructureNotReadyReason, "Waiting for the topology to be reconciled")
	}
	return mirror(s, kind, clusterv1.ReadyCondition, s.infrastructure, provisioned, "status.initialization.provisioned", "spec.infrastructureRef")
}

func initializedCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.ClusterControlPlaneInitializedCondition
	switch {
	case isTrue(s.cluster.Status.Initialization.ControlPlaneInitialized):
		return conditions.True(kind, clusterv1.ClusterControlPlaneInitializedReason, "")
	case s.controlPlane.foreign != nil:
		return conditions.False(kind, clusterv1.ClusterControlPlaneNotInitializedReason, "%s", s.controlPlane.foreign.Error())
	case s.controlPlane.failed != nil:
		return conditions.Unknown(kind, clusterv1.ClusterControlPlaneNotInitializedReason, "%s", s.controlPlane.failed.Error())
	case s.controlPlane.ref.IsDefined() && s.controlPlane.obj == nil:
		return conditions.False(kind, clusterv1.ClusterControlPlaneNotInitializedReason, "%s does not exist", describe(s.controlPlane.ref))
	case s.controlPlane.ref.IsDefined():
		return conditions.False(kind, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for %s to initialize the control plane", describe(s.controlPlane.ref))
	}
	return conditions.False(kind, clusterv1.ClusterControlPlaneNotInitializedReason, "Waiting for the first control-plane Machine to have a Node")
}

func controlPlaneCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.ClusterControlPlaneAvailableCondition
	initialized := isTrue(s.cluster.Status.Initialization.ControlPlaneInitialized)
	if s.controlPlane.ref.IsDefined() {
		return mirror(s, kind, clusterv1.AvailableCondition, s.controlPlane, initialized, "status.initialization.controlPlaneInitialized", "spec.controlPlaneRef")
	}
	if initialized {
		return conditions.True(kind, clusterv1.ClusterControlPlaneAvailableReason, "")
	}
	return conditions.False(kind, clusterv1.ClusterControlPlaneNotAvailableReason, "The control plane is not initialized")
}

// mirror takes over a condition of an object, or tells what its contract field says, or why there is no object.
func mirror(s *snapshot, kind, from string, e external, initialized bool, field, refField string) metav1.Condition {
	if message := failureOf(e); message != "" {
		return conditions.False(kind, clusterv1.NotReadyReason, "%s failed: %s", describe(e.ref), message)
	}
	notYet, now := clusterv1.NotReadyReason, clusterv1.ReadyReason
	if from == clusterv1.AvailableCondition {
		notYet, now = clusterv1.NotAvailableReason, clusterv1.AvailableReason
	}
	if e.failed != nil {
		return conditions.Unknown(kind, clusterv1.InternalErrorReason, "%s", e.failed.Error())
	}
	if e.foreign != nil {
		return conditions.False(kind, notYet, "%s", e.foreign.Error())
	}
	if e.obj == nil {
		switch {
		case !s.cluster.DeletionTimestamp.IsZero():
			return conditions.False(kind, clusterv1.ObjectDeletedReason, "%s has been deleted", describe(e.ref))
		case initialized:
			return conditions.False(kind, clusterv1.ObjectDeletedReason, "%s has been deleted while the Cluster still exists", describe(e.ref))
		}
		return conditions.False(kind, clusterv1.ObjectDoesNotExistReason,
			"%s does not exist (%v): create it or correct %s", describe(e.ref), e.missing, refField)
	}
	if have := conditions.Get(contract.Conditions(e.obj), from); have != nil {
		c := metav1.Condition{Type: kind, Status: have.Status, Reason: have.Reason, Message: have.Message}
		if c.Reason == "" {
			c.Reason = clusterv1.InvalidConditionReportedReason
		}
		return c
	}
	if initialized {
		return conditions.True(kind, now, "")
	}
	return conditions.False(kind, notYet, "%s %s is false", e.ref.Kind, field)
}

// probeCondition tells whether the workload cluster answers.
func probeCondition(s *snapshot) (metav1.Condition, time.Duration) {
	const kind = clusterv1.ClusterRemoteConnectionProbeCondition
	failed := func(format string, args ...any) metav1.Condition {
		return conditions.False(kind, clusterv1.ClusterRemoteConnectionProbeFailedReason, format, args...)
	}
	have := conditions.Get(s.cluster, kind)
	switch left := connectionGrace - s.now.Sub(s.health.Since); {
	case s.health.Connected:
		return conditions.True(kind, clusterv1.ClusterRemoteConnectionProbeSucceededReason, ""), 0
	case !s.cluster.DeletionTimestamp.IsZero() && have != nil:
		return *have, 0
	case s.health.Since.IsZero() && s.cluster.Spec.ControlPlaneEndpoint.IsValid():
		return failed("Remote connection not established yet: the infrastructure is not provisioned"), 0
	case s.health.Since.IsZero():
		return failed("Remote connection not established yet: the control plane has no endpoint"), 0
	case s.health.LastSuccess.IsZero() && have != nil && left > 0:
		return *have, left
	case s.health.LastSuccess.IsZero():
		return failed("Remote connection not established yet%s", because(s.health.Cause())), 0
	}
	return failed("Last successful probe at %s%s", s.health.LastSuccess.UTC().Format(time.RFC3339), because(s.health.Cause())), 0
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", cause)
}

func deletingCondition(s *snapshot) metav1.Condition {
	switch {
	case s.cluster.DeletionTimestamp.IsZero():
		return conditions.False(clusterv1.ClusterDeletingCondition, clusterv1.ClusterNotDeletingReason, "")
	case s.deletion == nil:
		return conditions.True(clusterv1.ClusterDeletingCondition, clusterv1.DeletingReason, "")
	}
	return conditions.True(clusterv1.ClusterDeletingCondition, s.deletion.reason, "%s", s.deletion.message)
}

func availableCondition(cluster *clusterv1.Cluster) metav1.Condition {
	parts := []conditions.Part{
		{Type: clusterv1.ClusterDeletingCondition, Negative: true},
		{Type: clusterv1.ClusterTopologyReconciledCondition, Optional: true},
		{Type: clusterv1.ClusterRemoteConnectionProbeCondition},
		{Type: clusterv1.ClusterInfrastructureReadyCondition},
		{Type: clusterv1.ClusterControlPlaneAvailableCondition},
		{Type: clusterv1.ClusterWorkersAvailableCondition},
	}
	for _, gate := range cluster.Spec.AvailabilityGates {
		parts = append(parts, conditions.Part{Type: gate.ConditionType, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	return conditions.Summary(cluster, clusterv1.ClusterAvailableCondition, conditions.Reasons{
		True: clusterv1.ClusterAvailableReason, False: clusterv1.ClusterNotAvailableReason, Unknown: clusterv1.ClusterAvailableUnknownReason,
	}, parts)
}
