package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/operator/app"
	"github.com/millwright-dev/millwright/test/apiserver"
)

// upgradable is a cluster of v1.36.3 that nothing keeps from v1.37.2, whose machines nobody reconciles.
type upgradable struct {
	cluster      *clusterv1.Cluster
	controlPlane *unstructured.Unstructured
	machine      *clusterv1.Machine
	deployment   *clusterv1.MachineDeployment
	template     *unstructured.Unstructured
	release      *addonsv1.AddonRelease
	upgrade      *lifecyclev1.ClusterUpgrade
	// workload is the cluster itself.
	workload client.Client
}

func newUpgradable(t *testing.T, namespace, name string, workload *rest.Config) *upgradable {
	t.Helper()
	installFoo(t)
	u := &upgradable{}
	image := func(name string) *unstructured.Unstructured {
		return foo(namespace, "FooMachineTemplate", name, map[string]any{"template": map[string]any{"spec": map[string]any{"image": "kube-v1.36.3"}}})
	}
	u.template = image(name + "-worker")
	infrastructure := foo(namespace, "FooCluster", name, map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(6443)}})
	reference := map[string]any{"apiGroup": fooGroup, "kind": "FooMachineTemplate", "name": name + "-control-plane"}
	u.controlPlane = foo(namespace, "FooControlPlane", name, map[string]any{"replicas": int64(3), "version": "v1.36.3",
		"machineTemplate": map[string]any{"spec": map[string]any{"infrastructureRef": reference}}})
	u.controlPlane.SetLabels(map[string]string{clusterv1.ClusterNameLabel: name})
	create(t, infrastructure, u.controlPlane, u.template, image(name+"-control-plane"))
	report(t, infrastructure, map[string]any{"initialization": map[string]any{"provisioned": true}})
	three := int64(3)
	report(t, u.controlPlane, map[string]any{"initialization": map[string]any{"controlPlaneInitialized": true}, "version": "v1.36.3", "observedGeneration": int64(1),
		"replicas": three, "upToDateReplicas": three, "readyReplicas": three, "availableReplicas": three})
	u.cluster = &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: fooRef("FooCluster", name), ControlPlaneRef: fooRef("FooControlPlane", name)},
	}
	create(t, u.cluster, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: name}},
		Type:       clusterv1.ClusterSecretType,
		Data:       map[string][]byte{"value": kubeconfigOf(t, workload)},
	})
	status(t, u.cluster, func() { u.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true) })
	for i := range 3 {
		u.machine = u.newMachine(t, fmt.Sprintf("%s-%d", name, i), clusterv1.MachineControlPlaneLabel, "")
	}
	one := int32(1)
	u.deployment = newDeployment(namespace, name, name+"-workers", &one)
	u.deployment.Labels = map[string]string{clusterv1.ClusterNameLabel: name}
	u.deployment.Spec.Template.Spec.Version = "v1.36.3"
	u.deployment.Spec.Template.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("userdata")}
	u.deployment.Spec.Template.Spec.InfrastructureRef = fooRef("FooMachineTemplate", u.template.GetName())
	create(t, u.deployment)
	u.newMachine(t, name+"-worker", clusterv1.MachineDeploymentNameLabel, u.deployment.Name)
	u.settle(t, one)
	u.release = newRelease(namespace, name, "coredns")
	create(t, u.release)
	u.addon(t, true)
	var err error
	if u.workload, err = client.New(workload, client.Options{Scheme: app.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	u.upgrade = &lifecyclev1.ClusterUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: lifecyclev1.ClusterUpgradeSpec{ClusterName: name, Version: "v1.37.2"}}
	return u
}

func (u *upgradable) newMachine(t *testing.T, name, label, value string) *clusterv1.Machine {
	t.Helper()
	machine := newFooMachine(u.cluster.Namespace, u.cluster.Name, name)
	machine.Labels = map[string]string{clusterv1.ClusterNameLabel: u.cluster.Name, label: value}
	machine.Spec.Version = "v1.36.3"
	create(t, machine)
	status(t, machine, func() {
		machine.Status.NodeRef.Name = name
		machine.Status.CertificatesExpiryDate = metav1.NewTime(time.Now().AddDate(1, 0, 0))
		conditions.Set(machine, conditions.True(clusterv1.MachineReadyCondition, "Ready", ""))
		if label == clusterv1.MachineControlPlaneLabel {
			conditions.Set(machine, conditions.True("EtcdMemberHealthy", "Healthy", ""))
		}
	})
	return machine
}

// settle reports the MachineDeployment as its controller would, with so many machines up to date.
func (u *upgradable) settle(t *testing.T, upToDate int32) {
	t.Helper()
	one := int32(1)
	status(t, u.deployment, func() {
		u.deployment.Status = clusterv1.MachineDeploymentStatus{ObservedGeneration: u.deployment.Generation,
			Replicas: &one, UpToDateReplicas: &upToDate, ReadyReplicas: &one, AvailableReplicas: &one}
	})
}

