package graph

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// NotReported is the reason of an object that no controller has reported on.
const NotReported = "NotReported"

// State is what an object says of itself, in the same words for all kinds.
type State struct {
	// Ready is True, False or Unknown.
	Ready   metav1.ConditionStatus
	Reason  string
	Message string
	// Since is when Ready became what it is.
	Since time.Time
	// Doing are the names of what its controller is at, such as RollingOut.
	Doing    []string
	Deleting bool
	Paused   bool
}

// stateConditions are the conditions that tell, by kind, whether an object is as
// it should be; the first that is there decides. Other kinds have Ready by the
// contract of providers, control planes Available.
var stateConditions = map[string][]string{
	"Cluster":            {clusterv1.AvailableCondition, clusterv1.ReadyCondition},
	"MachineDeployment":  {clusterv1.AvailableCondition, clusterv1.ReadyCondition},
	"MachineSet":         {clusterv1.MachinesReadyCondition, clusterv1.ReadyCondition},
	"MachineHealthCheck": {clusterv1.MachineHealthCheckRemediationAllowedCondition},
}

// doingConditions tell what a controller is at, while an object may be ready.
var doingConditions = []string{
	clusterv1.RollingOutCondition, clusterv1.ScalingUpCondition, clusterv1.ScalingDownCondition,
	clusterv1.RemediatingCondition, clusterv1.MachineUpdatingCondition,
}

var otherConditions = []string{clusterv1.ReadyCondition, clusterv1.AvailableCondition}

// State returns the state of an object.
func (o *Object) State() State {
	all := o.Conditions()
	state := State{Paused: isTrue(all, clusterv1.PausedCondition) || isPaused(o)}
	if deleted := o.GetDeletionTimestamp(); deleted != nil {
		state.Deleting = true
		state.Ready, state.Reason, state.Since = metav1.ConditionFalse, "Deleting", deleted.Time
		if deleting := find(all, clusterv1.DeletingCondition); deleting != nil && deleting.Status == metav1.ConditionTrue {
			state.Reason, state.Message = deleting.Reason, deleting.Message
		}
		return state
	}
	for _, doing := range doingConditions {
		if c := find(all, doing); c != nil && c.Status == metav1.ConditionTrue {
			state.Doing = append(state.Doing, doing)
			state.Message = c.Message
		}
	}
	wanted, ok := stateConditions[o.Kind.Kind]
	if !ok {
		wanted = otherConditions
	}
	for _, conditionType := range wanted {
		if c := find(all, conditionType); c != nil {
			state.Ready, state.Reason, state.Since = c.Status, c.Reason, c.LastTransitionTime.Time
			if c.Status != metav1.ConditionTrue || len(state.Doing) == 0 {
				state.Message = c.Message
			}
			return state
		}
	}
	state.Since = o.GetCreationTimestamp().Time
	if done, known := initialized(o); known {
		state.Ready, state.Reason = metav1.ConditionFalse, "NotInitialized"
		if done {
			state.Ready, state.Reason = metav1.ConditionTrue, "Initialized"
		}
		return state
	}
	state.Ready, state.Reason = metav1.ConditionUnknown, NotReported
	state.Message = "no controller has reported on it yet"
	return state
}

// Conditions returns the conditions of the v1beta2 contract.
func (o *Object) Conditions() []metav1.Condition {
	switch obj := o.Object.(type) {
	case interface{ GetConditions() []metav1.Condition }:
		return obj.GetConditions()
	case *unstructured.Unstructured:
		return conditionsOf(obj)
	}
	return nil
}

// conditionsOf reads conditions of a provider's object. Those of the v1beta1
// contract keep the new ones apart, under status.v1beta2.
func conditionsOf(obj *unstructured.Unstructured) []metav1.Condition {
	items, found, _ := unstructured.NestedSlice(obj.Object, "status", "v1beta2", "conditions")
	if !found {
		items, _, _ = unstructured.NestedSlice(obj.Object, "status", "conditions")
	}
	var conditions []metav1.Condition
	for _, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { value, _ := fields[key].(string); return value }
		since, err := time.Parse(time.RFC3339, text("lastTransitionTime"))
		if err != nil {
			since = time.Time{}
		}
		conditions = append(conditions, metav1.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"),
			Message: text("message"), LastTransitionTime: metav1.NewTime(since),
		})
	}
	return conditions
}

// initialized tells whether an object of a provider without conditions says, by
// the contract, that its work is done.
func initialized(o *Object) (done, known bool) {
	obj, ok := o.Object.(*unstructured.Unstructured)
	if !ok {
		return false, false
	}
	for _, field := range []string{"provisioned", "dataSecretCreated", "controlPlaneInitialized"} {
		if done, found, _ := unstructured.NestedBool(obj.Object, "status", "initialization", field); found {
			return done, true
		}
	}
	return false, false
}

func isPaused(o *Object) bool {
	if _, paused := o.GetAnnotations()[clusterv1.PausedAnnotation]; paused {
		return true
	}
	switch obj := o.Object.(type) {
	case *clusterv1.Cluster:
		return obj.Spec.Paused != nil && *obj.Spec.Paused
	default:
		return false
	}
}

func find(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == conditionType {
			return &conditions[i]
		}
	}
	return nil
}

func isTrue(conditions []metav1.Condition, conditionType string) bool {
	c := find(conditions, conditionType)
	return c != nil && c.Status == metav1.ConditionTrue
}
