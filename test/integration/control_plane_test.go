package integration

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// runControlPlane plays the provider and kubeadm for a Machine: its VM has a providerID, its Node is there, and the
// static pods on it are ready.
func runControlPlane(namespace, machine string) error {
	ctx := context.Background()
	vm := foo(namespace, "FooMachine", machine, nil)
	node := newNode(machine, "")
	node.Spec.ProviderID = fmt.Sprintf("foo://%s/%s", namespace, machine)
	node.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	status := node.Status
	if err := admin.Create(ctx, node); err != nil {
		return err
	}
	before := client.MergeFrom(node.DeepCopy())
	node.Status = status
	steps := []error{
		admin.Status().Patch(ctx, node, before),
		admin.Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"providerID":%q}}`, node.Spec.ProviderID))),
		admin.Status().Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"initialization":{"provisioned":true}}}`))),
	}
	for _, pod := range staticPods(machine) {
		steps = append(steps, admin.Create(ctx, pod))
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		steps = append(steps, admin.Status().Update(ctx, pod))
	}
	for _, err := range steps {
		if err != nil {
			return err
		}
	}
	return nil
}

// stopControlPlane takes away what runControlPlane has made and the Machine's controller does not remove.
func stopControlPlane(machine string) {
	ctx := context.Background()
	for _, pod := range staticPods(machine) {
		_ = admin.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}
	_ = admin.Delete(ctx, newNode(machine, ""))
}

func staticPods(machine string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		out = append(out, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "kube-system", Name: component + "-" + machine,
				Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"},
			},
			Spec: corev1.PodSpec{NodeName: machine, Containers: []corev1.Container{{Name: component, Image: "x"}}},
		})
	}
	return out
}

// runControlPlanes does so for every Machine that appears in a namespace from now on, until the test ends.
func runControlPlanes(t *testing.T, namespace string, running map[string]bool) {
	t.Helper()
	vms := &unstructured.UnstructuredList{}
	vms.SetGroupVersionKind(foo(namespace, "FooMachineList", "", nil).GroupVersionKind())
	follow(t, namespace, vms, func(event watch.Event) {
		vm, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return
		}
		switch name := vm.GetName(); {
		case event.Type == watch.Deleted:
			stopControlPlane(name)
			delete(running, name)
		case event.Type == watch.Added && !running[name]:
			running[name] = true
			if err := runControlPlane(namespace, name); err != nil {
				t.Errorf("run the control plane of %s: %v", name, err)
			}
		}
	})
	t.Cleanup(func() {
		for name := range running {
			stopControlPlane(name)
		}
	})
}

