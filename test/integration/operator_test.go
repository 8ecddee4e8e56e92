package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/millwright-dev/millwright/operator/app"
)

func newLease(namespace, name, holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &holder,
			LeaseDurationSeconds: ptr.To[int32](60),
			AcquireTime:          ptr.To(metav1.NewMicroTime(renewed)),
			RenewTime:            ptr.To(metav1.NewMicroTime(renewed)),
		},
	}
}

func TestAGroupOfWhichUpstreamIsAliveIsRefused(t *testing.T) {
	namespace := newNamespace(t)
	lease := newLease(namespace, "controller-leader-election-capi", "capi-controller-manager-0", time.Now())
	create(t, lease)
	t.Cleanup(func() {
		if err := admin.Delete(context.Background(), lease); err != nil {
			t.Errorf("delete the Lease: %v", err)
		}
	})

	_, err := app.NewManager(t.Context(), operator, options(namespace, "core"), logr.Discard())
	for _, part := range []string{`group "core"`, `Lease "controller-leader-election-capi"`, namespace, "capi-controller-manager-0", "--controllers"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error is %v, want one that says %s", err, part)
		}
	}
	if _, err := app.NewManager(t.Context(), operator, options(namespace, "core", "kubeadm"), logr.Discard()); err != nil {
		t.Errorf("a group that upstream does not run was refused with the other: %v", err)
	}

	get(t, lease).Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))
	if err := admin.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	if _, err := app.NewManager(t.Context(), operator, options(namespace, "core"), logr.Discard()); err != nil {
		t.Errorf("the Lease of a dead controller still counts: %v", err)
	}
}

func TestAKilledOperatorTakesItsOwnLeaseBackAtOnce(t *testing.T) {
	// What an operator of this name leaves behind when it is killed: a Lease that is valid for a minute more.
	lease := newLease("millwright-system", "millwright-operator", "here", time.Now())
	create(t, lease)
	o := options(newNamespace(t), "core")
	o.LeaderElect, o.LeaderElectIdentity = true, "here"
	ctx, cancel := context.WithCancel(t.Context())
	mgr, err := app.NewManager(ctx, operator, o, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case <-mgr.Elected():
	case <-time.After(10 * time.Second):
		t.Error("not elected while its own Lease is valid")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stop: %v", err)
	}
	if holder := ptr.Deref(get(t, lease).Spec.HolderIdentity, ""); holder != "" {
		t.Errorf("a stopped operator still holds its Lease as %q", holder)
	}
}
