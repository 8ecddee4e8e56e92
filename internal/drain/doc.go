// Package drain empties a Node as its Machine's MachineDrainRules ask, for the operator and for kubectl machines drain.
//
// In: the pods that kubectl's own filters leave on a Node, the rules of the management cluster, and the labels of the
// pods' namespaces. Out: which pods to evict now, which to wait for, and in words what holds up the rest. Plan and the
// reading of rules are pure; Pass does one round against the API server and never blocks on a pod.
//
// The package knows nothing of conditions, timeouts and terminals.
package drain
