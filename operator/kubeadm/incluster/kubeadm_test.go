package incluster

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/addons"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// objectOf returns one of the objects that a real kubeadm made.
func objectOf[T client.Object](t *testing.T, name string) T {
	t.Helper()
	data, err := os.ReadFile("testdata/kubeadm-v1.36.3.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(document, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found, ok := object.(T); ok && found.GetName() == name {
			return found
		}
	}
	t.Fatalf("no such object %q", name)
	panic("not reached")
}

func describeKind(object client.Object) string { return object.GetObjectKind().GroupVersionKind().Kind }

func TestKubeProxyFollowsTheVersion(t *testing.T) {
	cases := map[string]struct{ version, repository, want string }{
		"fresh":                 {version: "v1.36.3", want: "registry.k8s.io/kube-proxy:v1.36.3"},
		"upgraded":              {version: "v1.37.2", want: "registry.k8s.io/kube-proxy:v1.37.2"},
		"from a mirror":         {version: "v1.36.3", repository: "mirror.example.org/k8s", want: "mirror.example.org/k8s/kube-proxy:v1.36.3"},
		"a build of somebody's": {version: "v1.37.2+vendor.1", want: "registry.k8s.io/kube-proxy:v1.37.2_vendor.1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := objectOf[*appsv1.DaemonSet](t, proxyName)
			before := live.DeepCopy()
			changed, problem := moveProxy(live, bootstrapv1.ClusterConfiguration{ImageRepository: tc.repository}, tc.version)
			if problem != "" {
				t.Fatal(problem)
			}
			got := containerOf(&live.Spec.Template.Spec, proxyName).Image
			if got != tc.want || changed != (got != containerOf(&before.Spec.Template.Spec, proxyName).Image) {
				t.Errorf("got %s, changed %t, want %s", got, changed, tc.want)
			}
			containerOf(&before.Spec.Template.Spec, proxyName).Image = got
			if diff := cmp.Diff(before, live); diff != "" {
				t.Errorf("more than the image changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAKubeProxyThatIsNotKubeadmsIsTold(t *testing.T) {
	live := objectOf[*appsv1.DaemonSet](t, proxyName)
	live.Spec.Template.Spec.Containers[0].Name = "proxy"
	changed, problem := moveProxy(live, bootstrapv1.ClusterConfiguration{}, "v1.37.2")
	if changed || !strings.Contains(problem, "controlplane.cluster.x-k8s.io/skip-kube-proxy") {
		t.Errorf("changed %t, problem %q", changed, problem)
	}
}

func TestEachVersionIsGrantedWhatItsKubeadmCountsOn(t *testing.T) {
	always := []string{
		"kubeadm:nodes-kubeadm-config", "kubeadm:nodes-kubeadm-config", "kubeadm:kubelet-config", "kubeadm:kubelet-config", "kubeadm:get-nodes", "kubeadm:get-nodes",
		"kubeadm:kubelet-bootstrap", "kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation",
	}
	for version, more := range map[string][]string{
		"v1.28.9":       nil,
		"v1.29.0-rc.1":  {"kubeadm:cluster-admins"},
		"v1.35.4":       {"kubeadm:cluster-admins"},
		"v1.36.0-rc.1":  {"kubeadm:cluster-admins", "kubeadm:apiserver-kubelet-client"},
		"v1.37.2+build": {"kubeadm:cluster-admins", "kubeadm:apiserver-kubelet-client"},
	} {
		var got []string
		for _, object := range grants(semver.MustParse(version)) {
			got = append(got, object.GetName())
		}
		if diff := cmp.Diff(append(always[:len(always):len(always)], more...), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestAGrantAddsWhatIsMissingAndTakesNothing(t *testing.T) {
	own := group("example:machines")
	cases := map[string]struct {
		live, want client.Object
		changed    bool
		problem    string
		subjects   []rbacv1.Subject
		rules      []rbacv1.PolicyRule
	}{
		"all there, in another order": {
			live: roleBinding("a", group(nodes), group(bootstrappers)), want: roleBinding("a", group(bootstrappers), group(nodes)),
			subjects: []rbacv1.Subject{group(nodes), group(bootstrappers)},
		},
		"a subject": {
			live: clusterRoleBinding("a", "b", own), want: clusterRoleBinding("a", "b", group(nodes)), changed: true,
			subjects: []rbacv1.Subject{own, group(nodes)},
		},
		"a rule": {
			live: role("a", configMapRule("own")), want: role("a", configMapRule("kubeadm-config")), changed: true,
			rules: []rbacv1.PolicyRule{configMapRule("own"), configMapRule("kubeadm-config")},
		},
		"a role of the cluster": {
			live: &rbacv1.ClusterRole{}, want: &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{dnsGrants}}, changed: true, rules: []rbacv1.PolicyRule{dnsGrants},
		},
		"another role": {
			live: clusterRoleBinding("a", "view", own), want: clusterRoleBinding("a", "b", group(nodes)), problem: "ClusterRoleBinding a binds ClusterRole view",
			subjects: []rbacv1.Subject{own},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			changed, problem := grant(tc.live, tc.want)
			if changed != tc.changed || (problem == "") != (tc.problem == "") || !strings.Contains(problem, tc.problem) {
				t.Errorf("changed %t, problem %q", changed, problem)
			}
			var subjects []rbacv1.Subject
			var rules []rbacv1.PolicyRule
			switch live := tc.live.(type) {
			case *rbacv1.Role:
				rules = live.Rules
			case *rbacv1.ClusterRole:
				rules = live.Rules
			case *rbacv1.RoleBinding:
				subjects = live.Subjects
			case *rbacv1.ClusterRoleBinding:
				subjects = live.Subjects
			}
			if diff := cmp.Diff(tc.subjects, subjects) + cmp.Diff(tc.rules, rules); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCatalogueHasTheSameCoreDNS(t *testing.T) {
	catalogue, err := bundle.Load(addons.Files)
	if err != nil {
		t.Fatal(err)
	}
	addon, err := catalogue.Addon("coredns")
	if err != nil {
		t.Fatal(err)
	}
	for minor, want := range defaultDNS {
		for _, version := range addon.Versions {
			fits, err := semver.NewConstraint(version.Kubernetes)
			if err != nil {
				t.Fatal(err)
			}
			if fits.Check(semver.New(1, minor, 0, "", "")) && "v"+version.Version != want {
				t.Errorf("Kubernetes 1.%d: CoreDNS %s, and %s in the catalogue", minor, want, version.Version)
			}
		}
	}
}
