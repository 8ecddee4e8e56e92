package upgrade

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
)

// fleets is how many random clusters the properties are tried on.
const fleets = 10_000

// randomCluster makes one that Kubernetes allows: no kubelet is newer than the oldest API server or too far behind the newest.
func randomCluster(r *rand.Rand) (Cluster, Options) {
	minor := 30 + r.IntN(6)
	c := Cluster{Name: "random", ControlPlane: ControlPlane{Replicas: int32(1 + 2*r.IntN(3))}}
	c.ControlPlane.Oldest = at(minor, r.IntN(3))
	c.ControlPlane.Newest = c.ControlPlane.Oldest
	if r.IntN(4) == 0 {
		c.ControlPlane.Newest, c.ControlPlane.Machines = at(minor+1, 3), 1
	}
	for m := minor - 3; m <= minor+6; m++ {
		for patch := range 4 {
			c.Images = append(c.Images, at(m, patch))
		}
	}
	r.Shuffle(len(c.Images), func(i, j int) { c.Images[i], c.Images[j] = c.Images[j], c.Images[i] })
	lag := int(c.ControlPlane.Newest.Minor()) - kubeletSkew
	for i := range r.IntN(5) {
		oldest := at(lag+r.IntN(minor-lag+1), 0)
		c.Pools = append(c.Pools, Pool{Name: fmt.Sprintf("pool-%d", i), Oldest: oldest, Newest: oldest, Replicas: int32(r.IntN(9))})
	}
	c.Addons = []Addon{follower("kube-proxy", AfterControlPlane, minor, 0), follower("cni", BeforeControlPlane, minor, 1+r.IntN(2))}
	target := at(int(c.ControlPlane.Newest.Minor())+r.IntN(5), 3)
	return c, Options{Target: target, Workers: []Workers{SeldomWorkers, EveryMinorWorkers}[r.IntN(2)]}
}

func at(minor, patch int) *semver.Version { return semver.New(1, uint64(minor), uint64(patch), "", "") }

// follower has a release for each minor, which fits also the given number of minors after it.
func follower(name string, phase Phase, minor, reach int) Addon {
	a := Addon{Name: name, Phase: phase, Version: fmt.Sprintf("0.%d", minor)}
	for m := minor + 8; m >= minor-3; m-- {
		a.Releases = append(a.Releases, release(fmt.Sprintf("0.%d", m), uint64(m), uint64(m+reach)))
	}
	return a
}

// carryOut changes a cluster as a step does. Part of the way leaves the control plane with machines of two versions.
func carryOut(t *testing.T, c Cluster, step Step, partly bool) Cluster {
	t.Helper()
	c.Pools, c.Addons = slices.Clone(c.Pools), slices.Clone(c.Addons)
	switch step.Kind {
	case MoveControlPlane:
		to := version(step.To)
		if to.Minor() > c.ControlPlane.Oldest.Minor()+1 {
			t.Fatalf("the control plane skips from %s to %s", c.ControlPlane.Oldest, to)
		}
		c.ControlPlane.Newest, c.ControlPlane.Machines = to, 1
		if !partly {
			c.ControlPlane.Oldest = to
		}
	case MovePool:
		i := slices.IndexFunc(c.Pools, func(p Pool) bool { return p.Name == step.Name })
		c.Pools[i].Newest = version(step.To)
		if !partly {
			c.Pools[i].Oldest = c.Pools[i].Newest
		}
	case MoveAddon:
		i := slices.IndexFunc(c.Addons, func(a Addon) bool { return a.Name == step.Name })
		if !partly {
			c.Addons[i].Version = step.To
		}
	}
	return c
}

// skewOf tells what the skew policy has against a cluster.
func skewOf(c Cluster) string {
	oldest, newest := c.ControlPlane.Oldest, c.ControlPlane.Newest
	if newest.Minor() > oldest.Minor()+1 {
		return fmt.Sprintf("API servers of %s and %s", oldest, newest)
	}
	for _, p := range c.Pools {
		if oldest.LessThan(p.Newest) || int(newest.Minor())-int(p.Oldest.Minor()) > kubeletSkew {
			return fmt.Sprintf("kubelets from %s to %s at API servers from %s to %s", p.Oldest, p.Newest, oldest, newest)
		}
	}
	proxy := version(c.Addons[0].Version[2:] + ".0")
	if uint64(proxy.Major()) > oldest.Minor() {
		return fmt.Sprintf("kube-proxy of 1.%d at an API server of %s", proxy.Major(), oldest)
	}
	if cni := c.Addons[1].release(c.Addons[1].Version); !cni.Fits(oldest) || !cni.Fits(newest) {
		return fmt.Sprintf("cni %s at API servers of %s and %s", c.Addons[1].Version, oldest, newest)
	}
	return ""
}

