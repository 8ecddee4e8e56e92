package addons

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
)

// installed is a Deployment as an installer makes it, with more than the add-on has:
// a variable, a second port, a second container, an annotation and a setting with a default.
const installed = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: NAME
  namespace: default
  annotations: {installer: "yes"}
spec:
  replicas: 2
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      priorityClassName: ""
      containers:
      - name: resolver
        image: registry.example/resolver:v1
        env: [{name: ONLY_THE_INSTALLERS, value: "1"}, {name: BOTH, value: "1"}]
        ports: [{containerPort: 53, protocol: UDP}, {containerPort: 9153}]
        resources: {limits: {memory: 170Mi}, requests: {memory: 70Mi}}
      - name: helper
        image: registry.example/helper:v1
      volumes: [{name: scratch, emptyDir: {}}]
`

const addOns = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: resolver
        image: registry.example/resolver:v1
        env: [{name: BOTH, value: "1"}]
        ports: [{containerPort: 53, protocol: UDP}]
        resources: {requests: {memory: 70Mi}}
`

func named(document, name string) string { return strings.ReplaceAll(document, "NAME", name) }

// plain is an object without what a write moves by itself.
func plain(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	delete(o.Object, "status")
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetGeneration(0)
	return o.Object
}

func TestThePlanOfAnAdoptionIsWhatHappens(t *testing.T) {
	for manager, make := range map[string]func(*testing.T, *unstructured.Unstructured){
		"kubeadm": func(t *testing.T, o *unstructured.Unstructured) {
			if err := admin.Create(testContext(t), o, client.FieldOwner("kubeadm")); err != nil {
				t.Fatal(err)
			}
		},
		// As "kubectl apply --server-side" owns it.
		"kubectl": func(t *testing.T, o *unstructured.Unstructured) {
			if err := admin.Apply(testContext(t), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(manager, func(t *testing.T) {
			name := "adoption-" + manager
			before := set(t, name, "1.0.0", named(installed, name)).Objects[0]
			make(t, before)
			adopts := set(t, name, "1.0.0", named(addOns, name))
			engine := &apply.Engine{Client: admin, Policy: apply.Policy{TakeFrom: []string{manager}}}
			plan, err := engine.Plan(testContext(t), adopts)
			if err != nil {
				t.Fatal(err)
			}
			change := plan.Changes[0]
			if diff := cmp.Diff([]string{manager}, change.Adopts); diff != "" {
				t.Errorf("adopted from (-want +got):\n%s", diff)
			}
			if !change.Restarts() {
				t.Error("the plan does not tell that the pods restart, though a container goes")
			}
			if err := engine.Apply(testContext(t), plan, false); err != nil {
				t.Fatal(err)
			}
			after := live(t, before)
			if diff := cmp.Diff(plain(change.After()), plain(after)); diff != "" {
				t.Errorf("something else happened than was planned (-planned +happened):\n%s", diff)
			}
			text, err := after.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, gone := range []string{"ONLY_THE_INSTALLERS", "helper", "9153", "170Mi", "scratch", `"installer"`} {
				if strings.Contains(string(text), gone) {
					t.Errorf("%s is still there, though nobody has it any more", gone)
				}
			}
			if plan := install(t, engine, adopts); plan.Changed() {
				t.Error("the second install changes something")
			}
		})
	}
}

func TestAdoptingWhatIsTheSameRestartsNothing(t *testing.T) {
	before := create(t, "kubeadm", named(installed, "same"))
	engine := &apply.Engine{Client: admin, Policy: apply.Policy{TakeFrom: []string{"kubeadm"}}}
	same := set(t, "same", "1.0.0", named(installed, "same"))
	plan, err := engine.Plan(testContext(t), same)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Changes[0].Restarts() {
		t.Error("the plan says that pods restart")
	}
	install(t, engine, same)
	after := live(t, before)
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("uid %s, generation %d; want %s, %d", after.GetUID(), after.GetGeneration(), before.GetUID(), before.GetGeneration())
	}
	for _, entry := range after.GetManagedFields() {
		if entry.Manager == "kubeadm" {
			t.Error("kubeadm still owns fields")
		}
	}
}

func TestAPersonsFieldsSurviveAnAdoption(t *testing.T) {
	create(t, "kubeadm", named(installed, "edited"))
	patch(t, object("apps/v1", "Deployment", "default", "edited"), `{"spec":{"template":{"metadata":{"annotations":{"mine":"yes"}}}}}`)
	engine := &apply.Engine{Client: admin, Policy: apply.Policy{TakeFrom: []string{"kubeadm"}}}
	install(t, engine, set(t, "edited", "1.0.0", named(addOns, "edited")))
	after := live(t, object("apps/v1", "Deployment", "default", "edited"))
	if mine, _, _ := unstructured.NestedString(after.Object, "spec", "template", "metadata", "annotations", "mine"); mine != "yes" {
		t.Error("the annotation of a person is gone")
	}
}
