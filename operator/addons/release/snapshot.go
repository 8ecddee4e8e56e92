package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/members"
	"github.com/millwright-dev/millwright/internal/workload"
)

// indexCluster finds AddonReleases by spec.clusterName.
const indexCluster = "spec.clusterName"

// snapshot is what a cluster shall have of a bundle, and what is known of what it has.
type snapshot struct {
	release    *addonsv1.AddonRelease
	cluster    *clusterv1.Cluster
	connection *workload.Connection
	engine     *apply.Engine
	input      bundle.Input
	digest     string
	// record is the cluster's own; nil where nothing is installed.
	record *apply.Parent
	// known is nil where everything has to be compared.
	known *knowledge
}

// snapshot reads what there is to decide on. It is nil, with the reason in the report, where nothing may be applied.
func (r *Reconciler) snapshot(ctx context.Context, release *addonsv1.AddonRelease, cluster *clusterv1.Cluster, connection *workload.Connection, known *knowledge) (*snapshot, report, error) {
	found := report{known: known}
	engine, err := newEngine(release, connection)
	if err != nil {
		return nil, found, err
	}
	s := &snapshot{release: release, cluster: cluster, connection: connection, engine: engine, known: known}
	if known != nil {
		s.record = known.record
	} else if s.record, err = engine.Record(ctx, release.Spec.Bundle); err != nil {
		var absent *apply.NotInstalledError
		if !errors.As(err, &absent) {
			return nil, found, err
		}
	}
	found.record = s.record
	place, err := r.place(ctx, cluster, connection)
	if err != nil {
		return nil, found, err
	}
	found.kubernetes = place.kubernetes

	entry, err := r.Catalogue.Addon(release.Spec.Bundle)
	if err != nil {
		found.set(conditions.False(addonsv1.ResolvedCondition, addonsv1.BundleNotFoundReason, "%v", err))
		return nil, found, nil
	}
	chosen, err := choose(entry, wanted(release), place.kubernetes, s.installed())
	if err != nil {
		return nil, found, err
	}
	if held := release.Annotations[addonsv1.HeldVersionAnnotation]; held != "" && wanted(release) == held && chosen.version != nil {
		chosen.resolved = conditions.True(addonsv1.ResolvedCondition, addonsv1.HeldReason, "held at %s while the cluster is upgraded", held)
	}
	found.set(chosen.resolved)
	if chosen.version == nil {
		return nil, found, nil
	}
	found.target = chosen.version.Version
	engine.Check = addon.Check(chosen.version)
	if waiting, err := r.waitsFor(ctx, s, chosen.version); err != nil || waiting != "" {
		found.set(conditions.False(addonsv1.AppliedCondition, addonsv1.DependencyReason, "add-on %s has to be ready first", waiting))
		return nil, found, err
	}
	values, err := parameters(release)
	if err != nil {
		found.set(conditions.False(addonsv1.AppliedCondition, addonsv1.ParametersReason, "%v", err))
		return nil, found, nil
	}
	s.input = bundle.Input{Addon: entry, Version: chosen.version, Facts: place.facts, Values: values}
	if s.digest, err = s.input.Digest(); err != nil {
		found.set(conditions.False(addonsv1.AppliedCondition, addonsv1.ParametersReason, "%v", err))
		return nil, found, nil
	}
	found.digest = s.digest
	return s, found, nil
}

// wanted is the version that is asked for. While the cluster is being upgraded "auto" is what the upgrade says.
func wanted(release *addonsv1.AddonRelease) string {
	if held := release.Annotations[addonsv1.HeldVersionAnnotation]; held != "" && addonsv1.Follows(release.Spec.Version) {
		return held
	}
	return release.Spec.Version
}

// installed is what the record says of versions.
func (s *snapshot) installed() installed {
	if s.record == nil {
		return installed{}
	}
	now := installed{version: s.record.Version}
	for _, revision := range s.record.History {
		now.history = append(now.history, revision.Version)
	}
	return now
}

// waitsFor names the bundle that has to be ready before a version is installed. What is installed already waits for
// nobody: its drift is corrected whatever became of the others.
func (r *Reconciler) waitsFor(ctx context.Context, s *snapshot, version *bundle.Version) (string, error) {
	if len(version.DependsOn) == 0 || s.record != nil && s.record.Version == version.Version {
		return "", nil
	}
	others, err := r.releasesOn(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return "", err
	}
	var dependencies []dependency
	for i := range others {
		dependencies = append(dependencies, dependency{
			bundle: others[i].Spec.Bundle,
			ready:  settled(&others[i]),
		})
	}
	return waitsFor(version, dependencies), nil
}

// releasesOn lists the releases of a cluster.
func (r *Reconciler) releasesOn(ctx context.Context, cluster client.ObjectKey) ([]addonsv1.AddonRelease, error) {
	list := &addonsv1.AddonReleaseList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingFields{indexCluster: cluster.Name}); err != nil {
		return nil, fmt.Errorf("list the AddonReleases of cluster %q: %w", cluster, err)
	}
	return list.Items, nil
}

// parameters reads the parameters of a release as YAML would: whole numbers stay whole.
func parameters(release *addonsv1.AddonRelease) (map[string]any, error) {
	values := map[string]any{}
	for name, raw := range release.Spec.Parameters {
		var value any
		if err := utiljson.Unmarshal(raw.Raw, &value); err != nil {
			return nil, fmt.Errorf("spec.parameters.%s: %w", name, err)
		}
		switch value.(type) {
		case string, bool, int64, float64:
			values[name] = value
		default:
			return nil, fmt.Errorf("spec.parameters.%s: want a string, a number or a boolean", name)
		}
	}
	return values, nil
}

// news tells whether everything has to be compared again, else which members have to be looked at.
func (s *snapshot) news(follower *members.Follower) (moved []apply.ID, compare bool) {
	if s.known == nil || s.known.digest != s.digest || s.mayPrune() ||
		len(s.known.drift) > 0 && s.release.Spec.Drift != addonsv1.DriftReport {
		return nil, true
	}
	for _, member := range s.known.record.Members {
		state, known := follower.Get(client.ObjectKeyFromObject(s.cluster), member.ID)
		if !known {
			continue
		}
		switch s.known.news(member.ID, state) {
		case drifted:
			return nil, true
		case changed:
			moved = append(moved, member.ID)
		}
	}
	return moved, false
}

// mayPrune tells whether what waited for health may go now.
func (s *snapshot) mayPrune() bool {
	return s.known.unpruned > 0 && len(s.known.unhealthy()) == 0
}

// look judges members anew.
func (r *Reconciler) look(ctx context.Context, s *snapshot, ids []apply.ID) (*knowledge, error) {
	judged, err := s.engine.Judge(ctx, ids)
	if err != nil {
		return nil, err
	}
	known := *s.known
	known.objects = slices.Clone(known.objects)
	for _, judgement := range judged {
		i := slices.IndexFunc(known.objects, func(o apply.Judgement) bool { return o.ID == judgement.ID })
		if i < 0 {
			known.objects = append(known.objects, judgement)
		} else {
			known.objects[i] = judgement
		}
	}
	return &known, nil
}
