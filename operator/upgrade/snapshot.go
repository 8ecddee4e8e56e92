package upgrade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/Masterminds/semver/v3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
	"github.com/millwright-dev/millwright/internal/preflight"
)

// snapshot reads what the next decision is made on.
func (r *Reconciler) snapshot(ctx context.Context, u *lifecyclev1.ClusterUpgrade, cluster *clusterv1.Cluster) (snapshot, error) {
	s := snapshot{upgrade: u, now: r.Now()}
	target, err := lifecycle.ParseVersion(u.Spec.Version)
	if err != nil {
		return s, err
	}
	if s.objects, err = r.objects(ctx, cluster); err != nil {
		return s, err
	}
	if s.releases, err = r.releases(ctx, cluster); err != nil {
		return s, err
	}
	s.opening, s.windowErr = upgrade.Windows(windows(u.Spec.Windows), s.now)
	observed, err := s.objects.Observe(selection(u.Spec))
	if err != nil {
		s.blockers = append(s.blockers, upgrade.Finding{Check: upgrade.CheckVersion, Object: fmt.Sprintf("cluster %q", cluster.Name), Message: err.Error()})
		return s, nil
	}
	sources, err := r.sources(ctx, s)
	if err != nil {
		return s, err
	}
	names, err := r.imageNames(ctx, cluster, sources)
	if err != nil {
		s.blockers = append(s.blockers, upgrade.Finding{Check: upgrade.CheckImage, Object: fmt.Sprintf("cluster %q", cluster.Name),
			Message: fmt.Sprintf("the machine images cannot be listed: %v", err)})
	}
	observed.Addons = preflight.Addons(s.releases, r.Catalogue, u.Spec.Addons == lifecyclev1.AddonsStay)
	observed.Images = versions(u.Spec, target, observed, sources, names)
	s.plan = upgrade.New(observed, upgrade.Options{Target: target, Workers: workers(u.Spec.Workers.Strategy), Force: u.Spec.Force})
	s.findTemplates(sources, names)
	if !s.begun() && len(s.plan.Steps) > 0 {
		facts, err := r.facts(ctx, s, target)
		if err != nil {
			return s, err
		}
		s.connecting = facts.Workload == nil && facts.Unreachable == ""
		blockers, warnings := upgrade.Preflight(facts)
		s.blockers, s.warnings = append(s.blockers, blockers...), append(s.warnings, warnings...)
	}
	s.force()
	return s, nil
}

// objects reads the objects of a cluster from the cache.
func (r *Reconciler) objects(ctx context.Context, cluster *clusterv1.Cluster) (upgrade.Objects, error) {
	o := upgrade.Objects{Cluster: cluster}
	if ref := cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		controlPlane, err := r.resolver.Get(ctx, cluster.Namespace, ref)
		if err != nil {
			return o, err
		}
		if err := r.watch(controlPlane.GroupVersionKind()); err != nil {
			return o, err
		}
		o.ControlPlane = controlPlane
	} else if connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(cluster)); err == nil {
		// A cluster that does not answer has no version; Observe says so.
		if info, err := connection.Clientset.Discovery().ServerVersion(); err == nil {
			o.ServerVersion = info.GitVersion
		}
	}
	of := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}}
	deployments, machines := &clusterv1.MachineDeploymentList{}, &clusterv1.MachineList{}
	if err := r.Client.List(ctx, deployments, of...); err != nil {
		return o, fmt.Errorf("list the MachineDeployments of cluster %q: %w", cluster.Name, err)
	}
	if err := r.Client.List(ctx, machines, of...); err != nil {
		return o, fmt.Errorf("list the Machines of cluster %q: %w", cluster.Name, err)
	}
	for i := range deployments.Items {
		o.Deployments = append(o.Deployments, &deployments.Items[i])
	}
	for i := range machines.Items {
		o.Machines = append(o.Machines, &machines.Items[i])
	}
	return o, nil
}

// sources finds, for each object, the template that the next one is copied from.
func (r *Reconciler) sources(ctx context.Context, s snapshot) (map[string]source, error) {
	out := map[string]source{}
	if s.objects.Cluster.Spec.Topology.IsDefined() {
		// The templates are the topology controller's.
		return out, nil
	}
	for _, o := range s.objectsToMove() {
		src, err := r.sourceOf(ctx, o, s.upgrade.Spec.Images)
		if err != nil {
			return nil, err
		}
		out[o.name()] = src
	}
	return out, nil
}

