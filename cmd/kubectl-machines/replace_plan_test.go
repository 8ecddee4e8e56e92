package main

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func replaceStateOf(f *fleet, name string) replaceState {
	s := replaceState{name: name, owner: f.deployment, machine: f.get(name), sets: []clusterv1.MachineSet{*f.current, *f.old}}
	for i := range f.machines {
		if role(&f.machines[i]) == "worker" {
			s.machines = append(s.machines, &f.machines[i])
		}
	}
	return s
}

func intend(f *fleet, replicas int32, intent string) {
	f.deployment.Spec.Replicas = &replicas
	f.deployment.Annotations[replaceAnnotation] = intent
}

func unready(m *clusterv1.Machine) {
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionFalse}}
}

func TestAReplacementGoesOnFromWhereItStands(t *testing.T) {
	const raised = `{"machine":"w1","uid":"w1","replicas":3,"needed":3}`
	const lowered = `{"machine":"w1","uid":"w1","replicas":3,"needed":3,"lowered":true}`
	more := func(f *fleet) { f.add("w3", f.current, kindSet.Kind) }
	for name, tc := range map[string]struct {
		change   func(*fleet)
		started  bool
		want     stepKind
		replicas int32
		says     string
	}{
		"it begins":                           {nil, false, stepOwner, 4, "md scaled from 3 to 4"},
		"the new one has not come":            {func(f *fleet) { intend(f, 4, raised) }, true, stepWait, 0, "2 of 3 other machines are available"},
		"the new one is not ready":            {func(f *fleet) { intend(f, 4, raised); more(f); unready(f.get("w3")) }, true, stepWait, 0, "(w3: Unknown)"},
		"the new one is available":            {func(f *fleet) { intend(f, 4, raised); more(f) }, true, stepMark, 0, "w1 goes"},
		"the old one is marked":               {func(f *fleet) { intend(f, 4, raised); more(f); mark(f.get("w1")) }, true, stepOwner, 3, "back to 3"},
		"somebody deleted the old one":        {func(f *fleet) { intend(f, 4, raised); deleting(f.get("w1")) }, true, stepOwner, 3, "goes by itself"},
		"its set has yet to choose":           {func(f *fleet) { intend(f, 3, lowered); more(f) }, true, stepWait, 0, "waits to be deleted by its set"},
		"amid a rollout it is deleted":        {func(f *fleet) { intend(f, 3, lowered); more(f); rollOut(f) }, true, stepDelete, 0, "w1 is deleted"},
		"the old one is going":                {func(f *fleet) { intend(f, 3, lowered); deleting(f.get("w1")) }, true, stepWait, 0, "w1: Deleting"},
		"the old one is gone":                 {func(f *fleet) { intend(f, 3, lowered); f.get("w1").UID = "later" }, true, stepOwner, 3, "w1 is gone"},
		"all is done":                         {nil, true, stepDone, 0, "w1 is replaced"},
		"one was broken before":               {func(f *fleet) { unready(f.get("w2")) }, false, stepOwner, 4, ""},
		"another replacement's rest is there": {func(f *fleet) { intend(f, 3, strings.ReplaceAll(lowered, "w1", "w9")) }, false, stepOwner, 3, "w9 is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(3, 1)
			if tc.change != nil {
				tc.change(f)
			}
			step, err := planReplace(replaceStateOf(f, "w1"), tc.started)
			if err != nil {
				t.Fatal(err)
			}
			if step.kind != tc.want || step.replicas != tc.replicas || !strings.Contains(step.says, tc.says) {
				t.Errorf("step %+v, want kind %d with %d replicas that says %q", step, tc.want, tc.replicas, tc.says)
			}
		})
	}
}

func mark(m *clusterv1.Machine) {
	m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: "true"}
}

func TestAReplacementThatSomebodyScaledAwayEnds(t *testing.T) {
	f := newFleet(3, 1)
	intend(f, 9, `{"machine":"w1","uid":"w1","replicas":3,"needed":3}`)
	step, err := planReplace(replaceStateOf(f, "w1"), true)
	if err == nil || !strings.Contains(err.Error(), "md has 9 replicas, not the 4") {
		t.Errorf("error: %v", err)
	}
	if step.kind != stepOwner || step.intent != nil || step.replicas != 9 {
		t.Errorf("the intent is not taken back: %+v", step)
	}
}

// Whatever step a command was killed after, running it again comes to the same end: the old machine gone, the replicas
// as before, no machine too many on the way.
func TestAReplacementSurvivesACrashAfterAnyStep(t *testing.T) {
	for crashAfter := range 8 {
		f := newFleet(3, 1)
		started := false
		taken := 0
		for {
			if taken == crashAfter {
				started = strings.Contains(f.deployment.Annotations[replaceAnnotation], `"w1"`)
			}
			// Nothing is left of a replacement that was complete before the crash.
			if !started && f.get("w1") == nil {
				break
			}
			step, err := planReplace(replaceStateOf(f, "w1"), started)
			if err != nil {
				t.Fatalf("crash after %d: %v", crashAfter, err)
			}
			if step.kind == stepDone {
				break
			}
			switch step.kind {
			case stepOwner:
				f.deployment.Spec.Replicas = ptr.To(step.replicas)
				delete(f.deployment.Annotations, replaceAnnotation)
				if step.intent != nil {
					text, _ := json.Marshal(step.intent)
					f.deployment.Annotations[replaceAnnotation] = string(text)
					started = true
				}
			case stepMark:
				mark(f.get("w1"))
			case stepWait:
				f.converge()
			}
			if n := *f.deployment.Spec.Replicas; n > 4 {
				t.Fatalf("crash after %d: %d replicas", crashAfter, n)
			}
			if taken++; taken > 30 {
				t.Fatalf("crash after %d: no end: %+v", crashAfter, step)
			}
		}
		if *f.deployment.Spec.Replicas != 3 || f.get("w1") != nil || len(replaceStateOf(f, "w1").machines) != 3 {
			t.Errorf("crash after %d: %d replicas, machines %+v", crashAfter, *f.deployment.Spec.Replicas, f.machines)
		}
	}
}

// converge plays the controllers: one machine more or less.
func (f *fleet) converge() {
	workers := len(f.machines) - 1
	switch want := int(*f.deployment.Spec.Replicas); {
	case workers < want:
		f.add(string(types.UID("new"+strings.Repeat("x", workers))), f.current, kindSet.Kind)
	case workers > want:
		for i := range f.machines {
			if _, marked := f.machines[i].Annotations[clusterv1.DeleteMachineAnnotation]; marked {
				f.machines = append(f.machines[:i], f.machines[i+1:]...)
				return
			}
		}
	}
}
