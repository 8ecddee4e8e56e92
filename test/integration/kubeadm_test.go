package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/pki"
)

// newKubeadmCluster creates a Cluster with ready infrastructure and a KubeadmControlPlane, as users write it. No API
// server answers at its endpoint.
func newKubeadmCluster(t *testing.T, namespace, name string, replicas int32, changes ...func(*controlplanev1.KubeadmControlPlane)) (*clusterv1.Cluster, *controlplanev1.KubeadmControlPlane) {
	t.Helper()
	installFoo(t)
	infrastructure := foo(namespace, "FooCluster", name, map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(1)}})
	controlPlane := &controlplanev1.KubeadmControlPlane{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: controlplanev1.KubeadmControlPlaneSpec{
			Replicas: &replicas,
			Version:  "1.37.2",
			MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{
				InfrastructureRef: fooRef("FooMachineTemplate", name),
			}},
			KubeadmConfigSpec: bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{`hostnamectl set-hostname "{{ ds.meta_data.hostname }}"`}},
		},
	}
	for _, change := range changes {
		change(controlPlane)
	}
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.ClusterSpec{
			InfrastructureRef: fooRef("FooCluster", name),
			ControlPlaneRef:   clusterv1.ContractVersionedObjectReference{APIGroup: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane", Name: name},
			ClusterNetwork:    clusterv1.ClusterNetwork{Pods: clusterv1.NetworkRanges{CIDRBlocks: []string{"192.168.0.0/16"}}},
		},
	}
	create(t, infrastructure, controlPlane, cluster)
	report(t, infrastructure, map[string]any{"initialization": map[string]any{"provisioned": true}})
	return cluster, controlPlane
}

func newFooTemplate(t *testing.T, namespace, name string) {
	t.Helper()
	create(t, foo(namespace, "FooMachineTemplate", name, map[string]any{"template": map[string]any{"spec": map[string]any{"size": "small"}}}))
}

func secretNamed(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// wantUserData waits for the user data of a KubeadmConfig and returns it.
func wantUserData(t *testing.T, namespace, name string) string {
	t.Helper()
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	wantCondition(t, config, bootstrapv1.KubeadmConfigReadyCondition, "True", "Ready")
	secret := get(t, secretNamed(namespace, config.Status.DataSecretName))
	if !metav1.IsControlledBy(secret, config) || secret.Type != clusterv1.ClusterSecretType || string(secret.Data["format"]) != "cloud-config" {
		t.Errorf("Secret %q: owners %v, type %q, format %q", secret.Name, secret.OwnerReferences, secret.Type, secret.Data["format"])
	}
	return string(secret.Data["value"])
}

func TestAControlPlaneBeginsWithOneMachineThatInitializes(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	_, controlPlane := newKubeadmCluster(t, namespace, "prod", 3)
	newFooTemplate(t, namespace, "prod")
	startOperator(t, namespace, "core", "kubeadm")

	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, "True", "Available")
	wantMachineObjects(t, namespace, 1)
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneScalingUpCondition, "True", "ScalingUp", "from 1 to 3", "has not initialized the control plane yet")
	have := machines(t, namespace)
	if len(have) != 1 {
		t.Fatalf("%d Machines, want the first alone", len(have))
	}
	machine := have[0]
	if owner := metav1.GetControllerOf(&machine); owner == nil || owner.UID != controlPlane.UID {
		t.Errorf("the Machine is controlled by %+v", owner)
	}
	data := wantUserData(t, namespace, machine.Name)
	for _, part := range []string{
		"## template: jinja\n#cloud-config\n", "kubeadm init --config /run/kubeadm/kubeadm.yaml", "/etc/kubernetes/pki/etcd/ca.key",
		"clusterName: prod", "kubernetesVersion: v1.37.2", `podSubnet: "192.168.0.0/16"`, `controlPlaneEndpoint: "127.0.0.1:1"`,
		`hostnamectl set-hostname "{{ ds.meta_data.hostname }}"`,
	} {
		if !strings.Contains(data, part) {
			t.Errorf("user data lacks %q", part)
		}
	}

	for _, name := range []string{"prod-ca", "prod-etcd", "prod-proxy", "prod-sa", "prod-kubeconfig"} {
		if secret := get(t, secretNamed(namespace, name)); !metav1.IsControlledBy(secret, controlPlane) || secret.Type != clusterv1.ClusterSecretType {
			t.Errorf("Secret %q: owners %v, type %q", name, secret.OwnerReferences, secret.Type)
		}
	}
	if get(t, controlPlane).Spec.Version != "v1.37.2" || controlPlane.Spec.Rollout.Strategy.RollingUpdate.MaxSurge.IntValue() != 1 {
		t.Errorf("defaults are not stored: version %s, strategy %+v", controlPlane.Spec.Version, controlPlane.Spec.Rollout.Strategy)
	}
}

