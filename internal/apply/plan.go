package apply

import (
	"errors"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// Snapshot is what deciding needs to know of a cluster.
type Snapshot struct {
	// Parent is the set's record; nil when there is none.
	Parent *Parent
	// Objects are those of the set, in its order.
	Objects []ObjectState
	// Leavers are the live objects of the last inventory that the set no longer
	// has; nil where one is gone.
	Leavers map[ID]*metav1.PartialObjectMetadata
}

// ObjectState is one object of the set, live and as the server would make it.
type ObjectState struct {
	// Desired is prepared: normalized and labelled.
	Desired *unstructured.Unstructured
	// Live is nil when the object does not exist.
	Live *unstructured.Unstructured
	// Merged is the outcome of a dry-run, with what an adoption lets go already
	// gone; nil when the server cannot tell yet, as the namespace or the kind comes
	// with the set.
	Merged *unstructured.Unstructured
	// Conflicts are the fields for which the server refuses unless forced; Merged is then the forced outcome.
	Conflicts []Conflict
	// Refused is why the server would not take the object.
	Refused error
}

// Policy is how far a plan may go.
type Policy struct {
	// ForceConflicts takes fields from whoever owns them.
	ForceConflicts bool
	// CorrectDrift takes back the fields of members that somebody changed since they were applied.
	CorrectDrift bool
	// TakeFrom are managers from which fields are taken without force: those that
	// only ever install what a set replaces.
	TakeFrom []string
}

// Action is what happens to an object.
type Action string

// The actions of a plan.
const (
	ActionCreate    Action = "create"
	ActionConfigure Action = "configure"
	ActionUnchanged Action = "unchanged"
	// ActionRecreate deletes an object, a field of which the server never changes, and creates it anew.
	ActionRecreate Action = "recreate"
	ActionPrune    Action = "prune"
	// ActionRetain leaves an object that is no longer in the set where it is.
	ActionRetain Action = "retain"
	// ActionForget strikes an object off the inventory: it is gone or not ours any more.
	ActionForget Action = "forget"
)

// Change is what becomes of one object of the set.
type Change struct {
	ID     ID
	Action Action
	// Force is set where fields are taken from others.
	Force bool
	// Conflicts are the fields that are taken.
	Conflicts []Conflict

	// Adopts are the managers whose ownership becomes the set's.
	Adopts []string
	// Drifted is set where the object is no longer as the last apply left it.
	Drifted bool

	object *unstructured.Unstructured
	live   *unstructured.Unstructured
	merged *unstructured.Unstructured
	stage  stage
}

// Removal is what becomes of an object that left the set.
type Removal struct {
	ID     ID
	Action Action
	// Reason says why an object is retained or forgotten.
	Reason string

	member Member
	uid    types.UID
	// early is set where the successor cannot become healthy beside the object.
	early bool
}

// Plan is all that an apply will do.
type Plan struct {
	Set      Set
	Changes  []Change
	Removals []Removal

	parent *Parent
}

// Decide makes a plan from a snapshot. What the server would refuse, and
// conflicts that the policy does not settle, are an error that names every
// object; nothing is to be written then.
func Decide(set Set, snapshot Snapshot, policy Policy) (*Plan, error) {
	plan := &Plan{Set: set, parent: snapshot.Parent}
	conflicts := map[ID][]Conflict{}
	var refused []error
	var desired []*unstructured.Unstructured
	for _, state := range snapshot.Objects {
		desired = append(desired, state.Desired)
	}
	defined := definedKinds(desired)
	for _, state := range snapshot.Objects {
		change, err := decideChange(set, state, drifted(snapshot.Parent, state), policy)
		if err != nil {
			var conflict *ConflictError
			if errors.As(err, &conflict) {
				conflicts[change.ID] = conflict.Objects[change.ID]
			} else {
				refused = append(refused, err)
			}
			continue
		}
		change.stage = stageOf(state.Desired, defined)
		plan.Changes = append(plan.Changes, change)
	}
	if len(conflicts) > 0 {
		refused = append(refused, &ConflictError{Objects: conflicts})
	}
	if len(refused) > 0 {
		return nil, &ImpossibleError{Err: errors.Join(refused...)}
	}
	if snapshot.Parent != nil {
		for _, member := range slices.Concat(snapshot.Parent.Members, snapshot.Parent.Retained) {
			if live, left := snapshot.Leavers[member.ID]; left {
				plan.Removals = append(plan.Removals, decideRemoval(set, member, live))
			}
		}
		slices.SortStableFunc(plan.Removals, func(a, b Removal) int { return removalRank(a.ID) - removalRank(b.ID) })
	}
	return plan, nil
}

// drifted tells whether an object of the set was applied before and is no longer as it was left.
func drifted(parent *Parent, state ObjectState) bool {
	if parent == nil {
		return false
	}
	id := IDOf(state.Desired)
	i := slices.IndexFunc(parent.Members, func(m Member) bool { return m.ID == id })
	// A member that nobody has applied yet is there while an apply is under way.
	return i >= 0 && parent.Members[i].Owned != "" && judge(parent.Members[i], state.Live).Drifted
}

func decideChange(set Set, state ObjectState, drifted bool, policy Policy) (Change, error) {
	change := Change{ID: IDOf(state.Desired), Action: ActionConfigure, Drifted: drifted, object: state.Desired, live: state.Live, merged: state.Merged}
	switch {
	case state.Live != nil && isImmutable(state.Refused) && set.Recreate != nil && set.Recreate(change.ID):
		change.Action = ActionRecreate
	case state.Refused != nil:
		return change, fmt.Errorf("%s: %w", change.ID.Full(), state.Refused)
	case state.Live == nil:
		change.Action = ActionCreate
		return change, nil
	}
	if other := state.Live.GetLabels()[partOfLabel]; other != "" && other != setID(set.Name) {
		// Two sets of ours share a field manager, so that the server would see no conflict.
		return change, fmt.Errorf("%s belongs to another set (label %s is %q): uninstall that first", change.ID.Full(), partOfLabel, other)
	}
	change.Adopts = adoptable(state.Live, policy.TakeFrom)
	if len(state.Conflicts) > 0 {
		settled := set.Derived != nil && set.Derived(change.ID) || policy.CorrectDrift && drifted
		if !policy.ForceConflicts && !settled && !allIn(managers(state.Conflicts), policy.TakeFrom) {
			return change, &ConflictError{Objects: map[ID][]Conflict{change.ID: state.Conflicts}}
		}
		change.Force, change.Conflicts = true, state.Conflicts
		return change, nil
	}
	if change.Action != ActionRecreate && len(change.Adopts) == 0 && state.Merged != nil && sameObject(state.Live, state.Merged) {
		change.Action = ActionUnchanged
	}
	return change, nil
}

func allIn(some, all []string) bool {
	for _, name := range some {
		if !slices.Contains(all, name) {
			return false
		}
	}
	return true
}

// decideRemoval applies the rules of pruning: what is deleted was in the last
// inventory, bears our label, has no controller and is not of a kind whose
// deletion would take other people's things along.
func decideRemoval(set Set, member Member, live *metav1.PartialObjectMetadata) Removal {
	removal := Removal{ID: member.ID, Action: ActionForget, member: member}
	if live == nil {
		removal.Reason = "it is gone"
		return removal
	}
	removal.uid = live.GetUID()
	switch owner := metav1.GetControllerOf(live); {
	case live.GetLabels()[partOfLabel] != setID(set.Name):
		removal.Reason = "it no longer bears the set's label"
	case owner != nil:
		removal.Reason = fmt.Sprintf("%s %s controls it", owner.Kind, owner.Name)
	case live.GetDeletionTimestamp() != nil:
		removal.Reason = "it is being deleted"
	case neverPruned(member.ID):
		removal.Action, removal.Reason = ActionRetain, "objects of kind "+member.Kind+" are never pruned"
	case set.Retain != nil && set.Retain(member.ID):
		removal.Action, removal.Reason = ActionRetain, "the add-on retains it"
	default:
		removal.Action = ActionPrune
		removal.early = set.Moved != nil && set.Moved(member.ID)
	}
	return removal
}

// neverPruned holds the kinds whose deletion deletes what others made.
func neverPruned(id ID) bool {
	kind := id.GroupKind()
	return kind == crdKind || kind == namespaceKind || kind == claimKind
}

// removalRank orders removals: custom resources while their controllers still run
// and can finish them, then what runs, then what that needed.
func removalRank(id ID) int {
	switch kind := id.GroupKind(); {
	case !scheme.Scheme.IsGroupRegistered(kind.Group):
		return 0
	case podTemplates[kind.String()] != nil:
		return 1
	case kind.Group == rbacv1.GroupName || kind.String() == "ServiceAccount":
		return 3
	default:
		return 2
	}
}

// Changed tells whether the plan writes, apart from the record.
func (p *Plan) Changed() bool {
	return p.Count(ActionUnchanged) < len(p.Changes) || p.Count(ActionPrune) > 0
}

// stage returns the changes of one stage in the set's order.
func (p *Plan) stage(s stage) []Change {
	var changes []Change
	for _, change := range p.Changes {
		if change.stage == s {
			changes = append(changes, change)
		}
	}
	return changes
}

// Count returns how many objects of the plan meet an action.
func (p *Plan) Count(action Action) int {
	n := 0
	for _, change := range p.Changes {
		if change.Action == action {
			n++
		}
	}
	for _, removal := range p.Removals {
		if removal.Action == action {
			n++
		}
	}
	return n
}

// superset is the record while the plan is carried out: all that was or will be
// in the set, so that whoever finds it half done knows what there may be.
func (p *Plan) superset() *Parent {
	record := p.record(StateApplying)
	if p.parent != nil {
		// With what was owned: where this is cut short, drift is still known as such.
		record.Members = slices.Clone(p.parent.Members)
		record.Retained = p.parent.Retained
		record.History = p.parent.History
	}
	for _, change := range p.Changes {
		record.Members = addMember(record.Members, Member{ID: change.ID})
	}
	sortMembers(record.Members)
	return record
}

// final is the record after the apply, which left the live objects applied. Where
// the leavers are not pruned the set is not Applied.
func (p *Plan) final(applied map[ID]*unstructured.Unstructured, pruned bool, at time.Time) *Parent {
	record := p.record(StateApplied)
	if p.parent != nil {
		record.History = p.parent.History
	}
	if pruned {
		record.History = withRevision(record.History, p, at)
	} else {
		record.State = StateApplying
	}
	for _, change := range p.Changes {
		member := Member{ID: change.ID}
		if object := applied[change.ID]; object != nil {
			member.Owned = ownedDigest(object.GetManagedFields())
		}
		record.Members = append(record.Members, member)
	}
	for _, removal := range p.Removals {
		switch {
		case removal.Action == ActionRetain:
			record.Retained = addMember(record.Retained, removal.member)
		case removal.Action == ActionPrune && !pruned:
			record.Members = addMember(record.Members, removal.member)
		}
	}
	sortMembers(record.Members)
	sortMembers(record.Retained)
	return record
}

func (p *Plan) record(state State) *Parent {
	return &Parent{Name: p.Set.Name, Version: p.Set.Version, Parameters: p.Set.Parameters, Customization: p.Set.Customization, State: state}
}

func addMember(members []Member, member Member) []Member {
	if slices.ContainsFunc(members, func(m Member) bool { return m.ID == member.ID }) {
		return members
	}
	return append(members, member)
}

func sortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return compareIDs(a.ID, b.ID) })
}
