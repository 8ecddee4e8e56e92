package machineset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestAMachineTakesOverWhatNeedsNoNewMachine(t *testing.T) {
	set := makeSet(ptr.To[int32](1), func(s *clusterv1.MachineSet) {
		s.Spec.Template.Labels = map[string]string{"team": "a", "old": "x"}
		s.Spec.Template.Annotations = map[string]string{"note": "x"}
	})
	machine := newMachine(set, "workers-0")
	machine.Labels["mine"] = "kept"
	dying := newMachine(set, "workers-1")
	beingDeleted(dying)
	if got := makePlan(snapshot{set: set, machines: []*clusterv1.Machine{machine, dying}}).update; len(got) > 0 {
		t.Fatalf("%q differ from the template that they were made from", names(got))
	}

	template := &set.Spec.Template
	delete(template.Labels, "old")
	template.Labels["team"] = "b"
	template.Annotations = nil
	template.Spec.MinReadySeconds = ptr.To[int32](7)
	template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
	template.Spec.Taints = []clusterv1.MachineTaint{{Key: "gpu", Effect: "NoSchedule"}}
	template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Ours"}}
	template.Spec.Version = "v9.9.9"
	if diff := cmp.Diff([]string{"workers-0", "workers-1"}, names(makePlan(snapshot{set: set, machines: []*clusterv1.Machine{machine, dying}}).update)); diff != "" {
		t.Fatalf("Machines to be updated (-want +got):\n%s", diff)
	}

	before := dying.DeepCopy()
	keepUp(set, machine)
	keepUp(set, dying)
	wantLabels := map[string]string{"team": "b", "mine": "kept", clusterv1.ClusterNameLabel: "prod", clusterv1.MachineSetNameLabel: "workers"}
	if diff := cmp.Diff(wantLabels, machine.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantSpec := clusterv1.MachineSpec{
		ClusterName:     "prod",
		MinReadySeconds: ptr.To[int32](7),
		Deletion:        clusterv1.MachineDeletionSpec{NodeDrainTimeoutSeconds: ptr.To[int32](60), NodeDeletionTimeoutSeconds: ptr.To[int32](10)},
		Taints:          template.Spec.Taints,
		ReadinessGates:  template.Spec.ReadinessGates,
	}
	wantSpec.InfrastructureRef = machine.Spec.InfrastructureRef
	if diff := cmp.Diff(wantSpec, machine.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}

	before.Spec.Deletion = wantSpec.Deletion
	if diff := cmp.Diff(before, dying); diff != "" {
		t.Errorf("a Machine being deleted takes over more than timeouts (-want +got):\n%s", diff)
	}
}
