package incluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/millwright-dev/millwright/operator/kubeadm/incluster"
)

// oldDNS makes CoreDNS one whose Corefile a new one cannot read.
func oldDNS(object client.Object) {
	u := object.(*unstructured.Unstructured)
	switch {
	case u.GetKind() == "ConfigMap" && u.GetName() == "coredns":
		text := u.Object["data"].(map[string]any)["Corefile"].(string)
		u.Object["data"].(map[string]any)["Corefile"] = strings.Replace(text, "pods insecure\n", "pods insecure\n           upstream\n", 1)
	case u.GetKind() == "Deployment":
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		containers[0].(map[string]any)["image"] = "registry.k8s.io/coredns/coredns:v1.3.1"
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	}
}

// upgrade does all that an upgrade does in the cluster.
func upgrade(ctx context.Context, c client.Client, version string, changes ...func(*controlplanev1.KubeadmControlPlane)) (incluster.Outcome, error) {
	controlPlane, cluster := prod(version, changes...)
	out, err := incluster.Prepare(ctx, c, controlPlane, cluster)
	if err != nil || len(out.Problems) > 0 {
		return out, err
	}
	finished, err := incluster.Finish(ctx, c, controlPlane)
	out.Changes, out.Problems = append(out.Changes, finished.Changes...), append(out.Problems, finished.Problems...)
	return out, err
}

func TestAnUpgradeBringsAllOfItToTheNewVersion(t *testing.T) {
	kubeadmCluster(t, oldDNS)
	out, err := upgrade(testContext(t), admin, "v1.37.2")
	if err != nil || len(out.Problems) > 0 {
		t.Fatalf("error %v, problems %v", err, out.Problems)
	}
	told := strings.Join(out.Changes, "\n")
	for _, part := range []string{
		"updated ConfigMap kube-system/kubeadm-config for v1.37.2", "created ClusterRoleBinding kubeadm:apiserver-kubelet-client", "created Role kube-system/kubeadm:kubelet-config",
		"moved kube-proxy to registry.k8s.io/kube-proxy:v1.37.2", "moved CoreDNS to registry.k8s.io/coredns/coredns:v1.14.6",
	} {
		if !strings.Contains(told, part) {
			t.Errorf("no %q is told:\n%s", part, told)
		}
	}
	config := &corev1.ConfigMap{}
	for name, parts := range map[string][]string{"kubeadm-config": {"kubernetesVersion: v1.37.2", "podSubnet: 192.168.0.0/16"}, "coredns": {"pods insecure"}} {
		if err := admin.Get(testContext(t), client.ObjectKey{Namespace: "kube-system", Name: name}, config); err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if text := config.Data["ClusterConfiguration"] + config.Data["Corefile"]; !strings.Contains(text, part) || strings.Contains(text, "upstream") {
				t.Errorf("ConfigMap %s, where %q belongs and no upstream:\n%s", name, part, text)
			}
		}
	}
	if !strings.Contains(config.Data["Corefile-backup"]+get(t, "coredns").Data["Corefile-backup"], "upstream") {
		t.Error("no backup of the Corefile is kept")
	}

	// Nothing can be written by this client.
	out, err = upgrade(testContext(t), dying(0), "v1.37.2")
	if err != nil || len(out.Changes)+len(out.Problems) > 0 {
		t.Errorf("once more: error %v, changes %v, problems %v; want none", err, out.Changes, out.Problems)
	}
}

