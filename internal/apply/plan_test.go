package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// member makes an object of the set "demo" as it is live, with a value.
func member(t *testing.T, value string) *unstructured.Unstructured {
	t.Helper()
	return parse(t, `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  namespace: demo
  resourceVersion: "7"
  labels: {applyset.kubernetes.io/part-of: `+setID("demo")+`}
data: {key: `+value+`}`)
}

func TestWhatBecomesOfAnObject(t *testing.T) {
	edited := []Conflict{{Manager: "kubectl-edit", Field: ".data.key"}}
	cases := map[string]struct {
		state  func(desired *unstructured.Unstructured) ObjectState
		policy Policy
		action Action
		force  bool
		// err is a word of the error; empty for none.
		err string
	}{
		"it does not exist": {
			state:  func(d *unstructured.Unstructured) ObjectState { return ObjectState{Desired: d, Merged: d} },
			action: ActionCreate,
		},
		"its namespace comes with the set": {
			state:  func(d *unstructured.Unstructured) ObjectState { return ObjectState{Desired: d} },
			action: ActionCreate,
		},
		"it is as it should be": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "new"), Merged: member(t, "new")}
			},
			action: ActionUnchanged,
		},
		"only its status and resourceVersion moved": {
			state: func(d *unstructured.Unstructured) ObjectState {
				merged := member(t, "new")
				merged.SetResourceVersion("8")
				merged.Object["status"] = map[string]any{"seen": true}
				return ObjectState{Desired: d, Live: member(t, "new"), Merged: merged}
			},
			action: ActionUnchanged,
		},
		"it has another value": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Merged: member(t, "new")}
			},
			action: ActionConfigure,
		},
		"it has the value, but the field is not ours yet": {
			state: func(d *unstructured.Unstructured) ObjectState {
				merged := member(t, "new")
				merged.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply}})
				return ObjectState{Desired: d, Live: member(t, "new"), Merged: merged}
			},
			action: ActionConfigure,
		},
		"somebody owns the field": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Merged: member(t, "new"), Conflicts: edited}
			},
			err: `configmap/settings in namespace demo: .data.key is owned by "kubectl-edit" with another value`,
		},
		"somebody owns the field, and force is asked for": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Merged: member(t, "new"), Conflicts: edited}
			},
			policy: Policy{ForceConflicts: true},
			action: ActionConfigure, force: true,
		},
		"an installer owns the field": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Merged: member(t, "new"), Conflicts: []Conflict{{Manager: "kubeadm", Field: ".data.key"}}}
			},
			policy: Policy{TakeFrom: []string{"kubeadm"}},
			action: ActionConfigure, force: true,
		},
		"an installer and somebody else own fields": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Merged: member(t, "new"),
					Conflicts: append([]Conflict{{Manager: "kubeadm", Field: ".data.other"}}, edited...)}
			},
			policy: Policy{TakeFrom: []string{"kubeadm"}},
			err:    `"kubectl-edit"`,
		},
		"the server refuses it": {
			state: func(d *unstructured.Unstructured) ObjectState {
				return ObjectState{Desired: d, Live: member(t, "old"), Refused: errors.New("field is immutable")}
			},
			err: "configmap/settings in namespace demo: field is immutable",
		},
		"it belongs to another set": {
			state: func(d *unstructured.Unstructured) ObjectState {
				live := member(t, "old")
				live.SetLabels(map[string]string{partOfLabel: setID("other")})
				return ObjectState{Desired: d, Live: live, Merged: member(t, "new")}
			},
			policy: Policy{ForceConflicts: true},
			err:    "belongs to another set",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state := tc.state(member(t, "new"))
			plan, err := Decide(Set{Name: "demo"}, Snapshot{Objects: []ObjectState{state}}, tc.policy)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want one that says %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := plan.Changes[0]; got.Action != tc.action || got.Force != tc.force {
				t.Errorf("action %s, force %v; want %s, %v", got.Action, got.Force, tc.action, tc.force)
			}
		})
	}
}

