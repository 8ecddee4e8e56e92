package cluster

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
)

func vsphereCluster(selector *metav1.LabelSelector) *infrav1.VSphereCluster {
	return &infrav1.VSphereCluster{Spec: infrav1.VSphereClusterSpec{
		Server: "vc", ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "10.0.0.1", Port: 6443}, FailureDomainSelector: selector,
	}}
}

func zone(name, server string, tune ...func(*infrav1.VSphereDeploymentZone)) infrav1.VSphereDeploymentZone {
	z := infrav1.VSphereDeploymentZone{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"site": "a"}}}
	z.Spec.Server = server
	for _, f := range tune {
		f(&z)
	}
	return z
}

func TestAClusterIsProvisionedOnceItHasALoginAndAnEndpoint(t *testing.T) {
	noEndpoint := vsphereCluster(nil)
	noEndpoint.Spec.ControlPlaneEndpoint.Port = 0
	for name, tc := range map[string]struct {
		snapshot snapshot
		want     bool
	}{
		"both":         {snapshot{cluster: vsphereCluster(nil)}, true},
		"no login":     {snapshot{cluster: vsphereCluster(nil), loginErr: errors.New("refused")}, false},
		"no endpoint":  {snapshot{cluster: noEndpoint}, false},
		"bad selector": {snapshot{cluster: vsphereCluster(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.snapshot).provisioned; got != tc.want {
				t.Errorf("provisioned is %v", got)
			}
		})
	}
}

func TestZonesOfTheClustersVCenterBecomeFailureDomains(t *testing.T) {
	zones := []infrav1.VSphereDeploymentZone{
		zone("b", "VC"), zone("a", ""),
		zone("workers", "vc", func(z *infrav1.VSphereDeploymentZone) { z.Spec.ControlPlane = new(false) }),
		zone("elsewhere", "other"),
		zone("broken", "vc", func(z *infrav1.VSphereDeploymentZone) { z.Status.Ready = new(false) }),
		zone("unlabelled", "vc", func(z *infrav1.VSphereDeploymentZone) { z.Labels = nil }),
	}
	got := decide(snapshot{cluster: vsphereCluster(&metav1.LabelSelector{MatchLabels: map[string]string{"site": "a"}}), zones: zones})
	want := []clusterv1.FailureDomain{
		{Name: "a", ControlPlane: new(true)}, {Name: "b", ControlPlane: new(true)}, {Name: "workers", ControlPlane: new(false)},
	}
	if diff := cmp.Diff(want, got.failureDomains); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
	if len(got.skippedZones) != 2 {
		t.Errorf("left out: %q; want the one elsewhere and the broken one", got.skippedZones)
	}
	if without := decide(snapshot{cluster: vsphereCluster(nil), zones: zones}); without.failureDomains != nil {
		t.Errorf("without a selector there are failure domains %v", without.failureDomains)
	}
}

func TestABadSelectorKeepsTheFailureDomains(t *testing.T) {
	cluster := vsphereCluster(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}})
	want := []clusterv1.FailureDomain{{Name: "a", ControlPlane: new(true)}}
	cluster.Status.FailureDomains = want
	setStatus(cluster, nil, decide(snapshot{cluster: cluster, zones: []infrav1.VSphereDeploymentZone{zone("b", "vc")}}))
	if diff := cmp.Diff(want, cluster.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains (-want +got):\n%s", diff)
	}
	if c := conditions.Get(cluster, infrav1.FailureDomainsReadyCondition); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("condition is %+v; want it to tell of the selector", c)
	}
}
