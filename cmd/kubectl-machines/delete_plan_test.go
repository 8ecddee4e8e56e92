package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// fleet is a cluster with a deployment of two sets and a control plane, for plans.
type fleet struct {
	cluster    *clusterv1.Cluster
	deployment *clusterv1.MachineDeployment
	// current and old are the sets of the deployment; old has no machines until a test gives it some.
	current, old *clusterv1.MachineSet
	controlPlane *controlplanev1.KubeadmControlPlane
	machines     []clusterv1.Machine
}

func newFleet(workers, controlPlane int) *fleet {
	f := &fleet{
		cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "prod"}},
		deployment: &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: "md", UID: "md", ResourceVersion: "7", Annotations: map[string]string{clusterv1.RevisionAnnotation: "2"}},
			Spec:       clusterv1.MachineDeploymentSpec{ClusterName: "prod", Replicas: ptr.To(int32(workers))},
		},
		controlPlane: &controlplanev1.KubeadmControlPlane{
			ObjectMeta: metav1.ObjectMeta{Name: "cp", UID: "cp"},
			Spec:       controlplanev1.KubeadmControlPlaneSpec{Replicas: ptr.To(int32(controlPlane))},
		},
	}
	set := func(name, revision string, replicas int) *clusterv1.MachineSet {
		return &clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, UID: types.UID(name), Annotations: map[string]string{clusterv1.RevisionAnnotation: revision},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f.deployment, kindDeployment)},
			},
			Spec: clusterv1.MachineSetSpec{ClusterName: "prod", Replicas: ptr.To(int32(replicas))},
		}
	}
	f.current, f.old = set("new", "2", workers), set("old", "1", 0)
	for i := range workers {
		f.add(fmt.Sprintf("w%d", i), f.current, kindSet.Kind)
	}
	for i := range controlPlane {
		f.add(fmt.Sprintf("cp%d", i), f.controlPlane, kindControlPlane.Kind)
	}
	return f
}

func (f *fleet) add(name string, owner client.Object, kind string) {
	machine := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Labels: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: ptr.To(true)}},
	}}
	if kind == kindControlPlane.Kind {
		machine.Labels[clusterv1.MachineControlPlaneLabel] = ""
	}
	machine.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue},
		{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue},
	}
	f.machines = append(f.machines, machine)
}

// get returns a machine by name, for tests to change.
func (f *fleet) get(name string) *clusterv1.Machine {
	for i := range f.machines {
		if f.machines[i].Name == name {
			return &f.machines[i]
		}
	}
	return nil
}

func (f *fleet) input(names ...string) deleteInput {
	in := deleteInput{cluster: f.cluster, all: f.machines, sets: []clusterv1.MachineSet{*f.current, *f.old}}
	for _, name := range names {
		m := ownedMachine{Machine: f.get(name)}
		switch owner := metav1.GetControllerOf(m.Machine); {
		case owner == nil:
		case owner.Kind == kindControlPlane.Kind:
			m.owner, m.target = f.controlPlane, target{kindControlPlane, "cp"}
		case owner.UID == f.old.UID:
			m.set, m.owner, m.target = f.old, f.deployment, target{kindDeployment, "md"}
		default:
			m.set, m.owner, m.target = f.current, f.deployment, target{kindDeployment, "md"}
		}
		in.machines = append(in.machines, m)
	}
	return in
}

// rollOut makes the old set have a machine, as in the middle of a rollout.
func rollOut(f *fleet) {
	f.old.Spec.Replicas = ptr.To[int32](1)
	f.add("o0", f.old, kindSet.Kind)
}

func deleting(m *clusterv1.Machine) { now := metav1.Now(); m.DeletionTimestamp = &now }

// describePlan writes a plan in lines.
func describePlan(plan deletePlan) []string {
	var lines []string
	for _, r := range plan.removals {
		line := r.machine.Name
		for word, on := range map[string]bool{": mark": r.mark, ": " + r.already: r.already != ""} {
			if on {
				line += word
			}
		}
		if r.outright {
			line += ": delete"
		}
		lines = append(lines, line)
	}
	for _, s := range plan.scales {
		lines = append(lines, fmt.Sprintf("%s %d>%d %s", s.target.name, s.from, s.to, s.record))
	}
	return lines
}