func TestEveryMistakeIsNamedAtOnce(t *testing.T) {
	first, second := member(t, "new"), member(t, "new")
	second.SetName("second")
	_, err := Decide(Set{Name: "demo"}, Snapshot{Objects: []ObjectState{
		{Desired: first, Live: first, Merged: first, Conflicts: []Conflict{{Manager: "one", Field: ".data.key"}}},
		{Desired: second, Live: second, Refused: errors.New("no such kind")},
	}}, Policy{})
	for _, word := range []string{"settings", `"one"`, "second", "no such kind"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestWhatBecomesOfAnObjectThatLeftTheSet(t *testing.T) {
	live := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		object := &metav1.PartialObjectMetadata{}
		object.UID = types.UID("u")
		object.Labels = map[string]string{partOfLabel: setID("demo")}
		if change != nil {
			change(object)
		}
		return object
	}
	claim := ID{Kind: "PersistentVolumeClaim", Namespace: "demo", Name: "data"}
	cases := map[string]struct {
		id     ID
		live   *metav1.PartialObjectMetadata
		action Action
		reason string
	}{
		"it bears our label": {agent.ID, live(nil), ActionPrune, ""},
		"it is gone":         {agent.ID, nil, ActionForget, "it is gone"},
		"it lost our label": {agent.ID, live(func(o *metav1.PartialObjectMetadata) { o.Labels = nil }),
			ActionForget, "it no longer bears the set's label"},
		"it went to another set": {agent.ID, live(func(o *metav1.PartialObjectMetadata) { o.Labels[partOfLabel] = setID("other") }),
			ActionForget, "it no longer bears the set's label"},
		"a controller copied our label to what it made": {agent.ID, live(func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "Operator", Name: "x", Controller: ptr.To(true)}}
		}), ActionForget, "Operator x controls it"},
		"an owner that is no controller does not keep it": {agent.ID, live(func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = []metav1.OwnerReference{{Kind: "Operator", Name: "x"}}
		}), ActionPrune, ""},
		"it is being deleted": {agent.ID, live(func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = ptr.To(metav1.Now()) }),
			ActionForget, "it is being deleted"},
		"a CRD":              {things.ID, live(nil), ActionRetain, "objects of kind CustomResourceDefinition are never pruned"},
		"a Namespace":        {ID{Kind: "Namespace", Name: "demo"}, live(nil), ActionRetain, "objects of kind Namespace are never pruned"},
		"a volume claim":     {claim, live(nil), ActionRetain, "objects of kind PersistentVolumeClaim are never pruned"},
		"the add-on retains": {ID{Kind: "Secret", Namespace: "demo", Name: "key"}, live(nil), ActionRetain, "the add-on retains it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set := Set{Name: "demo", Retain: func(id ID) bool { return id.Kind == "Secret" }}
			got := decideRemoval(set, Member{ID: tc.id}, tc.live)
			if got.Action != tc.action || got.Reason != tc.reason {
				t.Errorf("%s (%s), want %s (%s)", got.Action, got.Reason, tc.action, tc.reason)
			}
		})
	}
}

