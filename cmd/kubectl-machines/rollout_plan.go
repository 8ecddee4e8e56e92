package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/graph"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// rolloutChange is one write that steers a rollout.
type rolloutChange struct {
	// object is written: the deployment, or the Cluster whose topology it comes from.
	object client.Object
	patch  client.Patch
	// done is what the command did, behind the name of the deployment; details follow below it.
	done    string
	details []string
	// waits tells that a rollout follows that can be waited for; one that begins at after, where that is set.
	waits bool
	after time.Time
}

// errNothing is what there is to say where a change is made already.
type errNothing string

func (e errNothing) Error() string { return string(e) }

// setsOf returns the MachineSets that a deployment controls, the newest revision first.
func setsOf(deployment *clusterv1.MachineDeployment, all []clusterv1.MachineSet) []*clusterv1.MachineSet {
	var sets []*clusterv1.MachineSet
	for i := range all {
		if metav1.IsControlledBy(&all[i], deployment) {
			sets = append(sets, &all[i])
		}
	}
	slices.SortFunc(sets, func(a, b *clusterv1.MachineSet) int { return lifecycle.OldestFirst(b, a) })
	return sets
}

// planUndo goes back to a revision; 0 is the one before.
func planUndo(target target, deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster, sets []*clusterv1.MachineSet, to int64) (rolloutChange, error) {
	if err := refuseRollout(target, deployment, cluster, "has no history of its own to go back in: change the Cluster back"); err != nil {
		return rolloutChange{}, err
	}
	if ptr.Deref(deployment.Spec.Paused, false) {
		return rolloutChange{}, fmt.Errorf("%s is paused: resume it first (kubectl machines rollout resume %s)", target, deployment.Name)
	}
	template, revision, err := lifecycle.Undo(deployment, sets, to)
	if err != nil {
		return rolloutChange{}, err
	}
	// The generation moves with every change of the spec, and with nothing else.
	patch, err := jsonPatch(
		operation{"test", "/metadata/generation", deployment.Generation},
		operation{"replace", "/spec/template", template},
	)
	return rolloutChange{
		object: deployment, patch: patch, waits: true,
		done:    fmt.Sprintf("rolled back to revision %d", revision),
		details: lifecycle.TemplateDifferences(deployment.Spec.Template, template),
	}, err
}

// planRestart replaces all machines by others of the same template.
func planRestart(target target, deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster, sets []*clusterv1.MachineSet, now time.Time) (rolloutChange, error) {
	change := rolloutChange{object: deployment, done: "restarted", waits: true}
	if ptr.Deref(deployment.Spec.Paused, false) {
		return change, fmt.Errorf("%s is paused: resume it first (kubectl machines rollout resume %s)", target, deployment.Name)
	}
	// Times are stored in whole seconds. Machines of this second are to be replaced too, and so are those that a server
	// made whose clock is ahead of ours.
	after := now
	for _, set := range sets {
		if set.CreationTimestamp.After(after) {
			after = set.CreationTimestamp.Time
		}
	}
	change.after = after.Truncate(time.Second).Add(time.Second).UTC()
	stamp := change.after.Format(time.RFC3339)

	if i := topologyIndex(deployment, cluster); i >= 0 {
		field := fmt.Sprintf("/spec/topology/workers/machineDeployments/%d/rollout", i)
		set := operation{"add", field + "/after", stamp}
		if reflect.ValueOf(cluster.Spec.Topology.Workers.MachineDeployments[i].Rollout).IsZero() {
			set = operation{"add", field, map[string]any{"after": stamp}}
		}
		var err error
		change.object, change.done = cluster, fmt.Sprintf("restarted through the topology of cluster %s", cluster.Name)
		change.patch, err = jsonPatch(operation{"test", "/metadata/generation", cluster.Generation}, set)
		return change, err
	}
	if err := refuseRollout(target, deployment, cluster, "is not named there, though"); err != nil {
		return change, err
	}
	change.patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"rollout":{"after":%q}}}`, stamp))
	if deployment.Spec.Rollout.Strategy.Type == clusterv1.OnDeleteMachineDeploymentStrategyType {
		change.waits = false
		change.details = []string{"Its strategy is OnDelete: delete the machines one by one, and new ones take their places"}
	}
	return change, nil
}

// planPause stops rollouts of a deployment, or lets them go on.
func planPause(target target, deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster, pause bool) (rolloutChange, error) {
	change := rolloutChange{object: deployment, done: "resumed", waits: true}
	value := "null"
	if pause {
		change.done, change.waits, value = "paused", false, "true"
	}
	if err := refuseRollout(target, deployment, cluster, "cannot be paused by itself: its annotation topology.cluster.x-k8s.io/defer-upgrade there puts upgrades off"); err != nil {
		return change, err
	}
	if ptr.Deref(deployment.Spec.Paused, false) == pause {
		return change, errNothing(change.done + " already")
	}
	change.patch = client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%s}}`, value))
	return change, nil
}

