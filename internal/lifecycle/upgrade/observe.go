package upgrade

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/Masterminds/semver/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// Objects are the objects of one cluster as the management cluster holds them, of whatever provider.
type Objects struct {
	Cluster *clusterv1.Cluster
	// ControlPlane is nil where the cluster has none that is managed here.
	ControlPlane *unstructured.Unstructured
	Deployments  []*clusterv1.MachineDeployment
	Machines     []*clusterv1.Machine
	// ServerVersion is what the API server of a cluster without a ControlPlane says of itself.
	ServerVersion string
}

// Selection is what of a cluster is moved, and in which order.
type Selection struct {
	// Order lists MachineDeployments that go first; Only, where it is not empty, those that are moved at all.
	Order, Only []string
	// ControlPlaneStays and WorkersStay leave them where they are.
	ControlPlaneStays, WorkersStay bool
}

// Observe reads the versions of a cluster's machines from its objects. The error names an object whose version cannot
// be read, or a MachineDeployment of the selection that there is not.
func (o Objects) Observe(s Selection) (Cluster, error) {
	c := Cluster{Name: o.Cluster.Name}
	var err error
	if c.ControlPlane, err = o.controlPlane(s); err != nil {
		return Cluster{}, err
	}
	for _, name := range slices.Concat(s.Order, s.Only) {
		if o.Deployment(name) == nil {
			return Cluster{}, fmt.Errorf("cluster %q has no MachineDeployment %q", o.Cluster.Name, name)
		}
	}
	for _, deployment := range inOrder(o.Deployments, s.Order) {
		if !deployment.DeletionTimestamp.IsZero() {
			continue
		}
		pool, err := o.pool(deployment, c.ControlPlane.Oldest)
		if err != nil {
			return Cluster{}, err
		}
		pool.Stays = s.WorkersStay || len(s.Only) > 0 && !slices.Contains(s.Only, pool.Name)
		c.Pools = append(c.Pools, pool)
	}
	return c, nil
}

// Deployment returns the MachineDeployment of a name, nil where there is none.
func (o Objects) Deployment(name string) *clusterv1.MachineDeployment {
	for _, d := range o.Deployments {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// ControlPlaneMachines returns the Machines of the control plane, MachinesOf those of a MachineDeployment.
func (o Objects) ControlPlaneMachines() []*clusterv1.Machine {
	return o.machines(func(m *clusterv1.Machine) bool {
		_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
		return is
	})
}

// MachinesOf returns the Machines of a MachineDeployment.
func (o Objects) MachinesOf(deployment string) []*clusterv1.Machine {
	return o.machines(func(m *clusterv1.Machine) bool {
		return m.Labels[clusterv1.MachineDeploymentNameLabel] == deployment
	})
}

func (o Objects) machines(of func(*clusterv1.Machine) bool) []*clusterv1.Machine {
	var out []*clusterv1.Machine
	for _, m := range o.Machines {
		if of(m) {
			out = append(out, m)
		}
	}
	return out
}

func (o Objects) controlPlane(s Selection) (ControlPlane, error) {
	if o.ControlPlane == nil {
		server, err := lifecycle.ParseVersion(o.ServerVersion)
		if err != nil {
			return ControlPlane{}, fmt.Errorf("cluster %q has no control plane that is managed here, and its API server tells no version: %w", o.Cluster.Name, err)
		}
		return ControlPlane{Oldest: server, Newest: server, Stays: true}, nil
	}
	object := fmt.Sprintf("%s %q", o.ControlPlane.GetKind(), o.ControlPlane.GetName())
	wanted, err := lifecycle.ParseVersion(contract.Version(o.ControlPlane))
	if err != nil {
		return ControlPlane{}, fmt.Errorf("%s: spec.version: %w", object, err)
	}
	machines := o.ControlPlaneMachines()
	versions, err := versionsOf(machines)
	if err != nil {
		return ControlPlane{}, err
	}
	cp := ControlPlane{Replicas: ptr.Deref(contract.Replicas(o.ControlPlane).Desired, int32(len(machines))), Stays: s.ControlPlaneStays}
	cp.Oldest, cp.Newest = span(versions, wanted)
	cp.Machines = countNot(versions, cp.Newest)
	return cp, nil
}

// pool reads a MachineDeployment; one without a version has that of the control plane.
func (o Objects) pool(deployment *clusterv1.MachineDeployment, otherwise *semver.Version) (Pool, error) {
	wanted := otherwise
	if text := deployment.Spec.Template.Spec.Version; text != "" {
		var err error
		if wanted, err = lifecycle.ParseVersion(text); err != nil {
			return Pool{}, fmt.Errorf("MachineDeployment %q: spec.template.spec.version: %w", deployment.Name, err)
		}
	}
	versions, err := versionsOf(o.MachinesOf(deployment.Name))
	if err != nil {
		return Pool{}, err
	}
	p := Pool{Name: deployment.Name, Replicas: ptr.Deref(deployment.Spec.Replicas, 1)}
	p.Oldest, p.Newest = span(versions, wanted)
	p.Outdated = func(version *semver.Version) int32 { return countNot(versions, version) }
	return p, nil
}

func versionsOf(machines []*clusterv1.Machine) ([]*semver.Version, error) {
	var out []*semver.Version
	for _, m := range machines {
		if m.Spec.Version == "" {
			continue
		}
		version, err := lifecycle.ParseVersion(m.Spec.Version)
		if err != nil {
			return nil, fmt.Errorf("Machine %q: spec.version: %w", m.Name, err)
		}
		out = append(out, version)
	}
	return out, nil
}

// span returns the oldest and the newest of the versions that there are and the one that is wanted.
func span(versions []*semver.Version, wanted *semver.Version) (oldest, newest *semver.Version) {
	oldest, newest = wanted, wanted
	for _, version := range versions {
		if version.LessThan(oldest) {
			oldest = version
		}
		if newest.LessThan(version) {
			newest = version
		}
	}
	return oldest, newest
}

func countNot(versions []*semver.Version, version *semver.Version) int32 {
	var n int32
	for _, have := range versions {
		if !have.Equal(version) {
			n++
		}
	}
	return n
}

// inOrder sorts deployments: those that are listed first, in that order, then the others by name.
func inOrder(deployments []*clusterv1.MachineDeployment, order []string) []*clusterv1.MachineDeployment {
	rank := func(d *clusterv1.MachineDeployment) int {
		if i := slices.Index(order, d.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	return slices.SortedFunc(slices.Values(deployments), func(a, b *clusterv1.MachineDeployment) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
}
