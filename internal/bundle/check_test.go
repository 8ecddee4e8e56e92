package bundle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAHealthCheckJudgesTheObjectsThatItIsMeantFor(t *testing.T) {
	pool := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Pool", "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	numbers := make([]any, 10_000)
	for i := range numbers {
		numbers[i] = int64(i)
	}
	kind := schema.GroupKind{Group: "example.com", Kind: "Pool"}
	for name, tc := range map[string]struct {
		check  HealthCheck
		object *unstructured.Unstructured
		ok     bool
		why    string
	}{
		"it holds":              {check: HealthCheck{CEL: "self.spec.size > 1"}, object: pool("a", map[string]any{"size": int64(2)}), ok: true},
		"it does not hold":      {check: HealthCheck{CEL: "self.spec.size > 1"}, object: pool("a", map[string]any{"size": int64(1)}), why: "self.spec.size > 1 is not so"},
		"with a message":        {check: HealthCheck{CEL: "self.spec.size > 1", Message: "too small"}, object: pool("a", map[string]any{"size": int64(1)}), why: "too small"},
		"the field is missing":  {check: HealthCheck{CEL: "self.status.ready"}, object: pool("a", nil), why: "no such key: status"},
		"it is no truth":        {check: HealthCheck{CEL: "self.spec.size"}, object: pool("a", map[string]any{"size": int64(1)}), why: "is not true or false"},
		"it is of another kind": {check: HealthCheck{ObjectRef: ObjectRef{Kind: "Other"}, CEL: "false"}, object: pool("a", nil), ok: true},
		"it has another name":   {check: HealthCheck{ObjectRef: ObjectRef{Group: "example.com", Kind: "Pool", Name: "b"}, CEL: "false"}, object: pool("a", nil), ok: true},
		"it would take too long": {
			check:  HealthCheck{CEL: "self.spec.list.all(x, self.spec.list.all(y, x + y >= 0))"},
			object: pool("a", map[string]any{"list": numbers}), why: "cost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.check.Kind == "" {
				tc.check.ObjectRef = ObjectRef{Group: "example.com", Kind: "Pool"}
			}
			if err := tc.check.compile(); err != nil {
				t.Fatal(err)
			}
			ok, why := (&Version{Health: []HealthCheck{tc.check}}).Healthy(kind, tc.object)
			if ok != tc.ok || !strings.Contains(why, tc.why) {
				t.Errorf("healthy %t (%s), want %t (%s)", ok, why, tc.ok, tc.why)
			}
		})
	}
}
