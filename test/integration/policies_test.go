package integration

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
)

func TestBadNumbersOfReplicasAreRefusedWithTheReason(t *testing.T) {
	namespace := newNamespace(t)
	workers := func(replicas int32) client.Object { return newDeployment(namespace, "prod", "workers", &replicas) }
	controlPlane := func(replicas int32, change ...func(*controlplanev1.KubeadmControlPlane)) client.Object {
		out := &controlplanev1.KubeadmControlPlane{}
		out.Namespace, out.Name = namespace, "prod"
		out.Spec.Version, out.Spec.Replicas = "v1.37.2", &replicas
		out.Spec.MachineTemplate.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
			APIGroup: infrav1.GroupVersion.Group, Kind: "VSphereMachineTemplate", Name: "prod",
		}
		for _, f := range change {
			f(out)
		}
		return out
	}
	externalEtcd := func(k *controlplanev1.KubeadmControlPlane) {
		k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.Endpoints = []string{"https://etcd.test:2379"}
		k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.CAFile = "/ca"
		k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.CertFile = "/cert"
		k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External.KeyFile = "/key"
	}

	cases := map[string]struct {
		obj  client.Object
		want string
	}{
		"workers: none":                              {obj: workers(0)},
		"workers: as many as the bound":              {obj: workers(10000)},
		"workers: negative":                          {obj: workers(-1), want: "spec.replicas in body should be greater than or equal to 0"},
		"workers: absurd":                            {obj: workers(10001), want: "is more than 10000, the bound of policy millwright-replicas-bounded"},
		"control plane: three":                       {obj: controlPlane(3)},
		"control plane: none":                        {obj: controlPlane(0), want: "spec.replicas in body should be greater than or equal to 1"},
		"control plane: even":                        {obj: controlPlane(2), want: "replicas must be odd while etcd is stacked"},
		"control plane: even, but etcd is elsewhere": {obj: controlPlane(2, externalEtcd)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := admin.Create(t.Context(), tc.obj, client.DryRunAll)
			if tc.want == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

func TestAScaleOfTheSubresourceIsBoundedToo(t *testing.T) {
	namespace := newNamespace(t)
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](1))
	create(t, deployment)
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":50000}}`))
	err := admin.SubResource("scale").Patch(t.Context(), deployment.DeepCopy(), patch)
	if err == nil || !strings.Contains(err.Error(), "millwright-replicas-bounded") {
		t.Errorf("error is %v, want a refusal by policy", err)
	}
}

func TestAMachineCannotMoveToAnotherCluster(t *testing.T) {
	namespace := newNamespace(t)
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](1))
	create(t, deployment)
	machine := &clusterv1.Machine{Spec: *deployment.Spec.Template.Spec.DeepCopy()}
	machine.Namespace, machine.Name = namespace, "one"
	create(t, machine)

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"clusterName":"dev"}}`))
	for _, obj := range []client.Object{deployment, machine} {
		err := admin.Patch(t.Context(), obj, patch)
		if err == nil || !strings.Contains(err.Error(), "spec.clusterName is immutable") {
			t.Errorf("%T: error is %v, want one that says that clusterName is immutable", obj, err)
		}
	}
}
