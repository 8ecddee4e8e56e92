package controlplane

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

func asks(version string) func(*snapshot) {
	return func(s *snapshot) { s.controlPlane.Spec.Version = version }
}

// old gives some Machines the version before that of the control plane.
func old(indexes ...int) func(*snapshot) {
	return func(s *snapshot) {
		for _, i := range indexes {
			s.replicas[i].machine.Spec.Version = "v1.36.3"
		}
	}
}

func noSurge(s *snapshot) {
	s.controlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(0))
}

// sinceLong makes all that was told of a Machine old.
func sinceLong(i int) func(*snapshot) {
	return func(s *snapshot) {
		tellAll(s)
		list := s.replicas[i].machine.Status.Conditions
		for j := range list {
			list[j].LastTransitionTime = metav1.NewTime(noon.Add(-time.Hour))
		}
	}
}

func TestARolloutIsOneSafeStepAtATime(t *testing.T) {
	join := "join prod-" + slotSuffix("uid", 0)
	tests := map[string]struct {
		s    *snapshot
		want string
		// because is in what is told when the plan is blocked.
		because string
	}{
		"the new one comes first":                             {prod(3, 3, old(0, 1, 2)), join, ""},
		"of one, too":                                         {prod(1, 1, old(0)), join, ""},
		"then an old one goes":                                {prod(4, 3, old(0, 1, 2)), "remove cp-1", ""},
		"an old one goes, not the oldest":                     {prod(4, 3, old(2)), "remove cp-3", ""},
		"no old one goes before the new one is healthy":       {prod(4, 3, old(0, 1, 2), podFails("kube-apiserver", 3)), "blocked", "Machine cp-4: APIServerPodHealthy is False"},
		"nor one after another":                               {prod(4, 3, old(0, 1, 2), going(0, false)), "blocked", "Machine cp-1 is being deleted"},
		"nothing begins while a machine is unhealthy":         {prod(3, 3, old(0, 1, 2), podFails("etcd", 1)), "blocked", "cp-2"},
		"nothing begins while etcd has a stranger":            {prod(3, 3, old(0, 1, 2), stranger(9, "cp-9")), "evict 9", ""},
		"without surge an old one goes first":                 {prod(3, 3, old(0, 1, 2), noSurge), "remove cp-1", ""},
		"without surge the new one comes then":                {prod(2, 3, old(0, 1), noSurge), join, ""},
		"without surge the new one is waited for":             {prod(3, 3, old(0, 1), noSurge, podFails("etcd", 2)), "blocked", "cp-3"},
		"without surge the only one stays":                    {prod(1, 1, old(0), noSurge), "blocked", "maxSurge is 0"},
		"a control plane that grows is replaced afterwards":   {prod(3, 5, old(0, 1, 2)), join, ""},
		"one that shrinks loses the old ones":                 {prod(5, 3, old(4)), "remove cp-5", ""},
		"an old one that is unhealthy for long goes at once":  {prod(3, 3, old(0, 1, 2), podFails("etcd", 1), sinceLong(1)), "remove cp-2", ""},
		"but not at the price of quorum":                      {prod(3, 3, old(0, 1, 2), podFails("etcd", 0), podFails("etcd", 1), sinceLong(1)), "blocked", "cp-1"},
		"nor the only one":                                    {prod(1, 1, old(0), podFails("etcd", 0), sinceLong(0)), "blocked", "cp-1"},
		"a new one that does not come up makes no room":       {prod(4, 3, old(0, 1), podFails("etcd", 3), sinceLong(3)), "blocked", "cp-4"},
		"before kubeadm init the outdated one goes":           {prod(1, 3, uninitialized, old(0), sinceLong(0), aged(0)), "remove cp-1", ""},
		"before kubeadm init it has its time":                 {prod(1, 3, uninitialized, old(0)), "blocked", "cp-1 has not initialized"},
		"one that is stuck frees one that was deleted":        {prod(3, 3, old(0, 1, 2), going(0, true), podFails("etcd", 1), sinceLong(1)), "remove cp-2, blocked", "2 etcd members"},
		"a version that skips a minor is refused":             {prod(3, 3, asks("v1.39.0")), "blocked", "spec.version is v1.39.0: a machine of v1.37.2 runs, and no minor version may be skipped: set v1.38.x first"},
		"a version that skips what still runs is refused":     {prod(3, 3, asks("v1.38.0"), old(2)), "blocked", "a machine of v1.36.3 runs"},
		"a downgrade is refused":                              {prod(3, 3, asks("v1.36.9")), "blocked", "spec.version is v1.36.9: a machine of v1.37.2 runs, and a control plane cannot be downgraded"},
		"a way back half-way is refused":                      {prod(3, 3, asks("v1.36.3"), old(0, 1)), "blocked", "set v1.37.2 or a later one"},
		"another major version is refused":                    {prod(3, 3, asks("v2.0.0")), "blocked", "no minor version may be skipped"},
		"a new domain is filled before the others":            {prod(3, 3, old(0, 1, 2), domains("a", "a", "b"), clusterDomains("a", "b", "c")), join + " c", ""},
		"new machines are spread, whatever the old ones fill": {prod(4, 3, old(0, 1), domains("a", "b", "c", "c"), clusterDomains("a", "b", "c")), "remove cp-1", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := makePlan(tc.s)
			if diff := cmp.Diff(tc.want, summary(p)); diff != "" {
				t.Errorf("(-want +got):\n%s\nblocked: %v", diff, p.blocked)
			}
			if because := strings.Join(p.blocked, "\n"); !strings.Contains(because, tc.because) {
				t.Errorf("told %q, want %q in it", because, tc.because)
			}
		})
	}
}

