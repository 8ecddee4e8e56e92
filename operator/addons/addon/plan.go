package addon

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/operator/addons/claim"
)

// snapshot is all that a plan is made from.
type snapshot struct {
	addon *addonsv1.Addon
	// clusters are those of the namespace, rivals the Addons of the same bundle there (this one among them), releases those
	// of the bundle there.
	clusters []clusterv1.Cluster
	rivals   []addonsv1.Addon
	releases []addonsv1.AddonRelease
	// unknown tells that the catalogue has no such bundle.
	unknown bool
}

// plan is what to do now, and how far the Addon is.
type plan struct {
	// create are the clusters that get a release, change the releases that get the Addon's template, adopt those that
	// become this Addon's, remove those that go.
	create []string
	change []*addonsv1.AddonRelease
	adopt  []*addonsv1.AddonRelease
	remove []*addonsv1.AddonRelease

	// clusters, updated, ready and failed are counted before what the plan does.
	clusters, updated, ready, failed int
	// waiting are clusters that have yet to change; halted tells that too many have failed for it.
	waiting int
	halted  bool
	// canaries are those that the others wait for.
	canaries []string
	failures []string
	// lost are clusters that an older Addon has, by its name; strange those whose release a person made.
	lost    map[string][]string
	strange []string
	// left are releases that still are this Addon's while it is deleted.
	left int
}

// standing is how a release fares with what it asks for.
type standing int

const (
	outdated standing = iota
	changing
	ready
	failed
	// silent is a cluster that does not answer: nobody waits for it.
	silent
)

// place is one cluster of the Addon.
type place struct {
	cluster  *clusterv1.Cluster
	release  *addonsv1.AddonRelease
	standing standing
	canary   bool
}

// decide makes the plan.
func decide(s *snapshot) plan {
	var p plan
	p.lost = map[string][]string{}
	places := s.places(&p)
	p.remove = s.unwanted()
	if !s.addon.DeletionTimestamp.IsZero() {
		p.left = len(owned(s))
		return p
	}
	var open []place
	for _, at := range places {
		switch at.standing {
		case outdated:
			open = append(open, at)
			continue
		case ready:
			p.ready++
		case failed:
			p.failed++
			p.failures = append(p.failures, at.cluster.Name)
		}
		p.updated++
	}
	p.clusters, p.waiting = len(places), len(open)
	if s.unknown || len(open) == 0 {
		return p
	}
	if most := s.addon.Spec.Rollout.MaxFailures; most != nil && p.failed >= int(*most) {
		p.halted = true
		return p
	}
	p.wave(s, places, open)
	return p
}

// wave chooses who changes now.
func (p *plan) wave(s *snapshot, places, open []place) {
	under := 0
	for _, at := range places {
		if at.standing == changing {
			under++
		}
		if at.canary && at.standing != ready && at.standing != silent {
			p.canaries = append(p.canaries, at.cluster.Name)
		}
	}
	if len(p.canaries) > 0 {
		open = slices.DeleteFunc(open, func(at place) bool { return !at.canary })
	}
	// What had failed with the template before is mended first.
	slices.SortStableFunc(open, func(a, b place) int {
		return cmp.Or(-cmp.Compare(number(broken(a.release)), number(broken(b.release))), cmp.Compare(a.cluster.Name, b.cluster.Name))
	})
	room := limit(s.addon.Spec.Rollout.MaxConcurrent, len(places)) - under
	for _, at := range open {
		// A cluster that does not answer takes no room: it changes when it comes back.
		if at.release != nil && unreachable(at.release) {
			p.change = append(p.change, at.release)
			continue
		}
		if room <= 0 {
			continue
		}
		room--
		if at.release == nil {
			p.create = append(p.create, at.cluster.Name)
		} else {
			p.change = append(p.change, at.release)
		}
	}
}