func get(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	config := &corev1.ConfigMap{}
	if err := admin.Get(testContext(t), client.ObjectKey{Namespace: "kube-system", Name: name}, config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestAnUpgradeThatIsCutShortAtAnyWriteEndsTheSame(t *testing.T) {
	kubeadmCluster(t, oldDNS)
	if _, err := upgrade(testContext(t), admin, "v1.37.2"); err != nil {
		t.Fatal(err)
	}
	want := state(t)
	for writes := 0; ; writes++ {
		kubeadmCluster(t, oldDNS)
		_, err := upgrade(testContext(t), dying(writes), "v1.37.2")
		if err == nil {
			if writes < 15 {
				t.Errorf("an upgrade takes %d writes: the test tests less than it should", writes)
			}
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		if out, err := upgrade(testContext(t), admin, "v1.37.2"); err != nil || len(out.Problems) > 0 {
			t.Fatalf("after %d writes: error %v, problems %v", writes, err, out.Problems)
		}
		if diff := cmp.Diff(want, state(t)); diff != "" {
			t.Errorf("after %d writes and a second try (-want +got):\n%s", writes, diff)
		}
	}
}

func TestWhatOthersLookAfterIsLeftAlone(t *testing.T) {
	annotated := func(names ...string) func(*controlplanev1.KubeadmControlPlane) {
		return func(controlPlane *controlplanev1.KubeadmControlPlane) {
			controlPlane.Annotations = map[string]string{}
			for _, name := range names {
				controlPlane.Annotations[name] = ""
			}
		}
	}
	none := annotated()
	cases := map[string]struct {
		controlPlane func(*controlplanev1.KubeadmControlPlane)
		change       func(client.Object)
		gone         bool
	}{
		"by annotation": {controlPlane: annotated(controlplanev1.SkipCoreDNSAnnotation, controlplanev1.SkipKubeProxyAnnotation), change: oldDNS},
		"by an add-on": {controlPlane: none, change: func(object client.Object) {
			oldDNS(object)
			object.SetLabels(map[string]string{"applyset.kubernetes.io/part-of": "applyset-x-v1"})
		}},
		"by nobody, since there is none": {controlPlane: none, change: func(client.Object) {}, gone: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kubeadmCluster(t, tc.change)
			if tc.gone {
				for kind, name := range map[string]string{"Deployment": "coredns", "DaemonSet": "kube-proxy"} {
					object := &unstructured.Unstructured{}
					object.SetAPIVersion("apps/v1")
					object.SetKind(kind)
					object.SetNamespace("kube-system")
					object.SetName(name)
					remove(t, object)
				}
			}
			controlPlane, _ := prod("v1.37.2", tc.controlPlane)
			out, err := incluster.Finish(testContext(t), dying(0), controlPlane)
			if err != nil || len(out.Changes)+len(out.Problems) > 0 {
				t.Errorf("error %v, changes %v, problems %v; want none", err, out.Changes, out.Problems)
			}
		})
	}
}

func TestWhoeverWroteMeanwhileIsNotOverruled(t *testing.T) {
	kubeadmCluster(t)
	rival := func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
		if obj.GetName() == "kubeadm-config" {
			other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}}
			if err := c.Patch(ctx, other, client.RawPatch("application/merge-patch+json", []byte(`{"data":{"theirs":"kept"}}`))); err != nil {
				return err
			}
		}
		return c.Patch(ctx, obj, patch, opts...)
	}
	_, err := upgrade(testContext(t), interceptor.NewClient(admin, interceptor.Funcs{Patch: rival}), "v1.37.2")
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "ConfigMap kube-system/kubeadm-config") {
		t.Fatalf("error %v, want a conflict that names the ConfigMap", err)
	}
	if out, err := upgrade(testContext(t), admin, "v1.37.2"); err != nil || len(out.Problems) > 0 {
		t.Fatalf("error %v, problems %v", err, out.Problems)
	}
	if data := get(t, "kubeadm-config").Data; data["theirs"] != "kept" || !strings.Contains(data["ClusterConfiguration"], "v1.37.2") {
		t.Errorf("kubeadm-config is %v", data)
	}
}

func TestWhatAPersonHasToPutRightIsToldAndNothingIsWritten(t *testing.T) {
	gate := func(controlPlane *controlplanev1.KubeadmControlPlane) {
		controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = map[string]bool{"PublicKeysECDSA": true}
	}
	kubeadmCluster(t)
	before := get(t, "kubeadm-config").ResourceVersion
	out, err := upgrade(testContext(t), admin, "v1.37.2", gate)
	if told := strings.Join(out.Problems, "\n"); err != nil || !strings.Contains(told, "featureGates") || !strings.Contains(told, "PublicKeysECDSA") {
		t.Errorf("error %v, problems %q", err, told)
	}
	if after := get(t, "kubeadm-config").ResourceVersion; after != before {
		t.Error("the configuration was written nevertheless")
	}

	remove(t, get(t, "kubeadm-config"))
	out, err = upgrade(testContext(t), admin, "v1.37.2")
	if told := strings.Join(out.Problems, "\n"); err != nil || !strings.Contains(told, "kubeadm-config does not exist") || !strings.Contains(told, "kubeadm init phase upload-config") {
		t.Errorf("error %v, problems %q", err, told)
	}
}