// aged makes a Machine old.
func aged(i int) func(*snapshot) {
	return func(s *snapshot) { s.replicas[i].machine.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
}

func TestTimeAloneMakesMachinesOutOfDate(t *testing.T) {
	const day = 24 * time.Hour
	after := func(at time.Time) func(*snapshot) {
		return func(s *snapshot) { s.controlPlane.Spec.Rollout.After = metav1.NewTime(at) }
	}
	// certificates of a Machine that was made madeBefore now expire at a time from now.
	certificates := func(madeBefore, expiry time.Duration) func(*snapshot) {
		return func(s *snapshot) {
			s.controlPlane.Spec.Rollout.Before.CertificatesExpiryDays = 30
			s.replicas[0].machine.CreationTimestamp = metav1.NewTime(noon.Add(-madeBefore))
			s.replicas[0].machine.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] = noon.Add(expiry).Format(time.RFC3339)
		}
	}
	elsewhere := func(s *snapshot) {
		r := s.replicas[0]
		at := r.machine.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
		delete(r.machine.Annotations, clusterv1.MachineCertificatesExpiryDateAnnotation)
		r.config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation] = at
	}
	tests := map[string]struct {
		s    *snapshot
		want string
		next time.Duration
	}{
		"nothing is asked for":                            {prod(1, 1), "", 0},
		"the time has come":                               {prod(1, 1, after(noon)), "Made before spec.rollout.after, 2026-11-30T12:00:00Z", 0},
		"the time has not come":                           {prod(1, 1, after(noon.Add(time.Hour))), "", time.Hour},
		"made since":                                      {prod(1, 1, after(noon.Add(-300*time.Hour))), "", 0},
		"made for it, by a clock that is behind":          {prod(1, 1, after(noon), madeFor(noon)), "", 0},
		"made for an earlier one":                         {prod(1, 1, after(noon), madeFor(noon.Add(-time.Hour))), "Made before", 0},
		"certificates expire soon":                        {prod(1, 1, certificates(335*day, 30*day)), "Certificates expire at 2026-12-30T12:00:00Z: spec.rollout.before.certificatesExpiryDays is 30", 0},
		"the config tells the expiry":                     {prod(1, 1, certificates(335*day, 30*day), elsewhere), "Certificates expire", 0},
		"certificates are good for a while":               {prod(1, 1, certificates(334*day, 31*day)), "", day},
		"certificates that were short from the beginning": {prod(1, 1, certificates(0, 20*day)), "", 10 * day},
		"short ones are renewed at half their life":       {prod(1, 1, certificates(10*day, 10*day)), "Certificates expire", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(differences(tc.s, tc.s.replicas[0]), "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if next := nextRollout(tc.s); next != tc.next {
				t.Errorf("looks again after %s, want %s", next, tc.next)
			}
		})
	}
}

func madeFor(at time.Time) func(*snapshot) {
	return func(s *snapshot) {
		s.replicas[0].machine.Annotations[lifecycle.RolloutAfterAnnotation] = at.Format(time.RFC3339)
	}
}

// stored returns a configuration as it comes back from an API server.
func stored(t *testing.T, spec bootstrapv1.KubeadmConfigSpec) bootstrapv1.KubeadmConfigSpec {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var out bootstrapv1.KubeadmConfigSpec
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// odd are configurations that look different after they were stored, or that we complete.
func odd() map[string]bootstrapv1.KubeadmConfigSpec {
	registration := func(taints []corev1.Taint) bootstrapv1.NodeRegistrationOptions {
		return bootstrapv1.NodeRegistrationOptions{Taints: &taints}
	}
	return map[string]bootstrapv1.KubeadmConfigSpec{
		"nothing":      {},
		"empty lists":  {Files: []bootstrapv1.File{}, PreKubeadmCommands: []string{}, Mounts: []bootstrapv1.MountPoints{}},
		"empty maps":   {ClusterConfiguration: bootstrapv1.ClusterConfiguration{FeatureGates: map[string]bool{}}},
		"no taints":    {JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: registration([]corev1.Taint{})}},
		"some taints":  {JoinConfiguration: bootstrapv1.JoinConfiguration{NodeRegistration: registration([]corev1.Taint{{Key: "a", Effect: "NoSchedule"}})}},
		"false":        {NTP: bootstrapv1.NTP{Enabled: ptr.To(false)}},
		"a join part":  {JoinConfiguration: bootstrapv1.JoinConfiguration{ControlPlane: &bootstrapv1.JoinControlPlane{}}},
		"a bind port":  {JoinConfiguration: bootstrapv1.JoinConfiguration{ControlPlane: &bootstrapv1.JoinControlPlane{LocalAPIEndpoint: bootstrapv1.APIEndpoint{BindPort: 443}}}},
		"a format":     {Format: bootstrapv1.CloudConfig},
		"a gate":       {ClusterConfiguration: bootstrapv1.ClusterConfiguration{FeatureGates: map[string]bool{"X": true}}},
		"our own gate": {ClusterConfiguration: bootstrapv1.ClusterConfiguration{FeatureGates: map[string]bool{kubeletLocalMode: false}}},
		"local etcd":   {ClusterConfiguration: bootstrapv1.ClusterConfiguration{Etcd: bootstrapv1.Etcd{Local: bootstrapv1.LocalEtcd{DataDir: "/srv"}}}},
	}
}