// places finds the clusters on which this Addon decides, and notes whose the others are.
func (s *snapshot) places(p *plan) []place {
	byName := map[string]*addonsv1.AddonRelease{}
	for i := range s.releases {
		byName[s.releases[i].Spec.ClusterName] = &s.releases[i]
	}
	var places []place
	for i := range s.clusters {
		cluster := &s.clusters[i]
		if !claim.Selects(s.addon, cluster) {
			continue
		}
		if first := claim.Claimants(s.rivals, s.addon.Spec.Bundle, cluster)[0]; first.Name != s.addon.Name {
			p.lost[first.Name] = append(p.lost[first.Name], cluster.Name)
			continue
		}
		at := place{cluster: cluster, release: byName[cluster.Name], canary: claim.Matches(s.addon.Spec.Rollout.Canary, cluster)}
		if at.release != nil {
			switch owner := addonOf(at.release); {
			case owner == "":
				p.strange = append(p.strange, cluster.Name)
				continue
			case owner != s.addon.Name || !ownedBy(at.release, s.addon):
				// The objects on the cluster stay as they are: only who decides is another.
				p.adopt = append(p.adopt, at.release)
			}
		}
		at.standing = s.standing(at.release)
		places = append(places, at)
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.cluster.Name, b.cluster.Name) })
	return places
}

// standing judges a release.
func (s *snapshot) standing(release *addonsv1.AddonRelease) standing {
	switch {
	case release == nil || !asked(s.addon, release):
		return outdated
	case !release.DeletionTimestamp.IsZero():
		return changing
	case unreachable(release):
		return silent
	}
	c := conditions.Get(release, addonsv1.ReadyCondition)
	if c == nil || c.ObservedGeneration != release.Generation || release.Status.ObservedGeneration != release.Generation {
		return changing
	}
	switch {
	case c.Status == "True":
		return ready
	case c.Status == "False" && !slices.Contains(underWay, c.Reason):
		return failed
	}
	return changing
}

// underWay are reasons of a release that gets ready by itself.
var underWay = []string{
	addonsv1.NotAppliedYetReason, addonsv1.ProgressingReason, addonsv1.PruningReason, addonsv1.DependencyReason,
	addonsv1.UninstallingReason, addonsv1.ApplyFailedReason,
}

// asked tells whether a release asks for what the Addon asks for.
func asked(addon *addonsv1.Addon, release *addonsv1.AddonRelease) bool {
	return equality.Semantic.DeepEqual(addon.Spec.ReleaseTemplate, release.Spec.ReleaseTemplate)
}

func unreachable(release *addonsv1.AddonRelease) bool {
	c := conditions.Get(release, addonsv1.ReadyCondition)
	return c != nil && (c.Reason == addonsv1.ClusterUnreachableReason || c.Reason == addonsv1.ClusterNotFoundReason)
}

// broken tells whether a release that is to change had failed.
func broken(release *addonsv1.AddonRelease) bool {
	if release == nil {
		return false
	}
	said := conditions.Get(release, addonsv1.ReadyCondition)
	return said != nil && said.Status == "False" && !slices.Contains(underWay, said.Reason)
}

// unwanted are this Addon's releases on clusters on which no Addon asks for the bundle any more. Where another one does,
// the release becomes that one's, and nothing is uninstalled.
func (s *snapshot) unwanted() []*addonsv1.AddonRelease {
	var gone []*addonsv1.AddonRelease
	for _, release := range owned(s) {
		if !release.DeletionTimestamp.IsZero() {
			continue
		}
		i := slices.IndexFunc(s.clusters, func(c clusterv1.Cluster) bool { return c.Name == release.Spec.ClusterName })
		if i >= 0 && len(claim.Claimants(s.rivals, s.addon.Spec.Bundle, &s.clusters[i])) > 0 {
			continue
		}
		gone = append(gone, release)
	}
	return gone
}

func owned(s *snapshot) []*addonsv1.AddonRelease {
	var mine []*addonsv1.AddonRelease
	for i := range s.releases {
		if ownedBy(&s.releases[i], s.addon) {
			mine = append(mine, &s.releases[i])
		}
	}
	return mine
}

// limit is how many may change at once: a percentage is rounded up, so that it goes on with few clusters too.
func limit(asked *intstr.IntOrString, clusters int) int {
	if asked == nil {
		return clusters
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(asked, clusters, true)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// listed words names, not all when there are many.
func listed(names []string) string {
	slices.Sort(names)
	const most = 5
	if len(names) <= most {
		return fmt.Sprintf("%q", names)
	}
	return fmt.Sprintf("%q and %d more", names[:most], len(names)-most)
}
