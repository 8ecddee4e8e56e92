package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replaceAnnotation holds the intent on the owner, written in one patch with the replicas, so that a command that was
// interrupted at any point goes on where it stopped.
const replaceAnnotation = "millwright.dev/replace-machine"

// replaceIntent is the value of replaceAnnotation.
type replaceIntent struct {
	Machine string    `json:"machine"`
	UID     types.UID `json:"uid"`
	// Replicas is what the owner had before, and has again in the end.
	Replicas int32 `json:"replicas"`
	// Needed is how many machines besides the old one must be available before it goes.
	Needed int `json:"needed"`
	// Lowered is set when the replicas are back, and only the old machine is still to go.
	Lowered bool `json:"lowered,omitempty"`
}

// replaceState is what one step of a replacement is decided on.
type replaceState struct {
	name  string
	owner client.Object
	// machine is the machine of that name now; nil when there is none.
	machine *clusterv1.Machine
	// machines are all of the owner, and sets the MachineSets of the cluster.
	machines []*clusterv1.Machine
	sets     []clusterv1.MachineSet
}

// replaceStep is what to do next.
type replaceStep struct {
	kind stepKind
	// replicas and intent are what the owner gets with stepOwner; a nil intent removes it.
	replicas int32
	intent   *replaceIntent
	// says tells in words what is done or waited for.
	says string
}

type stepKind int

const (
	// stepWait waits for others; the next change of an object may bring more.
	stepWait stepKind = iota
	// stepOwner patches replicas and intent of the owner.
	stepOwner
	// stepMark annotates the old machine.
	stepMark
	// stepDelete deletes the old machine.
	stepDelete
	// stepDone has nothing left to do.
	stepDone
)

// errIntentOverridden tells that the replicas were set by somebody else while a machine was being replaced.
var errIntentOverridden = errors.New("replicas set by somebody else")

// planReplace returns the next step. started tells whether this command has seen its own intent: a first step is then
// not taken again.
func planReplace(s replaceState, started bool) (replaceStep, error) {
	intent, found := readIntent(s.owner)
	name := s.owner.GetName()
	switch {
	case !found && started:
		return replaceStep{kind: stepDone, says: fmt.Sprintf("machine %s is replaced", s.name)}, nil
	case !found && s.machine == nil:
		return replaceStep{}, fmt.Errorf("machine %q is gone", s.name)
	case !found && s.machine.DeletionTimestamp != nil:
		return replaceStep{}, fmt.Errorf("machine %q is being deleted already: its owner %s makes another when it is gone", s.name, name)
	case !found:
		return begin(s), nil
	}

	old := liveMachine(s.machines, intent.UID)
	current := desired(s.owner)
	switch {
	case intent.Lowered && old == nil:
		return replaceStep{kind: stepOwner, replicas: current, says: fmt.Sprintf("machine %s is gone", intent.Machine)}, nil
	case intent.Machine != s.name && old != nil:
		return replaceStep{}, fmt.Errorf("%s: machine %q is being replaced: finish that first (kubectl machines replace %s)", name, intent.Machine, intent.Machine)
	case intent.Lowered:
		return going(s, old), nil
	case current != intent.Replicas+1:
		return replaceStep{kind: stepOwner, replicas: current}, fmt.Errorf("%s has %d replicas, not the %d that it was given to replace machine %q: %w; "+
			"run the command again to begin anew", name, current, intent.Replicas+1, intent.Machine, errIntentOverridden)
	case old == nil || old.DeletionTimestamp != nil:
		return lower(intent, fmt.Sprintf("machine %s goes by itself: replicas back to %d", intent.Machine, intent.Replicas)), nil
	}
	if have := available(s.machines, old.UID); have < intent.Needed {
		return replaceStep{kind: stepWait, says: fmt.Sprintf("%d of %d other machines are available%s", have, intent.Needed, unavailable(s.machines, old.UID))}, nil
	}
	if _, marked := old.Annotations[clusterv1.DeleteMachineAnnotation]; !marked {
		return replaceStep{kind: stepMark, says: fmt.Sprintf("the other machines are available: machine %s goes", old.Name)}, nil
	}
	return lower(intent, fmt.Sprintf("replicas back to %d", intent.Replicas)), nil
}

// begin raises the replicas. Where not all other machines are available now, one more than now is enough: a machine that
// has been broken before must not hold up the replacement for ever.
func begin(s replaceState) replaceStep {
	replicas := desired(s.owner)
	return replaceStep{
		kind: stepOwner, replicas: replicas + 1,
		intent: &replaceIntent{
			Machine: s.machine.Name, UID: s.machine.UID, Replicas: replicas,
			Needed: min(available(s.machines, s.machine.UID)+1, int(replicas)),
		},
		says: fmt.Sprintf("%s scaled from %d to %d", s.owner.GetName(), replicas, replicas+1),
	}
}

func lower(intent replaceIntent, says string) replaceStep {
	intent.Lowered = true
	return replaceStep{kind: stepOwner, replicas: intent.Replicas, intent: &intent, says: says}
}

// going waits for the old machine to go, and deletes it where lowering the replicas does not.
func going(s replaceState, old *clusterv1.Machine) replaceStep {
	if old.DeletionTimestamp != nil {
		return replaceStep{kind: stepWait, says: fmt.Sprintf("machine %s: %s", old.Name, withMessage("Deleting", machineMessage(old)))}
	}
	owned := ownedMachine{Machine: old, owner: s.owner}
	for i := range s.sets {
		if metav1.IsControlledBy(old, &s.sets[i]) {
			owned.set = &s.sets[i]
		}
	}
	if owned.set != nil && needsOutright(owned, s.sets) {
		return replaceStep{kind: stepDelete, says: fmt.Sprintf("machine %s is deleted", old.Name)}
	}
	return replaceStep{kind: stepWait, says: fmt.Sprintf("machine %s waits to be deleted by its set", old.Name)}
}

func readIntent(owner client.Object) (replaceIntent, bool) {
	var intent replaceIntent
	text, ok := owner.GetAnnotations()[replaceAnnotation]
	if !ok || json.Unmarshal([]byte(text), &intent) != nil || intent.UID == "" {
		return replaceIntent{}, false
	}
	return intent, true
}

func liveMachine(machines []*clusterv1.Machine, uid types.UID) *clusterv1.Machine {
	i := slices.IndexFunc(machines, func(m *clusterv1.Machine) bool { return m.UID == uid })
	if i < 0 {
		return nil
	}
	return machines[i]
}

func isAvailable(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp == nil && conditionStatus(m.Status.Conditions, clusterv1.MachineAvailableCondition) == string(metav1.ConditionTrue)
}

// available counts the machines besides the old one that are.
func available(machines []*clusterv1.Machine, old types.UID) int {
	n := 0
	for _, m := range machines {
		if m.UID != old && isAvailable(m) {
			n++
		}
	}
	return n
}

// unavailable says in brackets what the others wait for.
func unavailable(machines []*clusterv1.Machine, old types.UID) string {
	var waiting []string
	for _, m := range machines {
		if m.UID != old && !isAvailable(m) {
			waiting = append(waiting, m.Name+": "+withMessage(phase(m.Status.Phase, m), machineMessage(m)))
		}
	}
	slices.Sort(waiting)
	if len(waiting) == 0 {
		return ""
	}
	if more := len(waiting) - namedInError; more > 0 {
		waiting = append(waiting[:namedInError], fmt.Sprintf("%d more", more))
	}
	return " (" + strings.Join(waiting, "; ") + ")"
}
