package addons

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
)

const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  names: {kind: Gadget, plural: gadgets}
  scope: Cluster
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

func configMap(namespace, name string) string {
	return "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + namespace + "}\ndata: {key: value}\n"
}

func TestWhatTheNextVersionLacksIsPrunedButNotWhatOthersMayHaveFilled(t *testing.T) {
	engine := &apply.Engine{Client: admin}
	const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: pruned}}\n---\n"
	first := set(t, "pruned", "1.0.0", namespace+gadgets+configMap("pruned", "kept")+configMap("pruned", "dropped")+
		configMap("pruned", "owned")+configMap("pruned", "let-go"))
	install(t, engine, first)
	users := create(t, "user", "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: users}}")

	// Somebody's controller took one over, and somebody took another out of the set.
	patch(t, object("v1", "ConfigMap", "pruned", "owned"), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"kept","uid":"x","controller":true}]}}`)
	patch(t, object("v1", "ConfigMap", "pruned", "let-go"), `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`)

	second := set(t, "pruned", "2.0.0", configMap("pruned", "kept"))
	plan := install(t, engine, second)
	var pruned, retained []string
	for _, removal := range plan.Removals {
		switch removal.Action {
		case apply.ActionPrune:
			pruned = append(pruned, removal.ID.Name)
		case apply.ActionRetain:
			retained = append(retained, removal.ID.Name)
		}
	}
	if diff := cmp.Diff([]string{"dropped"}, pruned); diff != "" {
		t.Errorf("pruned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pruned", "gadgets.example.com"}, retained); diff != "" {
		t.Errorf("retained (-want +got):\n%s", diff)
	}
	for _, name := range []string{"kept", "owned", "let-go"} {
		if live(t, object("v1", "ConfigMap", "pruned", name)) == nil {
			t.Errorf("configmap %s is gone", name)
		}
	}
	if live(t, object("v1", "ConfigMap", "pruned", "dropped")) != nil {
		t.Error("configmap dropped is still there")
	}
	if live(t, users) == nil {
		t.Error("what a user made of the dropped CRD is gone")
	}

	record, err := engine.Record(testContext(t), "pruned")
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Members) != 1 || len(record.Retained) != 2 {
		t.Errorf("the record has %d members and retains %d, want 1 and 2", len(record.Members), len(record.Retained))
	}
	before := resourceVersions(t, admin, second)
	install(t, engine, second)
	if diff := cmp.Diff(before, resourceVersions(t, admin, second)); diff != "" {
		t.Errorf("installing again moved something (-before +after):\n%s", diff)
	}

	// Back at the first version, what was retained is a member again.
	install(t, engine, first)
	if record, err = engine.Record(testContext(t), "pruned"); err != nil || len(record.Members) != 6 || len(record.Retained) != 0 {
		t.Errorf("the record has %d members and retains %d (%v), want 6 and none", len(record.Members), len(record.Retained), err)
	}
}

func TestUninstallDeletesTheSetAndOrphanLeavesIt(t *testing.T) {
	cases := map[string]struct {
		end  func(*apply.Engine, *apply.Plan) error
		gone bool
	}{
		"uninstalled": {func(e *apply.Engine, p *apply.Plan) error { return e.Uninstall(testContext(t), p) }, true},
		"orphaned":    {func(e *apply.Engine, p *apply.Plan) error { return e.Orphan(testContext(t), p) }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			engine := &apply.Engine{Client: admin}
			install(t, engine, set(t, name, "1.0.0", configMap("default", name)))
			plan, err := engine.PlanUninstall(testContext(t), name, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.end(engine, plan); err != nil {
				t.Fatal(err)
			}
			found := live(t, object("v1", "ConfigMap", "default", name))
			if (found == nil) != tc.gone {
				t.Errorf("the object is gone: %v, want %v", found == nil, tc.gone)
			}
			if found != nil && len(found.GetLabels()) > 0 {
				t.Errorf("labels left on it: %v", found.GetLabels())
			}
			if _, err := engine.Record(testContext(t), name); err == nil {
				t.Error("the record is still there")
			}
		})
	}
}

// patch changes an object as somebody with kubectl would.
func patch(t *testing.T, like *unstructured.Unstructured, change string) {
	t.Helper()
	if err := admin.Patch(testContext(t), like, client.RawPatch(types.MergePatchType, []byte(change)), client.FieldOwner("kubectl-patch")); err != nil {
		t.Fatalf("patch %s %s: %v", like.GetKind(), like.GetName(), err)
	}
}