// addon reports the add-on as its controller would.
func (u *upgradable) addon(t *testing.T, healthy bool) {
	t.Helper()
	status(t, u.release, func() {
		u.release.Status.Version, u.release.Status.TargetVersion = "1.14.2", "1.14.2"
		conditions.Set(u.release, conditions.True(addonsv1.ReadyCondition, addonsv1.ReadyReason, ""))
		if !healthy {
			conditions.Set(u.release, conditions.False(addonsv1.ReadyCondition, addonsv1.UnhealthyReason, "1 of 6 objects is not healthy"))
		}
	})
}

// machineCondition sets a condition of a control-plane machine.
func (u *upgradable) machineCondition(t *testing.T, kind string, good bool) {
	t.Helper()
	status(t, u.machine, func() {
		conditions.Set(u.machine, conditions.True(kind, "Good", ""))
		if !good {
			conditions.Set(u.machine, conditions.False(kind, "Bad", "the kubelet is silent"))
		}
	})
}

// reach writes at which port the workload cluster's API server is looked for.
func (u *upgradable) reach(t *testing.T, config *rest.Config) {
	t.Helper()
	secret := secretNamed(u.cluster.Namespace, u.cluster.Name+"-kubeconfig")
	update(t, secret, func() { secret.Data["value"] = kubeconfigOf(t, config) })
}

// blocked is one thing that stands in the way.
type blocked struct {
	check, object, message, remedy string
	harm, mend                     func(*testing.T, *upgradable)
}