func TestAKilledOperatorGoesOnWithTheSameMachine(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	_, controlPlane := newKubeadmCluster(t, namespace, "prod", 3)
	newFooTemplate(t, namespace, "prod")
	var names []string
	for range 4 {
		stop := startOperator(t, namespace, "core", "kubeadm")
		eventually(t, func() string {
			if len(machines(t, namespace)) == 0 {
				return "no Machine yet"
			}
			return ""
		})
		// Stopped where it stands: what belongs to the Machine may be half made.
		stop()
		for _, machine := range machines(t, namespace) {
			names = append(names, machine.Name)
		}
	}
	startOperator(t, namespace, "core", "kubeadm")
	wantMachineObjects(t, namespace, 1)
	wantUserData(t, namespace, names[0])
	for _, name := range names {
		if name != names[0] {
			t.Errorf("Machines %v: there was a second one", names)
		}
	}
	get(t, controlPlane)
}

// wantMachineObjects waits until there are so many Machines of the provider that the test plays, with their configs.
func wantMachineObjects(t *testing.T, namespace string, count int) {
	t.Helper()
	eventually(t, func() string {
		configs := &bootstrapv1.KubeadmConfigList{}
		if err := admin.List(t.Context(), configs, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		have := machines(t, namespace)
		for _, machine := range have {
			if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: machine.Name}, foo(namespace, "FooMachine", machine.Name, nil)); err != nil {
				return err.Error()
			}
		}
		if len(have) != count || len(configs.Items) != count {
			return fmt.Sprintf("%d Machines, %d KubeadmConfigs; want %d", len(have), len(configs.Items), count)
		}
		return ""
	})
}

// newWorkload makes the tests' own API server the workload cluster of a Cluster: a kubeconfig that a user supplies.
// Each test that does so takes what kubeadm init leaves away again, since all share that API server.
func newWorkload(t *testing.T, namespace, cluster string) (initialize func()) {
	t.Helper()
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}},
		Data:       map[string][]byte{"value": adminKubeconfig(t)},
	})
	return func() {
		t.Helper()
		config := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
			Data:       map[string]string{"ClusterConfiguration": "apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nkubernetesVersion: v1.37.2\n"},
		}
		create(t, config)
		t.Cleanup(func() {
			if err := admin.Delete(context.Background(), config); err != nil {
				t.Error(err)
			}
		})
	}
}

// externalEtcd spares a test the etcd that it cannot play: with it, members are nobody's business.
func externalEtcd(t *testing.T, namespace, cluster string) func(*controlplanev1.KubeadmControlPlane) {
	t.Helper()
	ca, err := pki.NewCA("etcd", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "apiserver-etcd-client"} {
		create(t, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster + "-" + name},
			Data:       map[string][]byte{"tls.crt": ca.Cert, "tls.key": ca.Key},
		})
	}
	return func(controlPlane *controlplanev1.KubeadmControlPlane) {
		controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{
			Endpoints: []string{"https://10.0.0.9:2379"}, CAFile: "/etc/etcd/ca.crt", CertFile: "/etc/etcd/client.crt", KeyFile: "/etc/etcd/client.key",
		}
	}
}

