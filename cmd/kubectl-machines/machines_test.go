package main

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAMachineThatIsHeldUpSaysByWhat(t *testing.T) {
	const why = `Pod "shop/web-0" may not be evicted: PodDisruptionBudget "web" allows no disruption`
	ready := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	ready.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue}}
	leaving := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "b", DeletionTimestamp: &metav1.Time{Time: time.Unix(0, 0)}}}
	leaving.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, Message: "* " + why + "\n"}}

	cases := map[string]struct {
		machines []client.Object
		always   bool
		want     string
	}{
		"nothing is held up":              {[]client.Object{ready}, false, ""},
		"nothing yet, in a table to come": {[]client.Object{ready}, true, "MESSAGE"},
		"a pod holds up a drain":          {[]client.Object{ready, leaving}, false, why},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(machineTable(tc.machines, tc.always, time.Now()), &out)
			if err != nil {
				t.Fatal(err)
			}
			if has := strings.Contains(out.String(), "MESSAGE"); has != (tc.want != "") || !strings.Contains(out.String(), tc.want) {
				t.Errorf("the table is\n%s\nwant %q in it, and a column for it only then", out.String(), tc.want)
			}
		})
	}
}
