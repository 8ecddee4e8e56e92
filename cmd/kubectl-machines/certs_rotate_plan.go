package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/graph"
)

// rotation is one write that replaces the machines of a control plane.
type rotation struct {
	// object is written: the control plane, or the Cluster whose topology it comes from. A nil patch has nothing to
	// write: the machines are being replaced already.
	object client.Object
	patch  client.Patch
	// after is the time that machines have to be newer than.
	after time.Time
	// done is what the command did, behind the name of the control plane; dies says what that replaces.
	done string
	dies []string
}

// machinesOf returns those machines that a control plane controls.
func machinesOf(plane *controlplanev1.KubeadmControlPlane, all []clusterv1.Machine) []*clusterv1.Machine {
	var machines []*clusterv1.Machine
	for i := range all {
		if metav1.IsControlledBy(&all[i], plane) {
			machines = append(machines, &all[i])
		}
	}
	return machines
}

// planRotation replaces all machines of a control plane. What was asked for before and is under way is not asked for
// again: that would replace the new machines too.
func planRotation(cluster *clusterv1.Cluster, plane *controlplanev1.KubeadmControlPlane, machines []*clusterv1.Machine, now time.Time) (rotation, error) {
	switch {
	case cluster.DeletionTimestamp != nil:
		return rotation{}, fmt.Errorf("cluster %q is being deleted, and its control plane with it", cluster.Name)
	case plane.DeletionTimestamp != nil:
		return rotation{}, fmt.Errorf("KubeadmControlPlane %s is being deleted", plane.Name)
	case len(machines) == 0:
		return rotation{}, fmt.Errorf("KubeadmControlPlane %s has no machines yet, and so nothing to replace: see kubectl machines tree %s", plane.Name, cluster.Name)
	}
	asked := plane.Spec.Rollout.After.Time
	if !asked.IsZero() && !asked.After(now) && len(olderThan(machines, asked)) > 0 {
		return rotation{after: asked, done: "is being rotated already, since " + asked.UTC().Format(time.RFC3339)}, nil
	}
	// Times are stored in whole seconds. Machines of this second are to be replaced too, and so are those that a server
	// made whose clock is ahead of ours.
	after := now
	var names []string
	for _, m := range machines {
		names = append(names, m.Name)
		if m.CreationTimestamp.After(after) {
			after = m.CreationTimestamp.Time
		}
	}
	slices.Sort(names)
	plan := rotation{object: plane, done: "rotated", after: after.Truncate(time.Second).Add(time.Second).UTC()}
	plan.dies = []string{fmt.Sprintf("cluster %q: %d control-plane machines are replaced, one by one: %s", cluster.Name, len(names), strings.Join(names, ", "))}
	if asked.After(plan.after) {
		plan.dies = append(plan.dies, fmt.Sprintf("this takes the place of the rollout that was planned for %s", asked.UTC().Format(time.RFC3339)))
	}
	stamp := plan.after.Format(time.RFC3339)
	if _, owned := plane.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned {
		plan.patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"rollout":{"after":%q}}}`, stamp))
		return plan, nil
	}
	plan.object, plan.done = cluster, fmt.Sprintf("rotated through the topology of cluster %s", cluster.Name)
	plan.patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"topology":{"controlPlane":{"rollout":{"after":%q}}}}}`, stamp))
	return plan, nil
}

func olderThan(machines []*clusterv1.Machine, at time.Time) []*clusterv1.Machine {
	var old []*clusterv1.Machine
	for _, m := range machines {
		if m.CreationTimestamp.Time.Before(at) {
			old = append(old, m)
		}
	}
	return old
}

// rotationState is how far the machines have been replaced.
type rotationState struct {
	done bool
	line string
}

// stateOfRotation counts the machines. All are new when none is older than the time, and as many as there should be are
// ready.
func stateOfRotation(plane *controlplanev1.KubeadmControlPlane, machines []*clusterv1.Machine, after time.Time) rotationState {
	want := int(desired(plane))
	old := len(olderThan(machines, after))
	ready := 0
	for _, m := range machines {
		if !m.CreationTimestamp.Time.Before(after) && m.DeletionTimestamp == nil && conditions.IsTrue(m, clusterv1.MachineReadyCondition) {
			ready++
		}
	}
	if old == 0 && ready >= want && len(machines) == want {
		return rotationState{done: true, line: fmt.Sprintf("KubeadmControlPlane %s: all %d machines are new and ready", plane.Name, want)}
	}
	state := rotationState{line: fmt.Sprintf("KubeadmControlPlane %s: %d of %d machines are new and ready, %d old", plane.Name, ready, want, old)}
	for _, held := range []string{
		controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition,
		controlplanev1.KubeadmControlPlaneEtcdClusterHealthyCondition,
		controlplanev1.KubeadmControlPlaneControlPlaneComponentsHealthyCondition,
	} {
		if c := conditions.Get(plane, held); c != nil && c.Status == metav1.ConditionFalse && c.Message != "" {
			state.line += "; " + graph.FirstLine(c.Message)
			break
		}
	}
	return state
}
