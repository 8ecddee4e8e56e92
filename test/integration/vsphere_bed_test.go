package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

// vsphereBed is a Cluster with its VSphereCluster and credentials, and a vCenter. Only the vSphere controllers run: the
// test does what the others would do.
type vsphereBed struct {
	vcenter   *vcentertest.Server
	namespace string
	cluster   *clusterv1.Cluster
	infra     *infrav1.VSphereCluster
	secret    *corev1.Secret
	stop      func()
}

func newVSphereBed(t *testing.T, tune ...func(*vsphereBed)) *vsphereBed {
	t.Helper()
	bed := &vsphereBed{vcenter: vcentertest.Start(t), namespace: newNamespace(t)}
	bed.vcenter.AnswerDHCP(t)
	meta := metav1.ObjectMeta{Namespace: bed.namespace, Name: "prod", Labels: map[string]string{clusterv1.ClusterNameLabel: "prod"}}
	bed.secret = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: bed.namespace, Name: "prod"},
		StringData: map[string]string{"username": vcentertest.Username, "password": vcentertest.Password},
	}
	bed.infra = &infrav1.VSphereCluster{ObjectMeta: meta, Spec: infrav1.VSphereClusterSpec{
		Server: bed.vcenter.Host(), Thumbprint: bed.vcenter.Thumbprint(),
		ControlPlaneEndpoint: infrav1.APIEndpoint{Host: "127.0.8.1", Port: 6443},
		IdentityRef:          infrav1.VSphereIdentityReference{Kind: infrav1.SecretKind, Name: "prod"},
	}}
	bed.cluster = &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{
		ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.8.1", Port: 6443},
		InfrastructureRef:    clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupName, Kind: "VSphereCluster", Name: "prod"},
	}}
	for _, f := range tune {
		f(bed)
	}
	create(t, bed.secret, bed.cluster)
	bed.infra.OwnerReferences = []metav1.OwnerReference{ownerRef(clusterv1.ClusterKind, bed.cluster)}
	create(t, bed.infra)
	bed.stop = startOperator(t, bed.namespace, "vsphere")
	return bed
}

func ownerRef(kind string, obj client.Object) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: obj.GetName(), UID: obj.GetUID(), Controller: new(true),
	}
}

// provisioned waits for the VSphereCluster and passes that on to the Cluster, as the core controllers do.
func (b *vsphereBed) provisioned(t *testing.T) {
	t.Helper()
	wantState(t, b.infra, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	status(t, b.cluster, func() { b.cluster.Status.Initialization.InfrastructureProvisioned = new(true) })
}

// machine creates a Machine with its bootstrap Secret and VSphereMachine.
func (b *vsphereBed) machine(t *testing.T, name string, tune ...func(*infrav1.VSphereMachine)) *infrav1.VSphereMachine {
	t.Helper()
	labels := map[string]string{clusterv1.ClusterNameLabel: "prod"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name + "-bootstrap", Labels: labels},
		StringData: map[string]string{"value": "#cloud-config\n", "format": "cloud-config"},
	}
	owner := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: labels}, Spec: clusterv1.MachineSpec{
		ClusterName: "prod", Version: "v1.37.2",
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: new(secret.Name)},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupName, Kind: "VSphereMachine", Name: name},
	}}
	create(t, secret, owner)
	machine := &infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{ownerRef("Machine", owner)},
	}}
	machine.Spec.VirtualMachineCloneSpec = infrav1.VirtualMachineCloneSpec{
		Template: vcentertest.Template, CloneMode: infrav1.LinkedClone, Datacenter: vcentertest.Datacenter, Datastore: vcentertest.Datastore,
		ResourcePool: vcentertest.ResourcePool, NumCPUs: 2, MemoryMiB: 2048, DiskGiB: 25,
		Network: infrav1.NetworkSpec{Devices: []infrav1.NetworkDeviceSpec{{NetworkName: vcentertest.Network, DHCP4: new(true)}}},
	}
	for _, f := range tune {
		f(machine)
	}
	create(t, machine)
	return machine
}

func status(t *testing.T, obj client.Object, change func()) {
	t.Helper()
	get(t, obj)
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := admin.Status().Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func update(t *testing.T, obj client.Object, change func()) {
	t.Helper()
	get(t, obj)
	before := obj.DeepCopyObject().(client.Object)
	change()
	if err := admin.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

type withConditions interface {
	client.Object
	conditions.Getter
}

func wantState(t *testing.T, obj withConditions, kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	eventually(t, func() string {
		get(t, obj)
		c := conditions.Get(obj, kind)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Sprintf("%s of %q is %+v; want %s, %s", kind, obj.GetName(), c, status, reason)
		}
		found = *c
		return ""
	})
	return found
}

// wantVMs waits until vCenter holds exactly the virtual machines of these names.
func (b *vsphereBed) wantVMs(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, func() string {
		have, err := b.vcenter.VMs(t.Context())
		if err != nil {
			return err.Error()
		}
		var got []string
		for name := range have {
			got = append(got, name)
		}
		slices.Sort(got)
		slices.Sort(names)
		return cmp.Diff(names, got)
	})
}
