package app

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOnlyALiveUpstreamControllerOfTheSameKindsKeepsAGroupFromStarting(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lease := func(name, holder string, age time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "capi-system", Name: name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity:       &holder,
				LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime:            ptr.To(metav1.NewMicroTime(now.Add(-age))),
			},
		}
	}
	cases := map[string]struct {
		lease   coordinationv1.Lease
		refused string
	}{
		"core":                         {lease("controller-leader-election-capi", "a", time.Second), "core"},
		"bootstrap":                    {lease("kubeadm-bootstrap-manager-leader-election-capi", "a", time.Second), "kubeadm"},
		"control plane":                {lease("kubeadm-control-plane-manager-leader-election-capi", "a", time.Second), "kubeadm"},
		"vSphere":                      {lease("capv-controller-manager-runtime", "a", time.Second), "vsphere"},
		"renewed a little late":        {lease("controller-leader-election-capi", "a", 90*time.Second), "core"},
		"a clock that runs ahead":      {lease("controller-leader-election-capi", "a", -time.Hour), "core"},
		"long dead":                    {lease("controller-leader-election-capi", "a", time.Hour), ""},
		"given back":                   {lease("controller-leader-election-capi", "", time.Second), ""},
		"somebody else's":              {lease("kube-scheduler", "a", time.Second), ""},
		"never renewed":                {coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "controller-leader-election-capi"}}, ""},
		"our own operator is no enemy": {lease(leaseName, "a", time.Second), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, g := range groups() {
				err := checkUpstream([]coordinationv1.Lease{tc.lease}, g, now)
				if (err != nil) != (g.name == tc.refused) {
					t.Errorf("group %q: %v, want only %q refused", g.name, err, tc.refused)
				}
			}
		})
	}
}
