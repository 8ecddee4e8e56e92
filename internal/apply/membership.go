package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MembershipLabel is on every object of a set; its value is the set's Membership.
const MembershipLabel = partOfLabel

// Membership is what the label of a set's members says.
func Membership(set string) string { return setID(set) }

// Fingerprint condenses what a set owns on a live object, as Member.Owned holds
// it; empty when it owns nothing. It needs the object's metadata alone.
func Fingerprint(object metav1.Object) string { return ownedDigest(object.GetManagedFields()) }
