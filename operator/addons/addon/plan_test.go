package addon

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// fleet makes clusters c0, c1, … of which the first is labelled as a canary.
func fleet(n int) []clusterv1.Cluster {
	clusters := make([]clusterv1.Cluster, n)
	for i := range clusters {
		clusters[i].Namespace, clusters[i].Name = "default", fmt.Sprintf("c%02d", i)
		clusters[i].Labels = map[string]string{"env": "prod"}
		if i == 0 {
			clusters[i].Labels["canary"] = "yes"
		}
	}
	return clusters
}

// newAddon is an Addon that selects all clusters of the fleet; older means made before those with a bigger age.
func newAddon(name string, older time.Duration) *addonsv1.Addon {
	a := &addonsv1.Addon{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-older)),
	}}
	a.Spec.Bundle, a.Spec.Version = "demo", "1.0.0"
	a.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	return a
}

// fares makes the release of an Addon on a cluster, in a state: old, changing, ready, failed, silent.
func fares(a *addonsv1.Addon, cluster, state string) addonsv1.AddonRelease {
	r := *newRelease(a, cluster)
	r.Generation, r.Status.ObservedGeneration = 1, 1
	switch state {
	case "old":
		r.Spec.Version = "0.9.0"
		conditions.Set(&r, conditions.True(addonsv1.ReadyCondition, addonsv1.ReadyReason, ""))
	case "broken":
		r.Spec.Version = "0.9.0"
		conditions.Set(&r, conditions.False(addonsv1.ReadyCondition, addonsv1.UnhealthyReason, ""))
	case "changing":
		r.Generation = 2
	case "ready":
		conditions.Set(&r, conditions.True(addonsv1.ReadyCondition, addonsv1.ReadyReason, ""))
	case "failed":
		conditions.Set(&r, conditions.False(addonsv1.ReadyCondition, addonsv1.UnhealthyReason, ""))
	case "progressing":
		conditions.Set(&r, conditions.False(addonsv1.ReadyCondition, addonsv1.ProgressingReason, ""))
	case "silent":
		conditions.Set(&r, conditions.Unknown(addonsv1.ReadyCondition, addonsv1.ClusterUnreachableReason, ""))
	case "oldsilent":
		r.Spec.Version = "0.9.0"
		conditions.Set(&r, conditions.Unknown(addonsv1.ReadyCondition, addonsv1.ClusterUnreachableReason, ""))
	}
	return r
}

