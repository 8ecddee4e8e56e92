package machine

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

func TestWhatIsMissingIsToldWithTheNextStep(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, infrav1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	empty := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "empty"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(empty).Build()
	r := &Reconciler{Client: c, Live: c}
	meta := metav1.ObjectMeta{Namespace: "fleet", Name: "m", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}}
	with := func(secret string) *scope {
		owner := &clusterv1.Machine{ObjectMeta: meta}
		owner.Spec.Bootstrap.DataSecretName = &secret
		return &scope{machine: &infrav1.VSphereMachine{ObjectMeta: meta}, owner: owner}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	cluster.Spec.InfrastructureRef.Name = "gone"
	bootstrap := func(s *scope) error { _, err := r.bootstrapData(context.Background(), s); return err }
	connect := func(s *scope) error { return r.connect(context.Background(), s) }

	for name, tc := range map[string]struct {
		do   func(*scope) error
		s    *scope
		want []string
	}{
		"no Cluster":          {connect, with("x"), []string{`VSphereMachine "m"`, `create Cluster "prod" again`}},
		"no VSphereCluster":   {connect, &scope{machine: with("x").machine, cluster: cluster}, []string{`"fleet/gone"`, "create it", "spec.infrastructureRef"}},
		"no Secret":           {bootstrap, with("gone"), []string{`"fleet/gone"`, "create it again", "delete the Machine"}},
		"nothing in a Secret": {bootstrap, with("empty"), []string{`"fleet/empty"`, "put the data there", "delete the Machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(tc.s)
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range tc.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is %q; want it to say %s", err, part)
				}
			}
		})
	}
}

func TestAVirtualMachineWhoseCloneHasJustEndedIsKnownByItsIdentity(t *testing.T) {
	const uid = "4C4C4544-0035"
	for name, tc := range map[string]struct {
		named *vcenter.VM
		own   bool
		goes  action
	}{
		// Taken for a stranger, it would be left behind when its machine goes.
		"its own":          {&vcenter.VM{Name: "m", InstanceUUID: strings.ToLower(uid), Power: vcenter.PoweredOff}, true, destroy},
		"somebody else's":  {&vcenter.VM{Name: "m", InstanceUUID: "other", Power: vcenter.PoweredOff}, false, finish},
		"still being made": {&vcenter.VM{Name: "m"}, false, wait},
		"none":             {nil, false, finish},
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot{name: "m", clone: &infrav1.VirtualMachineCloneStatus{Name: "m"}}
			s.recognize(tc.named, uid)
			if own := s.vm != nil; own != tc.own {
				t.Errorf("own is %v, want %v", own, tc.own)
			}
			if got := nextDeletion(s).action; got != tc.goes {
				t.Errorf("a machine that goes: %s, want %s", got, tc.goes)
			}
		})
	}
}