// everyOption sets what people set: none of it may look different to the controller once an API server and the
// bootstrap controller had it.
func everyOption(controlPlane *controlplanev1.KubeadmControlPlane) {
	config := &controlPlane.Spec.KubeadmConfigSpec
	registration := bootstrapv1.NodeRegistrationOptions{
		Name: "{{ ds.meta_data.hostname }}", CRISocket: "/run/containerd/containerd.sock", Taints: &[]corev1.Taint{},
		KubeletExtraArgs: []bootstrapv1.Arg{{Name: "cloud-provider", Value: ptr.To("external")}}, ImagePullSerial: ptr.To(false),
	}
	config.InitConfiguration.NodeRegistration, config.JoinConfiguration.NodeRegistration = registration, registration
	config.InitConfiguration.LocalAPIEndpoint.BindPort = 6443
	config.InitConfiguration.Timeouts.KubeletHealthCheckSeconds = ptr.To[int32](300)
	config.JoinConfiguration.Discovery.BootstrapToken.UnsafeSkipCAVerification = ptr.To(false)
	config.JoinConfiguration.Patches = bootstrapv1.Patches{Directory: "/etc/kubernetes/patches"}
	config.ClusterConfiguration.APIServer = bootstrapv1.APIServer{
		CertSANs: []string{"api.example.org"}, ExtraArgs: []bootstrapv1.Arg{{Name: "audit-log-path", Value: ptr.To("-")}, {Name: "v", Value: ptr.To("2")}},
	}
	config.ClusterConfiguration.ImageRepository = "registry.example.org"
	config.ClusterConfiguration.CertificateValidityPeriodDays = 90
	config.ClusterConfiguration.DNS = bootstrapv1.DNS{ImageTag: "v1.14.0"}
	config.Files = []bootstrapv1.File{{Path: "/etc/x", Content: "x", Permissions: "0640", Append: ptr.To(false)}}
	config.Users = []bootstrapv1.User{{Name: "ubuntu", Inactive: ptr.To(false), SSHAuthorizedKeys: []string{"ssh-ed25519 AAAA"}}}
	config.NTP = bootstrapv1.NTP{Enabled: ptr.To(true), Servers: []string{"ntp.example.org"}}
	config.Mounts = []bootstrapv1.MountPoints{{"LABEL=etcd_disk", "/var/lib/etcddisk"}}
	config.DiskSetup = bootstrapv1.DiskSetup{Filesystems: []bootstrapv1.Filesystem{{Device: "/dev/sdb", Filesystem: "ext4", Label: "etcd_disk", Overwrite: ptr.To(false)}}}
	config.PostKubeadmCommands = []string{"true"}
	config.Verbosity = ptr.To[int32](2)
	controlPlane.Spec.MachineTemplate.ObjectMeta = clusterv1.ObjectMeta{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "a"}}
}

