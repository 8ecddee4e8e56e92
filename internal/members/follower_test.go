package members

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/internal/apply"
)

func TestOnlyWhatIsLookedAtIsKeptOfAMember(t *testing.T) {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "proxy", UID: "1", ResourceVersion: "7", Generation: 3,
		Labels:      map[string]string{apply.MembershipLabel: "applyset-x-v1", "app": "proxy"},
		Annotations: map[string]string{"note": "long"},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: apply.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
		}},
	}}
	stripped, err := strip(live)
	if err != nil {
		t.Fatal(err)
	}
	kept := stripped.(*metav1.PartialObjectMetadata)
	if diff := cmp.Diff(map[string]string{apply.MembershipLabel: "applyset-x-v1"}, kept.Labels); diff != "" || kept.ManagedFields != nil {
		t.Errorf("labels (-want +got):\n%s, managedFields %v", diff, kept.ManagedFields)
	}
	want := &State{Fingerprint: apply.Fingerprint(live), ResourceVersion: "7"}
	if diff := cmp.Diff(want, stateOf(kept)); diff != "" || want.Fingerprint == "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}