func TestADeletionLowersReplicasOnceForEachMachine(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*fleet)
		names   []string
		replace bool
		want    []string
	}{
		"two workers": {nil, []string{"w1", "w3"}, false,
			[]string{"w1: mark", "w3: mark", `md 5>3 {"replicas":3,"machines":["w1","w3"]}`}},
		"again while they go": {func(f *fleet) {
			f.deployment.Annotations[removedAnnotation] = `{"replicas":5,"machines":["w1"]}`
		}, []string{"w1"}, false, []string{"w1: is on its way already: the replicas were lowered for it"}},
		"one more while one goes": {func(f *fleet) {
			f.deployment.Annotations[removedAnnotation] = `{"replicas":5,"machines":["w1","long-gone"]}`
		}, []string{"w1", "w2"}, false, []string{
			"w1: is on its way already: the replicas were lowered for it", "w2: mark", `md 5>4 {"replicas":4,"machines":["w1","w2"]}`}},
		"again after somebody has scaled up": {func(f *fleet) {
			f.deployment.Annotations[removedAnnotation] = `{"replicas":4,"machines":["w1"]}`
		}, []string{"w1"}, false, []string{"w1: mark", `md 5>4 {"replicas":4,"machines":["w1"]}`}},
		"one that is being deleted": {func(f *fleet) { deleting(f.get("w1")) }, []string{"w1"}, false,
			[]string{"w1: is being deleted already: replicas stay as they are"}},
		"one of the new set amid a rollout": {rollOut, []string{"w1"}, false,
			[]string{"w1: mark: delete", `md 5>4 {"replicas":4,"machines":["w1"]}`}},
		"one of the old set amid a rollout": {rollOut, []string{"o0"}, false,
			[]string{"o0: mark", `md 5>4 {"replicas":4,"machines":["o0"]}`}},
		"one of the old set that nothing rolls": {func(f *fleet) { rollOut(f); f.deployment.Spec.Paused = ptr.To(true) }, []string{"o0"}, false,
			[]string{"o0: mark: delete", `md 5>4 {"replicas":4,"machines":["o0"]}`}},
		"two of three of the control plane": {nil, []string{"cp0", "cp1"}, false,
			[]string{"cp0: mark", "cp1: mark", `cp 3>1 {"replicas":1,"machines":["cp0","cp1"]}`}},
		"a worker to be replaced":                 {nil, []string{"w1"}, true, []string{"w1: delete"}},
		"one of the control plane to be replaced": {nil, []string{"cp1"}, true, []string{"cp1: delete"}},
		"a stand-alone machine":                   {func(f *fleet) { f.get("w1").OwnerReferences = nil }, []string{"w1"}, false, []string{"w1: delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(5, 3)
			if tc.change != nil {
				tc.change(f)
			}
			in := f.input(tc.names...)
			in.replace = tc.replace
			plan, err := planDelete(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, describePlan(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeletionThatCannotBeMeantIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*fleet)
		names   []string
		replace bool
		want    string
	}{
		"an even control plane":           {nil, []string{"cp0"}, false, "the number must be odd, not 2"},
		"the whole control plane":         {nil, []string{"cp0", "cp1", "cp2"}, false, "a control plane needs a machine"},
		"two members at once":             {nil, []string{"cp0", "cp1"}, true, "2 control-plane machines at once"},
		"the majority":                    {func(f *fleet) { f.get("cp1").Status.Conditions = nil }, []string{"cp0"}, true, "1 of 3 members of etcd would be well, and 2 must be (not well: cp1)"},
		"the cluster goes":                {func(f *fleet) { now := metav1.Now(); f.cluster.DeletionTimestamp = &now }, []string{"w1"}, false, "is being deleted, with all its machines"},
		"a topology's deployment":         {func(f *fleet) { f.deployment.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""} }, []string{"w1"}, false, "set spec.topology.workers.machineDeployments[].replicas of the Cluster"},
		"a replacement that nobody makes": {func(f *fleet) { f.get("w1").OwnerReferences = nil }, []string{"w1"}, true, "has no owner that would make another"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(5, 3)
			if tc.change != nil {
				tc.change(f)
			}
			in := f.input(tc.names...)
			in.replace = tc.replace
			if _, err := planDelete(in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	f := newFleet(1, 1)
	in := f.input("cp0")
	in.replace = true
	if _, err := planDelete(in); err == nil || !strings.Contains(err.Error(), "is the whole control plane") {
		t.Errorf("the only member: %v", err)
	}
}