func TestOneOfThreeControlPlaneMachinesGetsTheInitialUserData(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	installFoo(t)
	infrastructure := foo(namespace, "FooCluster", "alone", map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(1)}})
	cluster := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: fooRef("FooCluster", "alone")},
	}
	create(t, infrastructure, cluster)
	report(t, infrastructure, map[string]any{"initialization": map[string]any{"provisioned": true}})
	for i := range 3 {
		name := fmt.Sprintf("cp-%d", i)
		machine := newFooMachine(namespace, "alone", name)
		machine.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.ClusterNameLabel: "alone"}
		machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: name}
		create(t, machine, foo(namespace, "FooMachine", name, nil), &bootstrapv1.KubeadmConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       bootstrapv1.KubeadmConfigSpec{PreKubeadmCommands: []string{"true"}},
		})
	}
	startOperator(t, namespace, "core", "kubeadm")

	eventually(t, func() string {
		list := &bootstrapv1.KubeadmConfigList{}
		if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		ready, waiting := 0, 0
		for _, config := range list.Items {
			c := conditions.Get(&config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition)
			switch {
			case ptr.Deref(config.Status.Initialization.DataSecretCreated, false):
				ready++
			case c != nil && strings.Contains(c.Message, "to initialize the control plane"):
				waiting++
			}
		}
		if ready == 1 && waiting == 2 {
			return ""
		}
		return fmt.Sprintf("%d have user data and %d wait; want 1 and 2", ready, waiting)
	})
	lock := get(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone-lock"}})
	holder := strings.TrimSuffix(strings.TrimPrefix(lock.Data["lock-information"], `{"machineName":"`), `"}`)
	if data := wantUserData(t, namespace, holder); !strings.Contains(data, "kubeadm init") {
		t.Errorf("the holder of the lock, %q, does not initialize", holder)
	}
}

func TestAWorkerJoinsWithATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newFooCluster(t, namespace, "join")
	ca, err := pki.NewCA("kubernetes", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	pins, err := pki.CertHashes(ca.Cert)
	if err != nil {
		t.Fatal(err)
	}
	authority := secretNamed(namespace, "join-ca")
	authority.Data = map[string][]byte{"tls.crt": ca.Cert, "tls.key": ca.Key}
	machine := newFooMachine(namespace, "join", "worker")
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: "worker"}
	config := &bootstrapv1.KubeadmConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "worker"},
		Spec: bootstrapv1.KubeadmConfigSpec{Files: []bootstrapv1.File{{
			Path: "/etc/registry", ContentFrom: bootstrapv1.FileSource{Secret: bootstrapv1.SecretFileSource{Name: "registry", Key: "token"}},
		}}},
	}
	create(t, authority, machine, config, foo(namespace, "FooMachine", "worker", nil))
	startOperator(t, namespace, "core", "kubeadm")

	wantCondition(t, config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition, "False", "NotAvailable",
		`spec.files[0] (/etc/registry).contentFrom: Secret "registry" does not exist`, "create it")
	registry := secretNamed(namespace, "registry")
	registry.Data = map[string][]byte{"token": []byte("hunter2")}
	create(t, registry)

	data := wantUserData(t, namespace, "worker")
	token := get(t, config).Spec.JoinConfiguration.Discovery.BootstrapToken.Token
	for _, part := range []string{
		"kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml", "hunter2", token, pins[0],
		fmt.Sprintf("apiServerEndpoint: %q", get(t, cluster).Spec.ControlPlaneEndpoint.String()), "node.cluster.x-k8s.io/uninitialized",
	} {
		if !strings.Contains(data, part) {
			t.Errorf("user data lacks %q", part)
		}
	}
	if strings.Contains(data, string(ca.Key)) {
		t.Error("a worker is given the authority's private key")
	}
	stored := get(t, secretNamed("kube-system", "bootstrap-token-"+strings.Split(token, ".")[0]))
	if stored.Type != corev1.SecretTypeBootstrapToken || len(stored.Data["expiration"]) == 0 {
		t.Errorf("the token in the workload cluster: type %q, keys %d", stored.Type, len(stored.Data))
	}
	if get(t, authority); len(authority.OwnerReferences) != 0 {
		t.Errorf("the user's authority was taken over by %v", authority.OwnerReferences)
	}
}

func TestAMissingTemplateOfAControlPlaneIsNamedAndHeals(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	_, controlPlane := newKubeadmCluster(t, namespace, "bad", 1)
	startOperator(t, namespace, "core", "kubeadm")
	wantCondition(t, controlPlane, controlplanev1.KubeadmControlPlaneScalingUpCondition, "True", "ScalingUp",
		`FooMachineTemplate "bad" does not exist`, "spec.machineTemplate.spec.infrastructureRef")
	if left := machines(t, namespace); len(left) != 0 {
		t.Errorf("%d Machines were made of a template that does not exist", len(left))
	}
	newFooTemplate(t, namespace, "bad")
	wantMachineObjects(t, namespace, 1)
}