func TestCustomResourcesAndWorkloadsGoBeforeWhatTheyNeed(t *testing.T) {
	ids := []ID{
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "role"},
		{Kind: "ConfigMap", Namespace: "demo", Name: "config"},
		{Group: "apps", Kind: "Deployment", Namespace: "demo", Name: "controller"},
		{Group: "example.com", Kind: "Thing", Namespace: "demo", Name: "thing"},
	}
	snapshot := Snapshot{Parent: &Parent{Name: "demo"}, Leavers: map[ID]*metav1.PartialObjectMetadata{}}
	for _, id := range ids {
		live := &metav1.PartialObjectMetadata{}
		live.Labels = map[string]string{partOfLabel: setID("demo")}
		snapshot.Leavers[id] = live
		snapshot.Parent.Members = append(snapshot.Parent.Members, Member{ID: id})
	}
	plan, err := Decide(Set{Name: "demo"}, snapshot, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, removal := range plan.Removals {
		got = append(got, removal.ID.Name)
	}
	if diff := cmp.Diff([]string{"thing", "controller", "config", "role"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestDefinitionsGoFirstAndTheirResourcesLast(t *testing.T) {
	crd := parse(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {group: example.com, names: {kind: Thing}}}")
	defined := definedKinds([]*unstructured.Unstructured{crd})
	cases := map[string]struct {
		object *unstructured.Unstructured
		want   stage
	}{
		"a CRD":                   {crd, stageDefinitions},
		"a Namespace":             {parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), stageDefinitions},
		"a workload":              {parse(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}"), stageRest},
		"a resource of the CRD":   {parse(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}}"), stageCustom},
		"a resource of elsewhere": {parse(t, "{apiVersion: other.com/v1, kind: Thing, metadata: {name: a}}"), stageRest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := stageOf(tc.object, defined); got != tc.want {
				t.Errorf("stage %d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheRecordCoversAllUntilAllIsDone(t *testing.T) {
	old := Member{ID: ID{Kind: "ConfigMap", Namespace: "demo", Name: "old"}}
	snapshot := Snapshot{
		Parent: &Parent{Name: "demo", Version: "1.0.0", Members: []Member{old, settings, things}},
		Leavers: map[ID]*metav1.PartialObjectMetadata{
			old.ID:    {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{partOfLabel: setID("demo")}}},
			things.ID: {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{partOfLabel: setID("demo")}}},
		},
	}
	desired := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: kube-system}}")
	fresh := parse(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: demo}}")
	snapshot.Objects = []ObjectState{{Desired: desired, Live: desired, Merged: desired}, {Desired: fresh}}
	plan, err := Decide(Set{Name: "demo", Version: "2.0.0"}, snapshot, Policy{})
	if err != nil {
		t.Fatal(err)
	}
	names := func(members []Member) []string {
		var list []string
		for _, m := range members {
			list = append(list, m.Name)
		}
		return list
	}
	cases := map[string]struct {
		record            *Parent
		state             State
		members, retained []string
	}{
		"while it is applied":     {plan.superset(), StateApplying, []string{"old", "settings", "things.example.com", "agent"}, nil},
		"once it is done":         {plan.final(nil, true, time.Time{}), StateApplied, []string{"settings", "agent"}, []string{"things.example.com"}},
		"applied, but not pruned": {plan.final(nil, false, time.Time{}), StateApplying, []string{"old", "settings", "agent"}, []string{"things.example.com"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.record.State != tc.state || tc.record.Version != "2.0.0" {
				t.Errorf("state %s of version %s, want %s of 2.0.0", tc.record.State, tc.record.Version, tc.state)
			}
			if diff := cmp.Diff(tc.members, names(tc.record.Members)); diff != "" {
				t.Errorf("members (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.retained, names(tc.record.Retained)); diff != "" {
				t.Errorf("retained (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABundleThatBreaksTheRulesOfSetsIsRefused(t *testing.T) {
	labelled := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {applyset.kubernetes.io/part-of: x}}}")
	plain := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	cases := map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"an object twice":          {[]*unstructured.Unstructured{plain, plain}, "configmap/a is there twice"},
		"an object of another set": {[]*unstructured.Unstructured{labelled}, "already has the label applyset.kubernetes.io/part-of"},
		"an object without a name": {[]*unstructured.Unstructured{parse(t, "{apiVersion: v1, kind: ConfigMap}")}, "no kind or no name"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Set{Name: "demo", Objects: tc.objects}.prepare()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one that says %q", err, tc.want)
			}
		})
	}
	if _, ok := labelled.GetLabels()[partOfLabel]; !ok {
		t.Error("prepare changed its input")
	}
}