func TestAFreshMachineIsUpToDateHoweverItsConfigurationWasStored(t *testing.T) {
	for name, spec := range odd() {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"v1.30.0", "v1.35.4", "v1.37.2"} {
				for _, join := range []bool{false, true} {
					made := stored(t, kubeadmConfigSpec(stored(t, spec), version, join))
					// What the bootstrap controller writes.
					made.ClusterConfiguration.ControlPlaneEndpoint = "10.0.0.1:6443"
					if join {
						made.JoinConfiguration.Discovery.BootstrapToken = bootstrapv1.BootstrapTokenDiscovery{Token: "abcdef.0123456789abcdef", CACertHashes: []string{"sha256:x"}}
					}
					if made = stored(t, made); !sameConfig(made, stored(t, spec), version) {
						t.Errorf("%s, join %t: made from\n%+v\nas\n%+v", version, join, spec, made)
					}
				}
			}
		})
	}
}

func TestConfigurationsThatDifferAreToldApart(t *testing.T) {
	// These are one and the same to a machine.
	alike := map[string]bool{"nothing": true, "empty lists": true, "empty maps": true, "a join part": true, "a format": true}
	for name, spec := range odd() {
		made := stored(t, kubeadmConfigSpec(spec, "v1.35.4", true))
		for other, want := range odd() {
			if same := sameConfig(made, want, "v1.35.4"); same != (name == other || alike[name] && alike[other]) {
				t.Errorf("a machine made from %q is said to be one of %q: %t", name, other, same)
			}
		}
	}
}

func TestRollingOutTellsWhatDiffersAndWhatItWaitsFor(t *testing.T) {
	s := prod(3, 3, old(0, 1), podFails("etcd", 2))
	setStatus(s, report{blocked: makePlan(s).blocked})
	want := "2 of 3 Machines are not up to date\n* Version v1.36.3, v1.37.2 required\nwaiting:\n* Machine cp-3: EtcdPodHealthy is False"
	if got := conditions.Get(s.controlPlane, controlplanev1.KubeadmControlPlaneRollingOutCondition).Message; got != want {
		t.Errorf("message\n%s\nwant\n%s", got, want)
	}
}

func TestWhatNeedsNoNewMachineReachesThoseThatThereAre(t *testing.T) {
	s := prod(2, 3, going(1, true))
	template := &s.controlPlane.Spec.MachineTemplate
	template.ObjectMeta = clusterv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "a"}}
	template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](30)
	template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Mine"}}
	template.Spec.Taints = []clusterv1.MachineTaint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	for _, r := range s.replicas {
		r.machine.Labels["mine"] = "kept"
		keepUp(s, r.machine)
	}

	stays, goes := s.replicas[0].machine, s.replicas[1].machine
	if stays.Labels["team"] != "a" || stays.Labels["mine"] != "kept" || stays.Annotations["note"] != "a" || len(stays.Spec.Taints) != 1 {
		t.Errorf("labels %v, annotations %v, taints %v", stays.Labels, stays.Annotations, stays.Spec.Taints)
	}
	if last := stays.Spec.ReadinessGates[len(stays.Spec.ReadinessGates)-1].ConditionType; last != "Mine" {
		t.Errorf("the last readiness gate is %s", last)
	}
	for _, machine := range []*clusterv1.Machine{stays, goes} {
		if *machine.Spec.Deletion.NodeDrainTimeoutSeconds != 30 || *machine.Spec.Deletion.NodeDeletionTimeoutSeconds != defaultNodeDeletionTimeout {
			t.Errorf("%s has timeouts %+v", machine.Name, machine.Spec.Deletion)
		}
	}
	if goes.Labels["team"] != "" || len(goes.Spec.Taints) != 0 {
		t.Errorf("a Machine that goes was given more than timeouts: labels %v, taints %v", goes.Labels, goes.Spec.Taints)
	}

	template.ObjectMeta = clusterv1.ObjectMeta{}
	delete(stays.Annotations, hook)
	keepUp(s, stays)
	if _, hooked := stays.Annotations[hook]; !hooked || stays.Labels["team"] != "" || stays.Labels["mine"] != "kept" || stays.Annotations["note"] != "" {
		t.Errorf("labels %v, annotations %v after the template lost its own", stays.Labels, stays.Annotations)
	}
}
