package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/operator/app"
)

// patience is how long a test waits for what takes a moment; a loaded machine may need much of it.
const patience = time.Minute

// eventually calls check until it returns "", and fails with what it returned last.
func eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		problem := check()
		if problem == "" {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience, problem)
		case <-tick.C:
		}
	}
}

// newNamespace creates a namespace for one test. It is never deleted: nothing here would empty it.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, namespace)
	return namespace.Name
}

func create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := admin.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T: %v", obj, err)
		}
	}
}

func options(namespace string, controllers ...string) app.Options {
	o := app.NewOptions()
	o.Controllers, o.Namespace = controllers, namespace
	o.MetricsAddress, o.ProbeAddress = "0", "0"
	return o
}

// startOperator runs groups of controllers on one namespace. The returned function stops them where they stand: their
// requests under way fail. The end of the test does the same.
func startOperator(t *testing.T, namespace string, controllers ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	mgr, err := app.NewManager(ctx, operator, options(namespace, controllers...), logr.Discard())
	if err != nil {
		t.Fatalf("set up the operator: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("operator: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// newCluster creates a Cluster whose infrastructure nobody provides, with the templates of its workers.
func newCluster(t *testing.T, namespace, name string) *clusterv1.Cluster {
	t.Helper()
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group, Kind: "VSphereCluster", Name: name,
		}},
	}
	create(t, cluster, newBootstrapTemplate(namespace, name), newMachineTemplate(namespace, name))
	return cluster
}

func newBootstrapTemplate(namespace, name string) *bootstrapv1.KubeadmConfigTemplate {
	return &bootstrapv1.KubeadmConfigTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: bootstrapv1.KubeadmConfigTemplateSpec{Template: bootstrapv1.KubeadmConfigTemplateResource{
			Spec: bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{"true"}},
		}},
	}
}

func newMachineTemplate(namespace, name string) *infrav1.VSphereMachineTemplate {
	template := &infrav1.VSphereMachineTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	template.Spec.Template.Spec.Template = "ubuntu"
	template.Spec.Template.Spec.Network.Devices = []infrav1.NetworkDeviceSpec{{NetworkName: "VM Network"}}
	return template
}

// newDeployment returns a MachineDeployment as a user writes it: only what has no default.
func newDeployment(namespace, cluster, name string, replicas *int32) *clusterv1.MachineDeployment {
	return &clusterv1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineDeploymentSpec{
			ClusterName: cluster,
			Replicas:    replicas,
			Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
				ClusterName: cluster,
				Version:     "1.37.2",
				Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfigTemplate", Name: cluster,
				}},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{
					APIGroup: infrav1.GroupVersion.Group, Kind: "VSphereMachineTemplate", Name: cluster,
				},
			}},
		},
	}
}

// scale sets spec.replicas as `kubectl scale` does.
func scale(t *testing.T, deployment *clusterv1.MachineDeployment, replicas int32) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := admin.SubResource("scale").Patch(t.Context(), deployment.DeepCopy(), patch); err != nil {
		t.Fatalf("scale %s to %d: %v", deployment.Name, replicas, err)
	}
}

func get[T client.Object](t *testing.T, obj T) T {
	t.Helper()
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatalf("get %T %q: %v", obj, obj.GetName(), err)
	}
	return obj
}

func machines(t *testing.T, namespace string) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatalf("list Machines: %v", err)
	}
	return list.Items
}

// wantMachines waits until there are so many Machines, each with its bootstrap config and infrastructure object.
func wantMachines(t *testing.T, namespace string, count int) {
	t.Helper()
	eventually(t, func() string {
		configs, vms := &bootstrapv1.KubeadmConfigList{}, &infrav1.VSphereMachineList{}
		for _, list := range []client.ObjectList{configs, vms} {
			if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
				t.Fatalf("list %T: %v", list, err)
			}
		}
		have := machines(t, namespace)
		if len(have) == count && len(configs.Items) == count && len(vms.Items) == count {
			return ""
		}
		return fmt.Sprintf("%d Machines, %d KubeadmConfigs, %d VSphereMachines; want %d of each", len(have), len(configs.Items), len(vms.Items), count)
	})
}
