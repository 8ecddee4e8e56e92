package bootstrap

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/millwright-dev/millwright/internal/pki"
)

func testCA(t *testing.T) []byte {
	t.Helper()
	ca, err := pki.NewCA("kubernetes", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return ca.Cert
}

func pinsOf(t *testing.T, ca []byte) []string {
	t.Helper()
	pins, err := pki.CertHashes(ca)
	if err != nil {
		t.Fatal(err)
	}
	return pins
}

func loadKubeconfig(t *testing.T, content string) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&bootstrapv1.KubeadmConfig{}).WithObjects(objects...).Build()
}

func machineNamed(name string) *clusterv1.Machine {
	return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}}
}

func TestLockGoesToOneMachineAndOutlivesACrash(t *testing.T) {
	ctx, cluster := context.Background(), worker().cluster
	first, second := machineNamed("cp-1"), machineNamed("cp-2")
	c := newClient(t, first, second)
	// Each acquire has a lock of its own, as after a restart: nothing is kept in memory.
	acquire := func(machine *clusterv1.Machine) string {
		t.Helper()
		holder, err := initLock{client: c, live: c}.acquire(ctx, cluster, machine)
		if err != nil {
			t.Fatal(err)
		}
		return holder
	}

	if holder := acquire(first); holder != "" {
		t.Fatalf("a free lock is held by %q", holder)
	}
	if holder := acquire(first); holder != "" {
		t.Errorf("after a crash between lock and user data the holder is told %q holds it", holder)
	}
	if holder := acquire(second); holder != "cp-1" {
		t.Errorf("the second machine is told %q, want cp-1", holder)
	}

	if err := c.Delete(ctx, first); err != nil {
		t.Fatal(err)
	}
	if holder := acquire(second); holder != "" {
		t.Errorf("the lock of a Machine that is gone is kept by %q", holder)
	}
	lock := &corev1.ConfigMap{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: "fleet", Name: "prod-lock"}, lock); err != nil {
		t.Fatal(err)
	}
	if got := lock.Data["lock-information"]; got != `{"machineName":"cp-2"}` {
		t.Errorf("lock-information = %s: upstream's controllers could not read it", got)
	}
	if len(lock.OwnerReferences) != 1 || lock.OwnerReferences[0].UID != cluster.UID {
		t.Errorf("the lock does not go with its Cluster: owners %v", lock.OwnerReferences)
	}

	for range 2 {
		if err := (initLock{client: c, live: c}).release(ctx, cluster); err != nil {
			t.Fatalf("release: %v", err)
		}
	}
}

func TestUnreadableLockIsAnErrorAndNotTaken(t *testing.T) {
	c := newClient(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-lock"}, Data: map[string]string{lockKey: "{"}})
	if _, err := (initLock{client: c, live: c}).acquire(context.Background(), worker().cluster, machineNamed("cp-1")); err == nil {
		t.Error("a lock that cannot be read was taken")
	}
}

func TestMoveForALock(t *testing.T) {
	tests := map[string]struct {
		holder string
		exists bool
		want   lockMove
	}{
		"nobody holds it":                {"", false, take},
		"the machine itself holds it":    {"cp-1", false, keep},
		"a living machine holds it":      {"cp-2", true, yield},
		"a machine that is gone held it": {"cp-2", false, seize},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := moveFor("cp-1", tc.holder, tc.exists); got != tc.want {
				t.Errorf("moveFor = %q, want %q", got, tc.want)
			}
		})
	}
}
