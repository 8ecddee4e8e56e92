package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func ours(fields string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:x":{}}`)},
		{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
	}
}

func TestDriftIsSeenInWhatWeOwn(t *testing.T) {
	const fields = `{"f:spec":{"f:replicas":{}}}`
	recorded := Member{ID: ID{Kind: "ConfigMap", Namespace: "demo", Name: "a"}, Owned: ownedDigest(ours(fields))}
	live := func(entries []metav1.ManagedFieldsEntry) *unstructured.Unstructured {
		object := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: demo}}")
		object.SetManagedFields(entries)
		return object
	}
	unrecorded := recorded
	unrecorded.Owned = ""
	cases := map[string]struct {
		member  Member
		live    *unstructured.Unstructured
		drifted bool
		status  status.Status
	}{
		"it is as it was applied":        {recorded, live(ours(fields)), false, status.CurrentStatus},
		"somebody took over a field":     {recorded, live(ours(`{"f:spec":{}}`)), true, status.CurrentStatus},
		"somebody took over all":         {recorded, live(nil), true, status.CurrentStatus},
		"it is gone":                     {recorded, nil, true, status.NotFoundStatus},
		"what we own was never recorded": {unrecorded, live(nil), false, status.CurrentStatus},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judge(tc.member, tc.live)
			if got.Drifted != tc.drifted || got.Status != tc.status {
				t.Errorf("drifted %v, status %s; want %v, %s", got.Drifted, got.Status, tc.drifted, tc.status)
			}
		})
	}
}
