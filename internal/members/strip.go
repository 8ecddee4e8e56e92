package members

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-dev/millwright/internal/apply"
)

// fingerprint is the annotation under which a stripped object keeps what its managedFields came to.
const fingerprint = "fingerprint"

// strip leaves of an object what is looked at: managedFields alone are half of it.
func strip(object any) (any, error) {
	live, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	stripped := &metav1.PartialObjectMetadata{TypeMeta: live.TypeMeta}
	stripped.Name, stripped.Namespace, stripped.UID, stripped.ResourceVersion = live.Name, live.Namespace, live.UID, live.ResourceVersion
	stripped.DeletionTimestamp = live.DeletionTimestamp
	stripped.Labels = map[string]string{apply.MembershipLabel: live.Labels[apply.MembershipLabel]}
	stripped.Annotations = map[string]string{fingerprint: apply.Fingerprint(live)}
	return stripped, nil
}

func stateOf(stripped *metav1.PartialObjectMetadata) *State {
	return &State{Fingerprint: stripped.Annotations[fingerprint], ResourceVersion: stripped.ResourceVersion, Deleting: stripped.DeletionTimestamp != nil}
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}
