package machine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/event"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

func TestAnOwnerThatTakesTheOthersPlaceIsNews(t *testing.T) {
	set := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "s", UID: "1"}
	machine := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "m", UID: "2"}
	owned := func(owners ...metav1.OwnerReference) *infrav1.VSphereMachine {
		return &infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{Name: "m", OwnerReferences: owners}}
	}
	status := owned(machine)
	status.Status.VMRef = "vm-1"
	for name, tc := range map[string]struct {
		before, after *infrav1.VSphereMachine
		want          bool
	}{
		"the first owner":                  {owned(), owned(machine), true},
		"handed over by the set":           {owned(set), owned(machine), true},
		"nothing but what we report of it": {owned(machine), status, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := notOnlyStatus().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("reconciled: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestANodeThatIsNotReadyAnyMoreIsNews(t *testing.T) {
	told := func(status metav1.ConditionStatus) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		if status != "" {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineNodeReadyCondition, Status: status}}
		}
		return m
	}
	for name, tc := range map[string]struct {
		before, after metav1.ConditionStatus
		want          bool
	}{
		"silent":        {metav1.ConditionTrue, metav1.ConditionUnknown, true},
		"not ready":     {metav1.ConditionTrue, metav1.ConditionFalse, true},
		"still silent":  {metav1.ConditionUnknown, metav1.ConditionFalse, false},
		"ready":         {metav1.ConditionFalse, metav1.ConditionTrue, false},
		"not yet there": {"", metav1.ConditionUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nodeFellSilent().Update(event.UpdateEvent{ObjectOld: told(tc.before), ObjectNew: told(tc.after)}); got != tc.want {
				t.Errorf("reconciled: %v, want %v", got, tc.want)
			}
		})
	}
}