func TestWavesAndHandOver(t *testing.T) {
	for _, tc := range []struct {
		name     string
		clusters int
		rollout  addonsv1.Rollout
		// states of the releases, by cluster; "" has none.
		states []string
		// create and change are the clusters that move now.
		create, change []string
		halted         bool
		counts         [4]int // clusters, updated, ready, failed
	}{
		{name: "all at once by default", clusters: 3, states: []string{"", "", ""}, create: []string{"c00", "c01", "c02"}, counts: [4]int{3, 0, 0, 0}},
		{name: "a wave of two", clusters: 4, rollout: addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(2))},
			states: []string{"", "", "", ""}, create: []string{"c00", "c01"}, counts: [4]int{4, 0, 0, 0}},
		{name: "those under way count", clusters: 4, rollout: addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(2))},
			states: []string{"changing", "progressing", "old", "old"}, counts: [4]int{4, 2, 0, 0}},
		{name: "one is ready, another may begin", clusters: 4, rollout: addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(2))},
			states: []string{"ready", "progressing", "old", "old"}, change: []string{"c02"}, counts: [4]int{4, 2, 1, 0}},
		{name: "a percentage is rounded up", clusters: 3, rollout: addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromString("1%"))},
			states: []string{"old", "old", "old"}, change: []string{"c00"}, counts: [4]int{3, 0, 0, 0}},
		{name: "the canary first", clusters: 3, rollout: addonsv1.Rollout{Canary: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}},
			states: []string{"old", "old", "old"}, change: []string{"c00"}, counts: [4]int{3, 0, 0, 0}},
		{name: "the canary is not ready", clusters: 3, rollout: addonsv1.Rollout{Canary: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}},
			states: []string{"failed", "old", "old"}, counts: [4]int{3, 1, 0, 1}},
		{name: "the canary is ready", clusters: 3, rollout: addonsv1.Rollout{Canary: &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}},
			states: []string{"ready", "old", "old"}, change: []string{"c01", "c02"}, counts: [4]int{3, 1, 1, 0}},
		{name: "too many have failed", clusters: 3, rollout: addonsv1.Rollout{MaxFailures: ptr.To(int32(1))},
			states: []string{"failed", "old", "old"}, halted: true, counts: [4]int{3, 1, 0, 1}},
		{name: "what had failed before the Addon was mended is mended first", clusters: 3,
			rollout: addonsv1.Rollout{MaxFailures: ptr.To(int32(1)), MaxConcurrent: ptr.To(intstr.FromInt32(1))},
			states:  []string{"old", "broken", "old"}, change: []string{"c01"}, counts: [4]int{3, 0, 0, 0}},
		{name: "a cluster that does not answer takes no room", clusters: 3, rollout: addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt32(1))},
			states: []string{"silent", "oldsilent", "old"}, change: []string{"c01", "c02"}, counts: [4]int{3, 1, 0, 0}},
		{name: "all is done", clusters: 2, states: []string{"ready", "ready"}, counts: [4]int{2, 2, 2, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := newAddon("one", 0)
			a.Spec.Rollout = tc.rollout
			s := &snapshot{addon: a, clusters: fleet(tc.clusters), rivals: []addonsv1.Addon{*a}}
			for i, state := range tc.states {
				if state != "" {
					s.releases = append(s.releases, fares(a, fmt.Sprintf("c%02d", i), state))
				}
			}
			p := decide(s)
			if diff := cmp.Diff(tc.create, p.create); diff != "" {
				t.Errorf("created (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.change, clustersOf(p.change)); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
			if got := [4]int{p.clusters, p.updated, p.ready, p.failed}; got != tc.counts || p.halted != tc.halted {
				t.Errorf("counts %v, halted %t; want %v, %t", got, p.halted, tc.counts, tc.halted)
			}
			if len(p.remove)+len(p.adopt) > 0 {
				t.Errorf("removes %v, adopts %v", clustersOf(p.remove), clustersOf(p.adopt))
			}
		})
	}
}

func clustersOf(releases []*addonsv1.AddonRelease) []string {
	var names []string
	for _, r := range releases {
		names = append(names, r.Spec.ClusterName)
	}
	return names
}

func TestTheOlderOfTwoAddonsDecides(t *testing.T) {
	older, newer := newAddon("older", time.Hour), newAddon("newer", 0)
	s := &snapshot{addon: newer, clusters: fleet(2), rivals: []addonsv1.Addon{*newer, *older}, releases: []addonsv1.AddonRelease{fares(older, "c00", "ready")}}
	p := decide(s)
	if len(p.create)+len(p.change)+len(p.adopt)+len(p.remove) > 0 || p.clusters != 0 || !cmp.Equal(p.lost["older"], []string{"c00", "c01"}) {
		t.Errorf("the newer one does %+v", p)
	}
	setStatus(newer, s, &p)
	if c := conditions.Get(newer, addonsv1.AddonUnchallengedCondition); c.Status != "False" || !strings.Contains(c.Message, `Addon "older" is older and has the bundle on ["c00" "c01"]`) {
		t.Errorf("it says %+v", c)
	}
}

func TestAReleaseIsHandedOverAndNotDeleted(t *testing.T) {
	old, next := newAddon("old", time.Hour), newAddon("next", 0)
	next.Spec.ClusterSelector.MatchLabels = map[string]string{"ring": "two"}
	next.Spec.Version = "2.0.0"
	clusters := fleet(1)
	clusters[0].Labels = map[string]string{"ring": "two"}
	releases := []addonsv1.AddonRelease{fares(old, "c00", "ready")}
	rivals := []addonsv1.Addon{*old, *next}

	left := decide(&snapshot{addon: old, clusters: clusters, rivals: rivals, releases: releases})
	if len(left.remove) > 0 {
		t.Errorf("the old one deletes what the next one wants: %v", clustersOf(left.remove))
	}
	taken := decide(&snapshot{addon: next, clusters: clusters, rivals: rivals, releases: releases})
	if !cmp.Equal(clustersOf(taken.adopt), []string{"c00"}) || !cmp.Equal(clustersOf(taken.change), []string{"c00"}) {
		t.Errorf("the next one adopts %v and changes %v", clustersOf(taken.adopt), clustersOf(taken.change))
	}
	own(&releases[0], next)
	if !ownedBy(&releases[0], next) || len(releases[0].OwnerReferences) != 1 {
		t.Errorf("owners are %+v", releases[0].OwnerReferences)
	}
}

