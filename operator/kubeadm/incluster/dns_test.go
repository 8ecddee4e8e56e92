package incluster

import (
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
)

// oldCorefile has an option that CoreDNS 1.7 removed: it must be migrated.
const oldCorefile = `.:53 {
    errors
    health
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        upstream
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :9153
    forward . /etc/resolv.conf
    cache 30
    loop
    reload
    loadbalance
}
`

// running returns kubeadm's CoreDNS with another tag and Corefile.
func running(t *testing.T, tag, text string) dns {
	t.Helper()
	d := dns{deployment: objectOf[*appsv1.Deployment](t, dnsName), config: objectOf[*corev1.ConfigMap](t, dnsName)}
	container := containerOf(&d.deployment.Spec.Template.Spec, dnsName)
	container.Image = strings.Replace(container.Image, "v1.14.2", tag, 1)
	if text != "" {
		d.config.Data[corefileKey] = text
	}
	return d
}

func (d dns) copy() dns { return dns{deployment: d.deployment.DeepCopy(), config: d.config.DeepCopy()} }

// reads returns the image that runs and the Corefile that it reads.
func (d dns) reads() (tag, text string) {
	return parseImage(containerOf(&d.deployment.Spec.Template.Spec, dnsName).Image).tag, d.config.Data[sourceOf(d.deployment).Key]
}

func TestCoreDNSIsMovedWhereKubernetesOrTheSpecAsksForIt(t *testing.T) {
	const official = "registry.k8s.io/coredns/coredns:"
	cases := map[string]struct {
		now, kubernetes string
		spec            bootstrapv1.ClusterConfiguration
		want, problem   string
	}{
		"kubeadm's own, fresh":                {now: official + "v1.14.2", kubernetes: "1.36.3", want: official + "v1.14.2"},
		"kubeadm's own, after an upgrade":     {now: official + "v1.14.2", kubernetes: "1.37.2", want: official + "v1.14.6"},
		"of a later patch release":            {now: official + "v1.11.3", kubernetes: "1.31.4", want: official + "v1.11.3"},
		"newer than kubeadm's":                {now: official + "v1.99.0", kubernetes: "1.37.2", want: official + "v1.99.0"},
		"a Kubernetes that nobody knows":      {now: official + "v1.14.6", kubernetes: "1.99.0", want: official + "v1.14.6"},
		"a mirror that nobody spelled out":    {now: "mirror.example.org/coredns:v1.14.2", kubernetes: "1.37.2", want: "mirror.example.org/coredns:v1.14.6"},
		"the mirror of everything":            {now: official + "v1.14.2", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{ImageRepository: "mirror.example.org/k8s"}, want: "mirror.example.org/k8s/coredns:v1.14.2"},
		"a mirror of its own":                 {now: official + "v1.14.2", kubernetes: "1.37.2", spec: bootstrapv1.ClusterConfiguration{ImageRepository: "mirror.example.org", DNS: bootstrapv1.DNS{ImageRepository: "dns.example.org"}}, want: "dns.example.org/coredns:v1.14.6"},
		"the official one, spelled out":       {now: official + "v1.14.2", kubernetes: "1.37.2", spec: bootstrapv1.ClusterConfiguration{ImageRepository: "registry.k8s.io"}, want: official + "v1.14.6"},
		"the spec's version":                  {now: official + "v1.14.2", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "v1.14.5"}}, want: official + "v1.14.5"},
		"the spec's version, pinned":          {now: official + "v1.14.2", kubernetes: "1.37.2", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "v1.14.2"}}, want: official + "v1.14.2"},
		"another build of the same":           {now: official + "v1.14.2", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "v1.14.2_vendor.7"}}, want: official + "v1.14.2_vendor.7"},
		"back":                                {now: official + "v1.14.2", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "v1.13.1"}}, want: official + "v1.14.2", problem: "dns.imageTag is v1.13.1"},
		"to what tells no version":            {now: official + "v1.14.2", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "latest"}}, want: official + "v1.14.2", problem: `dns.imageTag "latest"`},
		"from what tells no version":          {now: official + "latest", kubernetes: "1.37.2", want: official + "latest"},
		"from what tells none, to the spec's": {now: official + "latest", kubernetes: "1.36.3", spec: bootstrapv1.ClusterConfiguration{DNS: bootstrapv1.DNS{ImageTag: "v1.14.5"}}, want: official + "latest", problem: "move it by hand"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, problem := dnsTarget(parseImage(tc.now), tc.spec, semver.MustParse(tc.kubernetes))
			if got.String() != tc.want || (tc.problem == "") != (problem == "") || !strings.Contains(problem, tc.problem) {
				t.Errorf("got %s, problem %q; want %s, %q", got, problem, tc.want, tc.problem)
			}
		})
	}
}

