package addons

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/millwright-dev/millwright/internal/apply"
)

func TestNothingIsPrunedBeforeTheNewVersionIsHealthy(t *testing.T) {
	engine := &apply.Engine{Client: admin}
	install(t, engine, set(t, "slow", "1.0.0", configMap("default", "slow-old")))

	second := set(t, "slow", "2.0.0", resolver("slow", "registry.example/resolver:v1"))
	engine.HealthTimeout = 200 * time.Millisecond
	plan, err := engine.Plan(testContext(t), second)
	if err != nil {
		t.Fatal(err)
	}
	err = engine.Apply(testContext(t), plan, false)
	var late *apply.NotHealthyError
	if !errors.As(err, &late) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want a *NotHealthyError for the deadline", err)
	}
	if late.NotPruned != 1 || len(late.Objects) != 1 || late.Objects[0].ID.Name != "slow" {
		t.Errorf("the error tells of %d objects not pruned and %v; want 1 and deployment slow", late.NotPruned, late.Objects)
	}
	old := object("v1", "ConfigMap", "default", "slow-old")
	if live(t, old) == nil {
		t.Fatal("the object of the version before is gone before the new one is healthy")
	}

	if record, err := engine.Record(testContext(t), "slow"); err != nil || record.State != apply.StateApplying || len(record.Members) != 2 {
		t.Errorf("the record says %+v (%v), want Applying with both objects", record, err)
	}

	// The same again; this time the Deployment becomes available while it is waited for.
	engine.HealthTimeout = time.Minute
	waiting := make(chan struct{}, 1)
	engine.Unhealthy = func(pending []apply.Health) {
		if len(pending) > 0 {
			select {
			case waiting <- struct{}{}:
			default:
			}
		}
	}
	if plan, err = engine.Plan(testContext(t), second); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- engine.Apply(testContext(t), plan, false) }()
	select {
	case <-waiting:
	case err := <-done:
		t.Fatalf("the apply did not wait: %v", err)
	}
	makeAvailable(t, object("apps/v1", "Deployment", "default", "slow"))
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if live(t, old) != nil {
		t.Error("the object of the version before is still there")
	}
}

// makeAvailable writes the status that a Deployment's controller would.
func makeAvailable(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	found := live(t, deployment)
	found.Object["status"] = map[string]any{
		"observedGeneration": found.GetGeneration(), "replicas": int64(1), "updatedReplicas": int64(1),
		"readyReplicas": int64(1), "availableReplicas": int64(1),
		"conditions": []any{
			map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
			map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
		},
	}
	if err := admin.Status().Update(testContext(t), found); err != nil {
		t.Fatal(err)
	}
}