func TestWhatNobodyWantsIsRemoved(t *testing.T) {
	a := newAddon("one", 0)
	clusters := fleet(3)
	clusters[0].Labels = nil
	releases := []addonsv1.AddonRelease{fares(a, "c00", "ready"), fares(a, "c01", "ready"), fares(a, "gone", "ready")}
	p := decide(&snapshot{addon: a, clusters: clusters, rivals: []addonsv1.Addon{*a}, releases: releases})
	if !cmp.Equal(clustersOf(p.remove), []string{"c00", "gone"}) {
		t.Errorf("removes %v", clustersOf(p.remove))
	}
	now := metav1.Now()
	a.DeletionTimestamp = &now
	p = decide(&snapshot{addon: a, clusters: clusters, rivals: []addonsv1.Addon{*a}, releases: releases})
	if len(p.remove) != 3 || p.left != 3 || len(p.create)+len(p.change) > 0 {
		t.Errorf("an Addon that goes removes %v, creates %v, %d left", clustersOf(p.remove), p.create, p.left)
	}
}

func TestAPersonsReleaseIsLeftAlone(t *testing.T) {
	a := newAddon("one", 0)
	made := fares(a, "c00", "old")
	made.OwnerReferences = nil
	s := &snapshot{addon: a, clusters: fleet(2), rivals: []addonsv1.Addon{*a}, releases: []addonsv1.AddonRelease{made}}
	p := decide(s)
	if !cmp.Equal(p.create, []string{"c01"}) || len(p.change)+len(p.adopt)+len(p.remove) > 0 || !cmp.Equal(p.strange, []string{"c00"}) {
		t.Errorf("got %+v", p)
	}
}

func TestAnUnknownBundleChangesNothing(t *testing.T) {
	a := newAddon("one", 0)
	s := &snapshot{addon: a, clusters: fleet(2), rivals: []addonsv1.Addon{*a}, unknown: true}
	p := decide(s)
	setStatus(a, s, &p)
	if len(p.create) > 0 || !conditions.IsFalse(a, addonsv1.AddonRolledOutCondition) {
		t.Errorf("got %+v", p)
	}
}

// TestNoRolloutEverHasTooManyUnderWay plays rollouts of random fleets: in every state no more than allowed change at once,
// none begins after too many have failed, and without failures each ends.
func TestNoRolloutEverHasTooManyUnderWay(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		a := newAddon("one", 0)
		n, most, failures := 1+random.IntN(20), 1+random.IntN(6), int32(1+random.IntN(3))
		a.Spec.Rollout = addonsv1.Rollout{MaxConcurrent: ptr.To(intstr.FromInt(most)), MaxFailures: &failures}
		if random.IntN(2) == 0 {
			a.Spec.Rollout.Canary = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
		}
		fails := random.IntN(3) == 0
		s := &snapshot{addon: a, clusters: fleet(n), rivals: []addonsv1.Addon{*a}}
		for step := 0; ; step++ {
			if step > 10*n+10 {
				t.Fatalf("seed %d: no end after %d steps", seed, step)
			}
			before := decide(s)
			if before.failed >= int(failures) && len(before.create)+len(before.change) > 0 {
				t.Fatalf("seed %d: it goes on after %d failures", seed, before.failed)
			}
			for _, cluster := range before.create {
				s.releases = append(s.releases, fares(a, cluster, "changing"))
			}
			under := 0
			for i := range s.releases {
				if s.standing(&s.releases[i]) == changing {
					under++
				}
			}
			if under > most {
				t.Fatalf("seed %d: %d change at once, %d may", seed, under, most)
			}
			if under == 0 {
				if p := decide(s); !p.halted && p.ready+p.failed != n && len(p.canaries) == 0 {
					t.Fatalf("seed %d: it stands still with %d of %d ready", seed, p.ready, n)
				}
				break
			}
			moving := slices.IndexFunc(s.releases, func(r addonsv1.AddonRelease) bool { return s.standing(&r) == changing })
			state := "ready"
			if fails && random.IntN(4) == 0 {
				state = "failed"
			}
			s.releases[moving] = fares(a, s.releases[moving].Spec.ClusterName, state)
		}
	}
}