// refuseRollout refuses what others would undo. why completes the sentence about a topology that cannot express it.
func refuseRollout(target target, deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster, why string) error {
	_, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]
	switch {
	case deployment.DeletionTimestamp != nil:
		return fmt.Errorf("%s is being deleted", target)
	case cluster.DeletionTimestamp != nil:
		return fmt.Errorf("cluster %q is being deleted, and %s with it", cluster.Name, target)
	case owned:
		return fmt.Errorf("%s belongs to the topology of cluster %q and %s (kubectl edit cluster %s -n %s)", target, cluster.Name, why, cluster.Name, cluster.Namespace)
	}
	return nil
}

// topologyIndex is the place of a deployment in its Cluster's topology, -1 where it has none.
func topologyIndex(deployment *clusterv1.MachineDeployment, cluster *clusterv1.Cluster) int {
	if _, owned := deployment.Labels[clusterv1.ClusterTopologyOwnedLabel]; !owned || deployment.DeletionTimestamp != nil || cluster.DeletionTimestamp != nil {
		return -1
	}
	name := deployment.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
	return slices.IndexFunc(cluster.Spec.Topology.Workers.MachineDeployments, func(d clusterv1.MachineDeploymentTopology) bool { return d.Name == name })
}

// rolloutState is how far a rollout has come.
type rolloutState struct {
	done bool
	// line says it in a sentence.
	line string
	// stuck says why it will not go on by itself.
	stuck string
}

// stateOfRollout reads the status of a deployment and its sets, as it should be at a time: what spec.rollout.after asks
// for until then counts.
func stateOfRollout(deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, at time.Time) rolloutState {
	status, want := deployment.Status, ptr.Deref(deployment.Spec.Replicas, 1)
	paused := ptr.Deref(deployment.Spec.Paused, false)
	if status.ObservedGeneration < deployment.Generation || !paused && !begun(deployment, sets, at) {
		return rolloutState{line: "waiting for the controller to see the last change"}
	}
	upToDate, available, all := ptr.Deref(status.UpToDateReplicas, 0), ptr.Deref(status.AvailableReplicas, 0), ptr.Deref(status.Replicas, 0)
	rolling := conditions.IsTrue(deployment, clusterv1.MachineDeploymentRollingOutCondition)
	if !rolling && upToDate == want && available >= want && all == want {
		return rolloutState{done: true, line: fmt.Sprintf("rolled out: %d machines up to date and available, revision %d", want, lifecycle.Revision(deployment))}
	}
	state := rolloutState{line: fmt.Sprintf("%d of %d machines up to date, %d available, %d in all", upToDate, want, available, all)}
	if c := conditions.Get(deployment, clusterv1.MachineDeploymentScalingUpCondition); c != nil && c.Status == metav1.ConditionTrue {
		if causes := lifecycle.Blocked(c); len(causes) > 0 {
			state.line += "; blocked: " + graph.FirstLine(causes[0])
		}
	}
	if rolling && paused {
		state.stuck = fmt.Sprintf("the rollout is paused: go on with kubectl machines rollout resume %s", deployment.Name)
	}
	return state
}

// begun tells whether the set of what is wanted exists. Only from then on the status speaks of it.
func begun(deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, at time.Time) bool {
	return slices.ContainsFunc(sets, func(set *clusterv1.MachineSet) bool {
		return lifecycle.Revision(set) == lifecycle.Revision(deployment) && len(lifecycle.OutOfDate(set, deployment, at)) == 0
	})
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func jsonPatch(operations ...operation) (client.Patch, error) {
	data, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, data), nil
}
