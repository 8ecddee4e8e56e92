package addons

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/millwright-dev/millwright/internal/apply"
)

// awkward has, in one set, a namespace, a kind and an object of that kind, and
// much of what trips server-side apply in published manifests.
const awkward = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: first, namespace: awkward}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, creationTimestamp: null}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}, colour: {type: string, default: red}}
status: {conditions: [], storedVersions: []}
---
apiVersion: v1
kind: Secret
metadata: {name: key, namespace: awkward}
stringData: {key: secret}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: awkward, resourceVersion: "0"}
spec:
  selector: {app: web}
  ports: [{port: 80}, {port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: awkward}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, creationTimestamp: null}
    spec:
      containers:
      - name: web
        image: registry.example/web:v1
        ports: [{containerPort: 80}]
        resources: {limits: {cpu: "0.5", memory: 1024Mi}}
        env: [{name: A, value: "1"}, {name: A, value: "2"}]
---
apiVersion: v1
kind: Namespace
metadata: {name: awkward}
`

func TestASecondApplyWritesNothing(t *testing.T) {
	engine := &apply.Engine{Client: admin}
	awkward := set(t, "awkward", "1.0.0", awkward)
	if plan := install(t, engine, awkward); plan.Count(apply.ActionCreate) != len(awkward.Objects) {
		t.Errorf("%d objects created, want all %d", plan.Count(apply.ActionCreate), len(awkward.Objects))
	}
	before := resourceVersions(t, admin, awkward)

	plan := install(t, engine, awkward)
	if plan.Count(apply.ActionUnchanged) != len(awkward.Objects) {
		t.Errorf("%d objects unchanged, want all %d", plan.Count(apply.ActionUnchanged), len(awkward.Objects))
	}
	if diff := cmp.Diff(before, resourceVersions(t, admin, awkward)); diff != "" {
		t.Errorf("the second apply moved something (-before +after):\n%s", diff)
	}
}

func TestAnInstallThatWasCutOffIsFoundAndFinished(t *testing.T) {
	half := set(t, "half", "1.0.0", `
apiVersion: v1
kind: Namespace
metadata: {name: half}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: half}
`)
	ctx, cutOff := context.WithCancel(testContext(t))
	// The process ends when the namespace is there and nothing else.
	engine := &apply.Engine{Client: admin, Done: func(apply.ID, apply.Action) { cutOff() }}
	plan, err := engine.Plan(ctx, half)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Apply(ctx, plan, false); err == nil {
		t.Fatal("the apply went on")
	}
	engine = &apply.Engine{Client: admin}
	record, err := engine.Record(testContext(t), "half")
	if err != nil {
		t.Fatal(err)
	}
	if record.State != apply.StateApplying || len(record.Members) != 2 {
		t.Errorf("the record says %s with %d members, want Applying with both", record.State, len(record.Members))
	}
	if live(t, half.Objects[1]) != nil {
		t.Error("the apply came further than it should have")
	}

	if plan := install(t, engine, half); plan.Count(apply.ActionCreate) != 1 || plan.Count(apply.ActionUnchanged) != 1 {
		t.Errorf("the second install created %d and left %d, want 1 and 1", plan.Count(apply.ActionCreate), plan.Count(apply.ActionUnchanged))
	}
	if record, err = engine.Record(testContext(t), "half"); err != nil || record.State != apply.StateApplied {
		t.Errorf("the record says %v (%v), want Applied", record, err)
	}
}
