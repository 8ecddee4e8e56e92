package upgrade

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
)

func version(s string) *semver.Version { return semver.MustParse(s) }

func images(list ...string) []*semver.Version {
	out := make([]*semver.Version, 0, len(list))
	for _, s := range list {
		out = append(out, version(s))
	}
	return out
}

func controlPlane(s string) ControlPlane {
	return ControlPlane{Oldest: version(s), Newest: version(s), Replicas: 3}
}

func pool(name, s string, replicas int32) Pool {
	return Pool{Name: name, Oldest: version(s), Newest: version(s), Replicas: replicas}
}

// release is stated for minors from to until, and replaces versions that are listed; with none listed, all.
func release(name string, from, until uint64, replaces ...string) Release {
	return Release{
		Version: name,
		Fits:    func(k *semver.Version) bool { return k.Minor() >= from && k.Minor() <= until },
		UpgradesFrom: func(installed string) bool {
			return len(replaces) == 0 || strings.Contains(" "+strings.Join(replaces, " ")+" ", " "+installed+" ")
		},
	}
}

func calico(installed string) Addon {
	return Addon{Name: "calico", Version: installed, Phase: BeforeControlPlane, Releases: []Release{
		release("3.33", 35, 37, "3.32"), release("3.32", 34, 36), release("3.31", 32, 35)}}
}

func kubeProxy(installed string) Addon {
	return Addon{Name: "kube-proxy", Version: installed, Phase: AfterControlPlane, Releases: []Release{
		release("1.37.2", 37, 37), release("1.36.3", 36, 36), release("1.35.4", 35, 35)}}
}

