package addons

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// policyCRDs are the definitions that Calico 3.31 has and 3.32 has no more.
var policyCRDs = []string{"adminnetworkpolicies.policy.networking.k8s.io", "baselineadminnetworkpolicies.policy.networking.k8s.io"}

func TestAnUpgradeThatDropsDefinitionsKeepsThemAndAUsersPolicyInThem(t *testing.T) {
	catalogue, err := bundle.Load(addons.Files)
	if err != nil {
		t.Fatal(err)
	}
	calico, err := catalogue.Addon("calico")
	if err != nil {
		t.Fatal(err)
	}
	of := func(version string) apply.Set {
		t.Helper()
		v, err := calico.Version(version)
		if err != nil {
			t.Fatal(err)
		}
		return apply.Set{Name: "calico", Version: version, Objects: render(t, calico, v)}
	}
	engine := &apply.Engine{Client: admin}
	before, after := of("3.31.7"), of("3.32.1")
	install(t, engine, before)

	policy := create(t, "a-user", `
apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: {name: a-users}
spec: {priority: 10, subject: {namespaces: {}}}
`)
	t.Cleanup(func() { _ = client.IgnoreNotFound(admin.Delete(testContext(t), policy)) })
	definitions := map[string]*unstructured.Unstructured{}
	for _, name := range policyCRDs {
		definitions[name] = live(t, object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name))
	}
	stillThere := func(when string) {
		t.Helper()
		for name, was := range definitions {
			now := live(t, was)
			if now == nil || now.GetUID() != was.GetUID() || now.GetDeletionTimestamp() != nil {
				t.Errorf("%s: definition %s is not the one of before", when, name)
			}
		}
		if now := live(t, policy); now == nil || now.GetUID() != policy.GetUID() {
			t.Errorf("%s: the user's policy is not the one of before", when)
		}
	}

	// The DaemonSet and the Deployment become healthy for nobody here, and something of 3.31 is pruned only then.
	plan, err := engine.Plan(testContext(t), after)
	if err != nil {
		t.Fatal(err)
	}
	var retained []string
	for _, removal := range plan.Removals {
		switch {
		case removal.Action == apply.ActionRetain && strings.Contains(removal.Reason, "never pruned"):
			retained = append(retained, removal.ID.Name)
		case removal.Action == apply.ActionRetain:
			t.Errorf("%s is retained for %q", removal.ID.Full(), removal.Reason)
		}
	}
	if strings.Join(retained, " ") != strings.Join(policyCRDs, " ") {
		t.Errorf("the plan retains %v, want %v", retained, policyCRDs)
	}
	if err := engine.Apply(testContext(t), plan, false); err != nil {
		t.Fatal(err)
	}
	stillThere("after the upgrade")
	record, err := engine.Record(testContext(t), "calico")
	if err != nil {
		t.Fatal(err)
	}
	if len(record.Retained) != len(policyCRDs) || record.Current().Retained != len(policyCRDs) {
		t.Errorf("the record retains %v and its revision says %+v, want both definitions", record.Retained, record.Current())
	}

	back, err := record.Revision(0)
	if err != nil || back.Version != "3.31.7" {
		t.Fatalf("the revision to go back to is %+v (%v), want 3.31.7", back, err)
	}
	install(t, engine, before)
	stillThere("after going back")
	if record, err = engine.Record(testContext(t), "calico"); err != nil || record.Version != "3.31.7" || len(record.Retained) != 1 {
		t.Errorf("the record says %s and retains %v (%v); want 3.31.7 and the definition that only 3.32 has", record.Version, record.Retained, err)
	}
}