func TestACorefileIsMigratedUnderARunningCoreDNS(t *testing.T) {
	d := running(t, "v1.3.1", oldCorefile)
	to := parseImage("registry.k8s.io/coredns/coredns:v1.14.6")
	var steps []string
	for {
		tag, text := d.reads()
		if tag == "v1.3.1" && text != oldCorefile {
			t.Fatalf("after %v the old CoreDNS reads:\n%s", steps, text)
		}
		step, err := d.next(to)
		if err != nil {
			t.Fatal(err)
		}
		if step == nil {
			break
		}
		if steps = append(steps, describeKind(step)); len(steps) > 9 {
			t.Fatalf("no end: %v", steps)
		}
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "ConfigMap", "Deployment"}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	tag, text := d.reads()
	if tag != "v1.14.6" || strings.Contains(text, "upstream") || !strings.Contains(text, "ready") {
		t.Errorf("CoreDNS %s reads:\n%s", tag, text)
	}
	if d.config.Data[backupKey] != oldCorefile {
		t.Errorf("the backup is:\n%s", d.config.Data[backupKey])
	}
}

func TestACorefileThatTheNewCoreDNSReadsIsLeftAlone(t *testing.T) {
	d := running(t, "v1.12.1", "")
	before := d.copy()
	step, err := d.next(parseImage("registry.k8s.io/coredns/coredns:v1.14.6"))
	if err != nil || step != d.deployment {
		t.Fatalf("first step %v, error %v, want the Deployment", step, err)
	}
	if tag, _ := d.reads(); tag != "v1.14.6" {
		t.Errorf("CoreDNS is at %s", tag)
	}
	if diff := cmp.Diff(before.config, d.config); diff != "" {
		t.Errorf("the ConfigMap changed (-before +after):\n%s", diff)
	}
}

func TestAMigrationFindsItsWayFromWhereverItStopped(t *testing.T) {
	first, second := parseImage("registry.k8s.io/coredns/coredns:v1.8.6"), parseImage("registry.k8s.io/coredns/coredns:v1.14.6")
	direct := running(t, "v1.3.1", oldCorefile)
	if finishFrom(t, direct, second) == 0 {
		t.Fatal("nothing to do: the test tests nothing")
	}
	_, want := direct.reads()
	for stopped := range 5 {
		d := running(t, "v1.3.1", oldCorefile)
		for range stopped {
			if _, err := d.next(first); err != nil {
				t.Fatal(err)
			}
		}
		// What is left of it is a new process with another target.
		d = d.copy()
		finishFrom(t, d, second)
		if tag, text := d.reads(); tag != "v1.14.6" || text != want {
			t.Errorf("stopped after %d steps, CoreDNS %s reads (-want +got):\n%s", stopped, tag, cmp.Diff(want, text))
		}
		if steps := finishFrom(t, d, second); steps != 0 {
			t.Errorf("stopped after %d steps: %d more writes at rest", stopped, steps)
		}
	}
}

// finishFrom goes the rest of the way and returns its length.
func finishFrom(t *testing.T, d dns, to image) int {
	t.Helper()
	for n := 0; ; n++ {
		step, err := d.next(to)
		if err != nil {
			t.Fatal(err)
		}
		if step == nil {
			return n
		}
		if n > 9 {
			t.Fatal("no end")
		}
	}
}

func TestACoreDNSThatSomebodyElseStartedMidwayGetsTheMigratedText(t *testing.T) {
	d := running(t, "v1.3.1", oldCorefile)
	to := parseImage("registry.k8s.io/coredns/coredns:v1.14.6")
	for range 3 {
		if _, err := d.next(to); err != nil {
			t.Fatal(err)
		}
	}
	containerOf(&d.deployment.Spec.Template.Spec, dnsName).Image = to.String()
	finishFrom(t, d, to)
	if _, text := d.reads(); strings.Contains(text, "upstream") {
		t.Errorf("the new CoreDNS reads:\n%s", text)
	}
}

func TestACorefileThatCannotBeMigratedStopsBeforeTheFirstWrite(t *testing.T) {
	elsewhere := running(t, "v1.3.1", oldCorefile)
	elsewhere.deployment.Spec.Template.Spec.Volumes[0].ConfigMap.Items = nil
	nothing := running(t, "v1.3.1", "")
	nothing.config.Data = nil
	cases := map[string]struct {
		dns  dns
		want string
	}{
		"a custom one that would lose a block": {dns: running(t, "v1.3.1", strings.Replace(oldCorefile, "upstream\n", "upstream {\n deep\n }\n", 1)), want: "line 6"},
		"one that cannot be read":              {dns: running(t, "v1.3.1", oldCorefile+"}\n"), want: "a brace closes nothing"},
		"one that comes from elsewhere":        {dns: elsewhere, want: "does not mount"},
		"none":                                 {dns: nothing, want: "holds no Corefile"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.dns.copy()
			step, err := tc.dns.next(parseImage("registry.k8s.io/coredns/coredns:v1.14.6"))
			if step != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("step %v, error %v, want %q in it", step, err, tc.want)
			}
			if diff := cmp.Diff(before.deployment, tc.dns.deployment) + cmp.Diff(before.config, tc.dns.config); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
		})
	}
}
