// Package upgrade decides how a whole cluster gets from the versions that it has to the one that is wanted: the legs of
// the control plane, one minor each, and between them the add-ons and the workers.
//
// In: versions of machines and add-ons as they are observed, and what there is to move to. Out: steps in order, or the
// reasons why there are none. A plan is made anew from what is observed, never continued from a counter: after an
// interruption it has the steps that are left. It is pure: no client, no clock, no knowledge of any provider.
//
// The rules are those of https://kubernetes.io/releases/version-skew-policy/.
package upgrade