func TestStepsComeInTheOrderOfTheLegs(t *testing.T) {
	cases := map[string]struct {
		cluster Cluster
		to      string
		workers Workers
		want    []string
	}{
		"one minor": {
			cluster: Cluster{ControlPlane: controlPlane("1.36.3"), Pools: []Pool{pool("a", "1.36.3", 3), pool("b", "1.36.3", 2)},
				Addons: []Addon{calico("3.32"), kubeProxy("1.36.3")}},
			to: "1.37.2",
			want: []string{"1 addon calico 3.32 3.33", "1 control-plane  v1.36.3 v1.37.2 ×3", "1 addon kube-proxy 1.36.3 1.37.2",
				"1 workers a v1.36.3 v1.37.2 ×3", "1 workers b v1.36.3 v1.37.2 ×2"},
		},
		"two minors replace the workers once": {
			cluster: Cluster{ControlPlane: controlPlane("1.35.4"), Pools: []Pool{pool("a", "1.35.4", 3)}, Addons: []Addon{kubeProxy("1.35.4")}},
			to:      "1.37.2",
			want: []string{"1 control-plane  v1.35.4 v1.36.3 ×3", "1 addon kube-proxy 1.35.4 1.36.3", "2 control-plane  v1.36.3 v1.37.2 ×3",
				"2 addon kube-proxy 1.36.3 1.37.2", "2 workers a v1.35.4 v1.37.2 ×3"},
		},
		"the cautious replace them in each leg": {
			cluster: Cluster{ControlPlane: controlPlane("1.35.4"), Pools: []Pool{pool("a", "1.35.4", 3)}},
			to:      "1.37.2", workers: EveryMinorWorkers,
			want: []string{"1 control-plane  v1.35.4 v1.36.3 ×3", "1 workers a v1.35.4 v1.36.3 ×3", "2 control-plane  v1.36.3 v1.37.2 ×3",
				"2 workers a v1.36.3 v1.37.2 ×3"},
		},
		"workers too far behind go first, and only they": {
			cluster: Cluster{ControlPlane: controlPlane("1.36.3"), Pools: []Pool{pool("a", "1.33.0", 3), pool("b", "1.34.0", 2)}},
			to:      "1.37.2",
			want: []string{"1 workers a v1.33.0 v1.36.3 ×3", "1 control-plane  v1.36.3 v1.37.2 ×3", "1 workers a v1.36.3 v1.37.2 ×3",
				"1 workers b v1.34.0 v1.37.2 ×2"},
		},
		"an add-on goes by way of one between": {
			cluster: Cluster{ControlPlane: controlPlane("1.35.4"), Addons: []Addon{calico("3.31")}},
			to:      "1.36.3",
			want:    []string{"1 addon calico 3.31 3.32", "1 addon calico 3.32 3.33", "1 control-plane  v1.35.4 v1.36.3 ×3"},
		},
		"a leg that needs no newer add-on leaves it": {
			cluster: Cluster{ControlPlane: controlPlane("1.34.1"), Addons: []Addon{calico("3.32")}},
			to:      "1.36.3",
			want:    []string{"1 control-plane  v1.34.1 v1.35.4 ×3", "2 control-plane  v1.35.4 v1.36.3 ×3", "2 addon calico 3.32 3.33"},
		},
		"one that is under way is finished first": {
			cluster: Cluster{ControlPlane: ControlPlane{Oldest: version("1.35.4"), Newest: version("1.36.3"), Machines: 1, Replicas: 3},
				Pools: []Pool{pool("a", "1.35.4", 1)}},
			to:   "1.37.2",
			want: []string{"0 control-plane  v1.35.4 v1.36.3 ×1", "1 control-plane  v1.36.3 v1.37.2 ×3", "1 workers a v1.35.4 v1.37.2 ×1"},
		},
		"only workers are left": {
			cluster: Cluster{ControlPlane: controlPlane("1.37.2"), Pools: []Pool{pool("a", "1.37.2", 3), pool("b", "1.36.3", 2)}},
			to:      "1.37.2",
			want:    []string{"0 workers b v1.36.3 v1.37.2 ×2"},
		},
		"nothing is left": {
			cluster: Cluster{ControlPlane: controlPlane("1.37.2"), Pools: []Pool{pool("a", "1.37.2", 3)}, Addons: []Addon{kubeProxy("1.37.2")}},
			to:      "1.37.2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Images = images("1.35.2", "1.35.4", "1.36.3", "1.37.2", "1.36.0", "1.36.4-rc.0")
			plan := New(tc.cluster, Options{Target: version(tc.to), Workers: tc.workers})
			if len(plan.Blockers) > 0 {
				t.Fatalf("blocked: %v", plan.Blockers)
			}
			var got []string
			for _, step := range plan.Steps {
				line := fmt.Sprintf("%d %s %s %s %s", step.Leg, step.Kind, step.Name, step.From, step.To)
				if step.Machines > 0 {
					line += fmt.Sprintf(" ×%d", step.Machines)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatStandsInTheWayIsTold(t *testing.T) {
	pinned, newer := kubeProxy("1.36.3"), calico("3.31")
	pinned.Stays = true
	newer.Releases = []Release{release("3.40", 36, 40, "3.39"), release("3.31", 32, 36)}
	cases := map[string]struct {
		cluster Cluster
		to      string
		check   string
		message string
	}{
		"a downgrade":                    {Cluster{ControlPlane: controlPlane("1.37.2")}, "1.36.3", CheckVersion, "cannot go back"},
		"another major version":          {Cluster{ControlPlane: controlPlane("1.37.2")}, "2.0.0", CheckVersion, "major"},
		"no image for the target":        {Cluster{ControlPlane: controlPlane("1.37.2")}, "1.38.0", CheckImage, "no machine image for v1.38.0"},
		"no image on the way":            {Cluster{ControlPlane: controlPlane("1.33.0")}, "1.35.4", CheckImage, "leads through v1.34"},
		"kubelets newer than the server": {Cluster{ControlPlane: controlPlane("1.35.4"), Pools: []Pool{pool("a", "1.36.3", 1)}}, "1.36.3", CheckSkew, "newer than the control plane"},
		"an add-on that is pinned":       {Cluster{ControlPlane: controlPlane("1.36.3"), Addons: []Addon{pinned}}, "1.37.2", CheckAddon, "pinned"},
		"an add-on that cannot get there": {Cluster{ControlPlane: controlPlane("1.36.3"), Addons: []Addon{newer}}, "1.37.2", CheckAddon,
			"no version that can replace 3.31"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.cluster.Name, tc.cluster.Images = "prod", images("1.35.4", "1.36.3", "1.37.2", "1.39.0")
			plan := New(tc.cluster, Options{Target: version(tc.to)})
			if len(plan.Blockers) != 1 || plan.Blockers[0].Check != tc.check || !strings.Contains(plan.Blockers[0].Message, tc.message) {
				t.Errorf("blockers are %v; want one of %s that says %q", plan.Blockers, tc.check, tc.message)
			}
			if len(plan.Steps) > 0 {
				t.Errorf("steps of a plan that is blocked: %v", plan.Steps)
			}
		})
	}
}

func TestAnAddonThatNobodyStatesForTheTargetIsAWarning(t *testing.T) {
	addon := calico("3.33")
	plan := New(Cluster{ControlPlane: controlPlane("1.37.2"), Addons: []Addon{addon}, Images: images("1.38.0")}, Options{Target: version("1.38.0")})
	if len(plan.Blockers) > 0 || len(plan.Warnings) != 1 || plan.Warnings[0].Check != CheckAddon {
		t.Errorf("blockers %v, warnings %v; want one warning", plan.Blockers, plan.Warnings)
	}
}