// imageNames lists the machine images that the provider has; nil where it cannot tell.
func (r *Reconciler) imageNames(ctx context.Context, cluster *clusterv1.Cluster, sources map[string]source) ([]string, error) {
	if r.Images == nil {
		return nil, nil
	}
	for _, src := range sources {
		if src.template != nil {
			return r.Images.Names(ctx, cluster, src.template)
		}
	}
	return nil, nil
}

// findTemplates computes the template of each step that moves machines, and finds what is missing for it.
func (s *snapshot) findTemplates(sources map[string]source, names []string) {
	s.templates = map[target]*template{}
	if s.objects.Cluster.Spec.Topology.IsDefined() {
		return
	}
	missing := func(o object, message string) {
		finding := upgrade.Finding{Check: upgrade.CheckImage, Object: describeObject(o), Message: message}
		if !slices.Contains(s.blockers, finding) {
			s.blockers = append(s.blockers, finding)
		}
	}
	for _, step := range s.plan.Steps {
		src, ok := sources[step.Name]
		if !ok || step.Kind == upgrade.MoveAddon {
			continue
		}
		t, err := templateFor(src, s.upgrade.Spec.Images, step.To, s.upgrade.Spec.Version)
		if err != nil {
			missing(src.object, err.Error())
			continue
		}
		s.templates[target{step.Name, step.To}] = t
		if t.make == nil || names == nil {
			continue
		}
		to, err := lifecycle.ParseVersion(step.To)
		if err != nil {
			continue
		}
		if image := src.image.For(to); !slices.Contains(names, baseName(image)) {
			missing(src.object, fmt.Sprintf("there is no machine image %q: make it, or set spec.images.pattern to how the images are named", image))
		}
	}
}

// force takes out of the blockers what the user overrides. What the planner found is told by the planner.
func (s *snapshot) force() {
	var forced []upgrade.Finding
	s.blockers, forced = upgrade.Forced(s.blockers, s.upgrade.Spec.Force)
	s.plan.Forced = append(s.plan.Forced, forced...)
}

// versions are the Kubernetes versions that machines can be made of: those of the images that there are, or, where
// nobody can tell, those that the user names.
func versions(spec lifecyclev1.ClusterUpgradeSpec, target *semver.Version, observed upgrade.Cluster, sources map[string]source, names []string) []*semver.Version {
	var out []*semver.Version
	for _, src := range sources {
		for _, name := range names {
			if src.err != nil {
				continue
			}
			if version := src.image.Version(name); version != nil {
				out = append(out, version)
			}
		}
	}
	for _, given := range spec.Images.Templates {
		if version, err := lifecycle.ParseVersion(given.Version); err == nil {
			out = append(out, version)
		}
	}
	// Of a minor that the user chose a version of, no other will do.
	for _, text := range spec.Via {
		version, err := lifecycle.ParseVersion(text)
		if err != nil {
			continue
		}
		out = slices.DeleteFunc(out, func(other *semver.Version) bool {
			return other.Major() == version.Major() && other.Minor() == version.Minor()
		})
		out = append(out, version)
	}
	// Whether there is an image for these is checked with the templates, which can say how it would be called.
	out = append(out, target, observed.ControlPlane.Newest)
	return out
}

func windows(list []lifecyclev1.MaintenanceWindow) []upgrade.Window {
	out := make([]upgrade.Window, 0, len(list))
	for _, w := range list {
		out = append(out, upgrade.Window{Schedule: w.Schedule, TimeZone: w.TimeZone, Duration: time.Duration(w.DurationMinutes) * time.Minute})
	}
	return out
}

func selection(spec lifecyclev1.ClusterUpgradeSpec) upgrade.Selection {
	return upgrade.Selection{
		Order: spec.Workers.Order, Only: spec.Workers.Only,
		ControlPlaneStays: spec.Scope == lifecyclev1.ScopeWorkers,
		WorkersStay:       spec.Scope == lifecyclev1.ScopeControlPlane,
	}
}

func workers(strategy lifecyclev1.WorkerStrategy) upgrade.Workers {
	if strategy == lifecyclev1.WorkersEveryMinor {
		return upgrade.EveryMinorWorkers
	}
	return upgrade.SeldomWorkers
}