func TestEveryPlanKeepsTheSkewPolicyAndArrives(t *testing.T) {
	for seed := range uint64(fleets) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, options := randomCluster(r)
		plan := New(c, options)
		if len(plan.Blockers) > 0 {
			t.Fatalf("seed %d: blocked: %v", seed, plan.Blockers)
		}
		rolls := map[string]int{}
		now := c
		for i, step := range plan.Steps {
			for _, partly := range []bool{true, false} {
				now = carryOut(t, now, step, partly)
				if wrong := skewOf(now); wrong != "" {
					t.Fatalf("seed %d: step %d %+v: %s", seed, i, step, wrong)
				}
			}
			if step.Kind == MovePool {
				rolls[step.Name]++
			}
		}
		arrived(t, seed, now, options)
		if options.Workers != SeldomWorkers {
			continue
		}
		for _, p := range c.Pools {
			if want := fewest(c, p, options.Target); rolls[p.Name] != want {
				t.Fatalf("seed %d: %s is replaced %d times on the way from %s to %s; %d would do", seed, p.Name, rolls[p.Name], p.Oldest, options.Target, want)
			}
		}
	}
}

func arrived(t *testing.T, seed uint64, c Cluster, options Options) {
	t.Helper()
	if !c.ControlPlane.Oldest.Equal(options.Target) || !c.ControlPlane.Newest.Equal(options.Target) {
		t.Fatalf("seed %d: the control plane ends at %s", seed, c.ControlPlane.Oldest)
	}
	for _, p := range c.Pools {
		if !p.Oldest.Equal(options.Target) {
			t.Fatalf("seed %d: %s ends at %s", seed, p.Name, p.Oldest)
		}
	}
	for _, a := range c.Addons {
		if !a.release(a.Version).Fits(options.Target) {
			t.Fatalf("seed %d: %s %s does not fit %s", seed, a.Name, a.Version, options.Target)
		}
	}
}

// fewest finds, by trying all choices at every minor, how often a pool must be replaced.
func fewest(c Cluster, p Pool, target *semver.Version) int {
	if p.Oldest.Equal(target) {
		return 0
	}
	var try func(server, kubelet int) int
	try = func(server, kubelet int) int {
		if server == int(target.Minor()) {
			return 1
		}
		best := 1 << 10
		for _, next := range []int{kubelet, server} {
			cost := 0
			if next != kubelet {
				cost = 1
			}
			if server+1-next <= kubeletSkew {
				best = min(best, cost+try(server+1, next))
			}
		}
		return best
	}
	return try(int(c.ControlPlane.Oldest.Minor()), int(p.Oldest.Minor()))
}

func TestAnInterruptedUpgradeIsPlannedToItsRemainingSteps(t *testing.T) {
	for seed := range uint64(fleets) {
		r := rand.New(rand.NewPCG(seed, 2))
		c, options := randomCluster(r)
		steps := New(c, options).Steps
		if len(steps) == 0 {
			continue
		}
		cut := r.IntN(len(steps))
		for _, step := range steps[:cut] {
			c = carryOut(t, c, step, false)
		}
		c = carryOut(t, c, steps[cut], true)
		got := New(c, options)
		if diff := cmp.Diff(objects(steps[cut:]), objects(got.Steps)); diff != "" {
			t.Fatalf("seed %d: cut at step %d (%+v); blockers %v; the rest (-planned +planned again):\n%s", seed, cut, steps[cut], got.Blockers, diff)
		}
	}
}

// objects are what steps move, without the numbers of their legs and machines, which are fewer after a part was done.
func objects(steps []Step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, fmt.Sprintf("%s %s %s", s.Kind, s.Name, s.To))
	}
	return out
}
