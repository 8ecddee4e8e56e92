package addons

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/millwright-dev/millwright/internal/apply"
)

// resolver is the Deployment of the tests below, with an image.
func resolver(name, image string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `, namespace: default}
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec: {containers: [{name: resolver, image: "` + image + `"}]}
`
}

func TestAConflictNamesTheOtherManagerAndNothingIsWritten(t *testing.T) {
	engine := &apply.Engine{Client: admin}
	create(t, "somebodys-tool", resolver("contested", "registry.example/resolver:v1"))
	contested := set(t, "contested", "1.0.0", configMap("default", "not-written")+"---"+resolver("contested", "registry.example/resolver:v2"))

	_, err := engine.Plan(testContext(t), contested)
	var conflict *apply.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("error %v, want a conflict", err)
	}
	for _, word := range []string{"deployment.apps/contested", `"somebodys-tool"`, "image"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %s: %v", word, err)
		}
	}
	if live(t, object("v1", "ConfigMap", "default", "not-written")) != nil {
		t.Error("an object was written in spite of the conflict")
	}
	if _, err := engine.Record(testContext(t), "contested"); err == nil {
		t.Error("a record was written in spite of the conflict")
	}

	engine.Policy.ForceConflicts = true
	plan := install(t, engine, contested)
	if got := image(t, "contested"); got != "registry.example/resolver:v2" {
		t.Errorf("image %s after force", got)
	}
	if taken := plan.Changes[1].Conflicts; len(taken) != 1 || taken[0].Manager != "somebodys-tool" {
		t.Errorf("the plan does not tell what was taken from whom: %v", taken)
	}
}

func TestWhatAnInstallerMadeIsAdoptedInPlace(t *testing.T) {
	before := create(t, "kubeadm", resolver("adopted", "registry.example/resolver:v1"))
	engine := &apply.Engine{Client: admin, Policy: apply.Policy{TakeFrom: []string{"kubeadm"}}}

	// The same template: no pod may restart, which the generation tells.
	install(t, engine, set(t, "adopted", "1.0.0", resolver("adopted", "registry.example/resolver:v1")))
	after := live(t, before)
	if after.GetUID() != before.GetUID() || after.GetGeneration() != before.GetGeneration() {
		t.Errorf("uid %s, generation %d; want %s, %d", after.GetUID(), after.GetGeneration(), before.GetUID(), before.GetGeneration())
	}

	// Another version: the installer's field is taken over without force.
	install(t, engine, set(t, "adopted", "2.0.0", resolver("adopted", "registry.example/resolver:v2")))
	if got := image(t, "adopted"); got != "registry.example/resolver:v2" {
		t.Errorf("image %s after the upgrade", got)
	}
}

func TestASelectorThatCannotChangeIsToldWithTheNextStep(t *testing.T) {
	create(t, "kubeadm", strings.ReplaceAll(resolver("immutable", "registry.example/resolver:v1"), "app: immutable", "app: other"))
	engine := &apply.Engine{Client: admin, Policy: apply.Policy{ForceConflicts: true}}
	_, err := engine.Plan(testContext(t), set(t, "immutable", "1.0.0", resolver("immutable", "registry.example/resolver:v1")))
	for _, word := range []string{"deployment.apps/immutable", "immutable", "delete the object, then install again"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not say %q: %v", word, err)
		}
	}
}

func TestDriftIsSeenAndPutRight(t *testing.T) {
	engine := &apply.Engine{Client: admin}
	drifting := set(t, "drifting", "1.0.0", resolver("drifting", "registry.example/resolver:v1")+"---"+configMap("default", "drifting"))
	install(t, engine, drifting)
	inspect := func() *apply.Installed {
		t.Helper()
		record, err := engine.Record(testContext(t), "drifting")
		if err != nil {
			t.Fatal(err)
		}
		installed, err := engine.Inspect(testContext(t), record)
		if err != nil {
			t.Fatal(err)
		}
		return installed
	}
	if got := inspect().Drifted(); got != 0 {
		t.Errorf("%d objects drifted right after the install", got)
	}
	patch(t, object("apps/v1", "Deployment", "default", "drifting"), `{"spec":{"template":{"spec":{"$setElementOrder/containers":[],"containers":[{"name":"resolver","image":"registry.example/evil:v1"}]}}}}`)
	if err := admin.Delete(testContext(t), object("v1", "ConfigMap", "default", "drifting")); err != nil {
		t.Fatal(err)
	}
	if got := inspect().Drifted(); got != 2 {
		t.Errorf("%d objects drifted, want the edited and the deleted one", got)
	}

	engine.Policy.ForceConflicts = true
	install(t, engine, drifting)
	if got := inspect().Drifted(); got != 0 {
		t.Errorf("%d objects drifted after the install", got)
	}
	if got := image(t, "drifting"); got != "registry.example/resolver:v1" {
		t.Errorf("image %s after the install", got)
	}
}

// image is that of the only container of a Deployment.
func image(t *testing.T, deployment string) string {
	t.Helper()
	found := live(t, object("apps/v1", "Deployment", "default", deployment))
	if found == nil {
		t.Fatalf("deployment %s is not there", deployment)
	}
	containers, _, _ := unstructured.NestedSlice(found.Object, "spec", "template", "spec", "containers")
	return containers[0].(map[string]any)["image"].(string)
}

func TestAnObjectIsCreatedAnewOnlyWhereTheBundleAllowsIt(t *testing.T) {
	before := create(t, "kubeadm", strings.ReplaceAll(resolver("recreated", "registry.example/resolver:v1"), "app: recreated", "app: other"))
	recreated := set(t, "recreated", "1.0.0", resolver("recreated", "registry.example/resolver:v1"))
	recreated.Recreate = func(id apply.ID) bool { return id.Kind == "Deployment" }
	engine := &apply.Engine{Client: admin, Policy: apply.Policy{TakeFrom: []string{"kubeadm"}}}
	plan := install(t, engine, recreated)
	if plan.Count(apply.ActionRecreate) != 1 {
		t.Errorf("the plan recreates %d objects, want the Deployment", plan.Count(apply.ActionRecreate))
	}
	after := live(t, before)
	if after == nil || after.GetUID() == before.GetUID() {
		t.Fatal("the Deployment is the one of before")
	}
	if plan := install(t, engine, recreated); plan.Changed() {
		t.Error("the second install changes something")
	}
}
