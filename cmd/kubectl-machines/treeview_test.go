package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/millwright-dev/millwright/internal/graph"
)

func TestDrawTree(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := func(ago time.Duration) *time.Time { return ptr.To(now.Add(-ago)) }
	three := func(ready, upToDate int32) *graph.Replicas {
		return &graph.Replicas{Desired: ptr.To[int32](3), Ready: ptr.To(ready), UpToDate: ptr.To(upToDate)}
	}
	unready := &graph.Node{
		Kind: "Machine", Name: "prod-x", Phase: "Provisioning", Ready: metav1.ConditionFalse, Reason: "NotReady", Since: since(90 * time.Second),
		Message: "* InfrastructureReady: the datastore has no room left for another disk\n* NodeHealthy: waiting",
		Children: []*graph.Node{{
			Kind: "AcmeMachine", Name: "prod-x", Ready: metav1.ConditionUnknown, Reason: "NotReported", Since: since(time.Minute), Behind: true,
		}},
	}
	cases := map[string]struct {
		root    *graph.Node
		width   int
		palette palette
		want    string
	}{
		"messages go below their line, with the branches": {
			root: &graph.Node{
				Kind: "Cluster", Name: "prod", Ready: metav1.ConditionTrue, Since: since(48 * time.Hour),
				Children: []*graph.Node{
					{
						Role: graph.RoleControlPlane, Kind: "KubeadmControlPlane", Name: "prod", Ready: metav1.ConditionTrue, Replicas: three(2, 3), Since: since(time.Hour),
						Children: []*graph.Node{unready},
					},
					{
						Role: graph.RoleWorkers, Replicas: three(3, 3),
						Children: []*graph.Node{{
							Kind: "Machine", Names: []string{"a", "b", "c", "d", "e"}, Phase: "Running", Ready: metav1.ConditionTrue, Since: since(time.Hour), Paused: true,
						}},
					},
				},
			},
			want: `
NAME                                       READY    REPLICAS  SINCE  REASON
Cluster/prod                               True               2d
├─ControlPlane - KubeadmControlPlane/prod  True     2/3       60m
│ └─Machine/prod-x Provisioning            False              90s    NotReady
│   │   * InfrastructureReady: the datastore has no room left for another disk
│   │   * NodeHealthy: waiting
│   └─AcmeMachine/prod-x                   Unknown            60s    NotReported
└─Workers                                           3/3
  └─5 Machines Running                     True               60m
        see a, b, c, ...
        paused: no controller acts on it
`,
		},
		"a rollout shows how many machines are up to date, and what is going on": {
			root: &graph.Node{
				Kind: "MachineDeployment", Name: "md", Ready: metav1.ConditionTrue, Replicas: three(3, 1), Since: since(time.Hour),
				Doing: []string{"RollingOut"}, Message: "Rolling out 2 not up-to-date replicas",
			},
			want: `
NAME                  READY  REPLICAS  UP-TO-DATE  SINCE  REASON
MachineDeployment/md  True   3/3       1           60m    RollingOut
    Rolling out 2 not up-to-date replicas
`,
		},
		"what a row says is not said again below it": {
			root: &graph.Node{
				Kind: "Cluster", Name: "prod", Ready: metav1.ConditionFalse, Reason: "NotAvailable", Since: since(time.Minute),
				Message: "* WorkersAvailable:\n  * MachineDeployment md: no machine is ready",
				Children: []*graph.Node{{
					Kind: "MachineDeployment", Name: "md", Ready: metav1.ConditionFalse, Reason: "NotAvailable", Since: since(time.Minute),
					Message: "no machine is ready",
					Children: []*graph.Node{{
						Kind: "Machine", Name: "a", Ready: metav1.ConditionFalse, Reason: "NotReady", Since: since(time.Minute),
						Message: "no machine is ready\nno template",
					}},
				}},
			},
			want: `
NAME                    READY  REPLICAS  SINCE  REASON
Cluster/prod            False            60s    NotAvailable
│   * WorkersAvailable:
│     * MachineDeployment md: no machine is ready
└─MachineDeployment/md  False            60s    NotAvailable
  └─Machine/a           False            60s    NotReady
        no machine is ready
        no template
`,
		},
		"messages are broken at the width of the terminal": {
			root:  unready,
			width: 40,
			want: `
NAME                         READY    REPLICAS  SINCE  REASON
Machine/prod-x Provisioning  False              90s    NotReady
│   * InfrastructureReady: the datastore
│     has no room left for another disk
│   * NodeHealthy: waiting
└─AcmeMachine/prod-x         Unknown            60s    NotReported
`,
		},
		"colours do not move the columns": {
			root:    &graph.Node{Kind: "Cluster", Name: "prod", Ready: metav1.ConditionFalse, Reason: "NotAvailable", Since: since(time.Second)},
			palette: palette{on: true},
			want: "\n\x1b[1mNAME\x1b[0m          \x1b[1mREADY\x1b[0m  \x1b[1mREPLICAS\x1b[0m  \x1b[1mSINCE\x1b[0m  \x1b[1mREASON\x1b[0m\n" +
				"Cluster/prod  \x1b[31mFalse\x1b[0m            1s     NotAvailable\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := "\n" + strings.Join(drawTree(tc.root, now, tc.width, tc.palette), "\n") + "\n"
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
}