func TestAControlPlaneGrowsAndIsReplacedMachineByMachineAndIsTakenDown(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster, controlPlane := newKubeadmCluster(t, namespace, "grow", 3, everyOption, externalEtcd(t, namespace, "grow"))
	newFooTemplate(t, namespace, "grow")
	initialize := newWorkload(t, namespace, "grow")
	startOperator(t, namespace, "core", "kubeadm")

	wantMachineObjects(t, namespace, 1)
	first := machines(t, namespace)[0].Name
	wantUserData(t, namespace, first)
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneInitializedCondition, "False", "NotInitialized")
	initialize()
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneInitializedCondition, "True", "Initialized")
	wantCondition(t, cluster, clusterv1.ClusterControlPlaneInitializedCondition, "True", "Initialized")

	running := map[string]bool{}
	for count := 1; count <= 3; count++ {
		wantMachineObjects(t, namespace, count)
		for _, machine := range machines(t, namespace) {
			if running[machine.Name] {
				continue
			}
			running[machine.Name] = true
			data := wantUserData(t, namespace, machine.Name)
			if verb := map[bool]string{true: "kubeadm init", false: "kubeadm join"}[machine.Name == first]; !strings.Contains(data, verb) {
				t.Errorf("Machine %q does not run %s", machine.Name, verb)
			}
			if err := runControlPlane(namespace, machine.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneAvailableCondition, "True", "Available")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneMachinesReadyCondition, "True", "Ready")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneScalingUpCondition, "False", "NotScalingUp")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition, "True", "UpToDate")

	// Machines that are as they were made are left alone, whatever made the controller look at them again.
	before := machineUIDs(t, namespace)
	patchControlPlane(t, controlPlane, `{"spec":{"machineTemplate":{"metadata":{"labels":{"team":"b"}},"spec":{"deletion":{"nodeDrainTimeoutSeconds":30}}}}}`)
	eventually(t, func() string {
		for _, machine := range machines(t, namespace) {
			vm := get(t, foo(namespace, "FooMachine", machine.Name, nil))
			if machine.Labels["team"] != "b" || vm.GetLabels()["team"] != "b" || ptr.Deref(machine.Spec.Deletion.NodeDrainTimeoutSeconds, 0) != 30 {
				return fmt.Sprintf("Machine %s has labels %v, its VM %v, timeouts %+v", machine.Name, machine.Labels, vm.GetLabels(), machine.Spec.Deletion)
			}
		}
		return ""
	})
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneRollingOutCondition, "False", "NotRollingOut")
	if after := machineUIDs(t, namespace); !maps.Equal(before, after) {
		t.Errorf("Machines are %v, were %v: they were replaced for what is changed in place", after, before)
	}

	outside := watchCrowd(t, namespace)
	runControlPlanes(t, namespace, running)
	patchControlPlane(t, controlPlane, `{"spec":{"version":"v1.37.3"}}`)
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneRollingOutCondition, "True", "RollingOut", "Version v1.37.2, v1.37.3 required")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneRollingOutCondition, "False", "NotRollingOut")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneMachinesUpToDateCondition, "True", "UpToDate")
	for uid, version := range machineUIDs(t, namespace) {
		if _, old := before[uid]; old || version != "v1.37.3" {
			t.Errorf("Machine %s has version %s, was there before: %t", uid, version, old)
		}
	}
	if outside.most != 4 {
		t.Errorf("there were up to %d Machines, want 4", outside.most)
	}
	stored := get(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}})
	if !strings.Contains(stored.Data["ClusterConfiguration"], "kubernetesVersion: v1.37.3") {
		t.Errorf("kubeadm join reads %s", stored.Data["ClusterConfiguration"])
	}

	create(t, &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "grow"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: "grow",
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
			Checks:      clusterv1.MachineHealthCheckChecks{NodeStartupTimeoutSeconds: ptr.To[int32](600)},
		},
	})
	before = machineUIDs(t, namespace)
	failed := machines(t, namespace)[1]
	if err := admin.Patch(t.Context(), &failed, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/remediate-machine":""}}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		have := machines(t, namespace)
		var ready int
		for _, machine := range have {
			if machine.UID == failed.UID {
				return "Machine " + machine.Name + " is still there"
			}
			if conditions.IsTrue(&machine, clusterv1.MachineReadyCondition) {
				ready++
			}
		}
		if len(have) != 3 || ready != 3 {
			return fmt.Sprintf("%d Machines, %d ready", len(have), ready)
		}
		return ""
	})
	for _, machine := range machines(t, namespace) {
		_, stayed := before[machine.UID]
		if record := machine.Annotations[controlplanev1.RemediationForAnnotation]; stayed == strings.Contains(record, `"machine":"`+failed.Name+`"`) {
			t.Errorf("Machine %s was there before: %t, and came in the place of %q", machine.Name, stayed, record)
		}
	}
	if last := get(t, controlPlane).Status.LastRemediation; last.Machine != failed.Name || ptr.Deref(last.RetryCount, -1) != 0 {
		t.Errorf("status.lastRemediation is %+v", last)
	}
	if _, begun := controlPlane.Annotations[controlplanev1.RemediationInProgressAnnotation]; begun {
		t.Error("the control plane still tells of a remediation")
	}

	if err := admin.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	for _, name := range machineNames(t, namespace) {
		wantGone(t, foo(namespace, "FooMachine", name, nil))
	}
	wantGone(t, controlPlane)
	wantDeleting(t, foo(namespace, "FooCluster", "grow", nil))
	release(t, foo(namespace, "FooCluster", "grow", nil))
	wantGone(t, cluster)
	if left := machines(t, namespace); len(left) != 0 {
		t.Errorf("%d Machines are left", len(left))
	}
}

func patchControlPlane(t *testing.T, controlPlane *controlplanev1.KubeadmControlPlane, patch string) {
	t.Helper()
	if err := admin.Patch(t.Context(), controlPlane, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// machineUIDs returns the versions of the Machines of a namespace.
func machineUIDs(t *testing.T, namespace string) map[types.UID]string {
	t.Helper()
	out := map[types.UID]string{}
	for _, machine := range machines(t, namespace) {
		out[machine.UID] = machine.Spec.Version
	}
	return out
}

func machineNames(t *testing.T, namespace string) []string {
	t.Helper()
	var out []string
	for _, machine := range machines(t, namespace) {
		out = append(out, machine.Name)
	}
	return out
}
