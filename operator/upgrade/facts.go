package upgrade

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
	"github.com/millwright-dev/millwright/internal/preflight"
)

// factsTimeout bounds what a preflight asks a workload cluster.
const factsTimeout = 15 * time.Second

// facts reads what the preflight judges.
func (r *Reconciler) facts(ctx context.Context, s snapshot, target *semver.Version) (upgrade.Facts, error) {
	f := upgrade.Facts{Objects: s.objects, Now: s.now, Target: target, UnreadyAddons: preflight.Unready(s.releases)}
	cluster := client.ObjectKeyFromObject(s.objects.Cluster)
	others := &lifecyclev1.ClusterUpgradeList{}
	if err := r.Client.List(ctx, others, client.InNamespace(cluster.Namespace)); err != nil {
		return f, fmt.Errorf("list the upgrades of cluster %q: %w", cluster, err)
	}
	for i := range others.Items {
		// The older goes first: two that wait for each other would wait for ever.
		if other := &others.Items[i]; other.Spec.ClusterName == cluster.Name && other.UID != s.upgrade.UID && !other.Status.Phase.Over() && older(other, s.upgrade) {
			f.Others = append(f.Others, other.Name)
		}
	}
	var err error
	if f.Authorities, err = preflight.Authorities(ctx, r.Client, cluster); err != nil {
		return f, err
	}
	connection, err := r.Workload.Get(ctx, cluster)
	if err != nil {
		f.Unreachable = r.Workload.Health(cluster).Cause()
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, factsTimeout)
	defer cancel()
	if f.Workload, err = preflight.Ask(ctx, connection.Clientset); err != nil {
		f.Workload, f.Unreachable = nil, err.Error()
	}
	return f, nil
}

// older orders upgrades by age, and by name where they are of the same second.
func older(a, b *lifecyclev1.ClusterUpgrade) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// baseName is the name of an image that is given by its path in an inventory.
func baseName(image string) string { return path.Base(image) }

// describeObject names an object in a finding.
func describeObject(o object) string {
	if o.deployment != nil {
		return fmt.Sprintf("machinedeployment %q", o.deployment.Name)
	}
	return fmt.Sprintf("%s %q", strings.ToLower(o.controlPlane.GetKind()), o.controlPlane.GetName())
}
