package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=list

// leaseGrace is how often over its duration a Lease may be overdue and still count as held: clocks differ, and a
// controller that is merely slow must not find a second one at work.
const leaseGrace = 2

// errUpstream says which live controller keeps a group from being started.
type errUpstream struct {
	group, namespace, lease, holder string
}

func (e errUpstream) Error() string {
	return fmt.Sprintf("controllers of group %q are not started: Lease %q in namespace %q is held by %q, an upstream controller of the same kinds: "+
		"scale it to 0 and restart this operator, or leave %q out of --controllers", e.group, e.lease, e.namespace, e.holder, e.group)
}

// checkUpstream returns an errUpstream for the first group whose kinds a live upstream controller reconciles.
func checkUpstream(leases []coordinationv1.Lease, g group, now time.Time) error {
	for _, lease := range leases {
		if slices.Contains(g.upstreamLeases, lease.Name) && live(lease, now) {
			return errUpstream{group: g.name, namespace: lease.Namespace, lease: lease.Name, holder: *lease.Spec.HolderIdentity}
		}
	}
	return nil
}

// live tells whether a Lease has a holder that renewed it recently.
func live(lease coordinationv1.Lease, now time.Time) bool {
	if ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil {
		return false
	}
	duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 15)) * time.Second
	return now.Sub(lease.Spec.RenewTime.Time) < leaseGrace*duration
}

// listLeases reads the Leases of all namespaces: upstream's controllers may have been installed in any.
func listLeases(ctx context.Context, reader client.Reader) ([]coordinationv1.Lease, error) {
	list := &coordinationv1.LeaseList{}
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list Leases to find live upstream controllers: %w", err)
	}
	return list.Items, nil
}