func TestEachBlockedUpgradeSaysWhyAndGoesOnWhenThatIsMended(t *testing.T) {
	t.Parallel()
	own, err := apiserver.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	nowhere := rest.CopyConfig(own.Admin)
	nowhere.Host = "https://127.0.0.1:1"
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	paused := func(is bool) func(*testing.T, *upgradable) {
		return func(t *testing.T, u *upgradable) { update(t, u.cluster, func() { u.cluster.Spec.Paused = &is }) }
	}
	condition := func(kind string, good bool) func(*testing.T, *upgradable) {
		return func(t *testing.T, u *upgradable) { u.machineCondition(t, kind, good) }
	}
	version := func(version string) func(*testing.T, *upgradable) {
		return func(t *testing.T, u *upgradable) {
			update(t, u.deployment, func() { u.deployment.Spec.Template.Spec.Version = version })
			u.settle(t, 1)
		}
	}
	expiry := func(left time.Duration) func(*testing.T, *upgradable) {
		return func(t *testing.T, u *upgradable) {
			status(t, u.machine, func() { u.machine.Status.CertificatesExpiryDate = metav1.NewTime(time.Now().Add(left)) })
		}
	}
	surge := func(most int32) func(*testing.T, *upgradable) {
		return func(t *testing.T, u *upgradable) {
			update(t, u.deployment, func() {
				u.deployment.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
					RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromInt32(most)), MaxUnavailable: ptr.To(intstr.FromInt32(0))}}
			})
			u.settle(t, 1)
		}
	}
	cases := map[string]blocked{
		"version": {check: "Version", object: `cluster "version"`, message: "v1.36.1 is older", remedy: "choose v1.36.3 or newer",
			harm: func(_ *testing.T, u *upgradable) { u.upgrade.Spec.Version = "v1.36.1" },
			mend: func(t *testing.T, u *upgradable) { update(t, u.upgrade, func() { u.upgrade.Spec.Version = "v1.37.2" }) }},
		"image": {check: "MachineImage", object: `machinedeployment "image-workers"`, message: "no name in it holds v1.36.3", remedy: "images.pattern",
			harm: func(t *testing.T, u *upgradable) {
				update(t, u.template, func() {
					_ = unstructured.SetNestedField(u.template.Object, "golden", "spec", "template", "spec", "image")
				})
			},
			mend: func(t *testing.T, u *upgradable) {
				update(t, u.upgrade, func() {
					u.upgrade.Spec.Images = lifecyclev1.Images{Pattern: "kube-{{.Version}}", Field: "spec.template.spec.image"}
				})
			}},
		"skew": {check: "VersionSkew", object: `workers "skew-workers"`, message: "newer than the control plane", remedy: "set their version back to v1.36.3",
			harm: version("v1.37.1"), mend: version("v1.36.3")},
		"addon": {check: "AddonVersion", object: `addon "coredns"`, message: "1.14.2 is not stated for v1.37.2", remedy: "version: auto",
			harm: func(t *testing.T, u *upgradable) { update(t, u.release, func() { u.release.Spec.Version = "1.14.2" }) },
			mend: func(t *testing.T, u *upgradable) { update(t, u.release, func() { u.release.Spec.Version = "auto" }) }},
		"sick-addon": {check: "AddonHealth", object: `addon "coredns"`, message: "1 of 6 objects is not healthy", remedy: "mend it first",
			harm: func(t *testing.T, u *upgradable) { u.addon(t, false) }, mend: func(t *testing.T, u *upgradable) { u.addon(t, true) }},
		"sick": {check: "ControlPlaneHealth", object: `machine "sick-2"`, message: "the kubelet is silent", remedy: "mend it",
			harm: condition(clusterv1.MachineReadyCondition, false), mend: condition(clusterv1.MachineReadyCondition, true)},
		"quorum": {check: "EtcdQuorum", object: `cluster "quorum"`, message: "2 of 3 etcd members are healthy", remedy: "mend the others first",
			harm: condition("EtcdMemberHealthy", false), mend: condition("EtcdMemberHealthy", true)},
		"certificates": {check: "CertificateExpiry", object: `machine "certificates-2"`, message: "expire on", remedy: "kubectl machines certs rotate certificates",
			harm: expiry(time.Hour), mend: expiry(1000 * time.Hour)},
		"budget": {check: "DisruptionBudgets", object: `poddisruptionbudget "default/web"`, message: "maxUnavailable is 0", remedy: "lower the budget",
			harm: func(t *testing.T, u *upgradable) {
				if err := u.workload.Create(t.Context(), budget); err != nil {
					t.Fatal(err)
				}
				budget.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2}
				if err := u.workload.Status().Update(t.Context(), budget); err != nil {
					t.Fatal(err)
				}
			},
			mend: func(t *testing.T, u *upgradable) {
				if err := u.workload.Delete(t.Context(), budget); err != nil {
					t.Fatal(err)
				}
			}},
		"surge": {check: "SurgeCapacity", object: `machinedeployment "surge-workers"`, message: "both 0", remedy: "allow one of them", harm: surge(0), mend: surge(1)},
		"rollout": {check: "RolloutUnderWay", object: `machinedeployment "rollout-workers"`, message: "0 of 1 machines are up to date", remedy: "wait until it is done",
			harm: func(t *testing.T, u *upgradable) { u.settle(t, 0) }, mend: func(t *testing.T, u *upgradable) { u.settle(t, 1) }},
		"paused": {check: "Paused", object: `cluster "paused"`, message: "paused", remedy: "set spec.paused to false", harm: paused(true), mend: paused(false)},
		"silent": {check: "WorkloadCluster", object: `cluster "silent"`, message: "its API server does not answer", remedy: "",
			harm: func(t *testing.T, u *upgradable) { u.reach(t, nowhere) }, mend: func(t *testing.T, u *upgradable) { u.reach(t, own.Admin) }},
	}
	namespace := newNamespace(t)
	startOperator(t, namespace, "upgrade")
	for name, tc := range cases {
		// One after the other: they share the workload cluster.
		t.Run(name, func(t *testing.T) {
			u := newUpgradable(t, namespace, name, own.Admin)
			tc.harm(t, u)
			create(t, u.upgrade)
			eventually(t, func() string { return u.told(t, tc) })
			if get(t, u.controlPlane); u.asked() != "v1.36.3" {
				t.Errorf("the control plane moves to %s though the upgrade is blocked", u.asked())
			}
			tc.mend(t, u)
			eventually(t, func() string {
				runMachines(t, namespace, "upgrade", "resume", name)
				if get(t, u.controlPlane); u.asked() == "v1.37.2" {
					return ""
				}
				get(t, u.upgrade)
				return fmt.Sprintf("it is %s: %s", u.upgrade.Status.Phase, u.upgrade.Status.Message)
			})
			if err := admin.Delete(context.Background(), u.upgrade); err != nil {
				t.Error(err)
			}
			wantGone(t, u.upgrade)
		})
	}
}

// asked is the version that the control plane is asked for.
func (u *upgradable) asked() string {
	version, _, _ := unstructured.NestedString(u.controlPlane.Object, "spec", "version")
	return version
}

// told says what of a blocked upgrade is not told; empty when all is.
func (u *upgradable) told(t *testing.T, want blocked) string {
	t.Helper()
	get(t, u.upgrade)
	for _, f := range u.upgrade.Status.Findings {
		if f.Check == want.check && f.Object == want.object && f.Severity == lifecyclev1.Blocker && strings.Contains(f.Message, want.message) && strings.Contains(f.Message, want.remedy) {
			if u.upgrade.Status.Phase != lifecyclev1.UpgradeBlocked || !conditions.IsFalse(u.upgrade, lifecyclev1.PreflightPassedCondition) {
				return fmt.Sprintf("it is %s", u.upgrade.Status.Phase)
			}
			return ""
		}
	}
	return fmt.Sprintf("it is %s: %s; findings %+v; want %s of %s with %q and %q", u.upgrade.Status.Phase, u.upgrade.Status.Message, u.upgrade.Status.Findings,
		want.check, want.object, want.message, want.remedy)
}
