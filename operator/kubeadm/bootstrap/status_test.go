package bootstrap

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func TestWhatIsLeftOutOfUserDataIsToldForAsLongAsItIsThere(t *testing.T) {
	serially := func(s *snapshot) { s.config.Spec.JoinConfiguration.NodeRegistration.ImagePullSerial = ptr.To(false) }
	of := func(version string) func(*snapshot) {
		return func(s *snapshot) { s.machine.Spec.Version = version }
	}
	const lost = "kubeadm v1.30.14 cannot be told, and does without: spec.joinConfiguration.nodeRegistration.imagePullSerial: use Kubernetes v1.31 or later, or remove them"
	for name, tc := range map[string]struct {
		s    snapshot
		want string
	}{
		"an old kubeadm": {worker(withToken, serially, of("v1.30.14")), lost},
		"a new one":      {worker(withToken, serially, of("v1.31.0")), ""},
		"Ignition": {worker(withToken, func(s *snapshot) {
			s.config.Spec.Format, s.config.Spec.BootCommands = bootstrapv1.Ignition, []string{"true"}
		}), "Ignition cannot express, and does without: spec.bootCommands: remove them, or say it in spec.ignition"},
		"what the machine has no need for": {worker(uninitialized, asControlPlane, serially, of("v1.30.14")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			dataAvailable(tc.s, "prod-md-1")
			dataAvailable(tc.s, "prod-md-1")
			if got := conditions.Get(tc.s.config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition); got.Status != "True" || got.Message != tc.want {
				t.Errorf("%s %q, want True %q", got.Status, got.Message, tc.want)
			}
		})
	}
}

func TestTheConfigOfAMachinePoolIsToldWhyItGetsNothing(t *testing.T) {
	config := &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "pool", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachinePool", Name: "pool", UID: "1", Controller: ptr.To(true)},
	}}}
	r := &Reconciler{Client: newClient(t, config)}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)}); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
		t.Fatal(err)
	}
	got := conditions.Get(config, bootstrapv1.KubeadmConfigDataSecretAvailableCondition)
	if got == nil || got.Status != "False" || got.Message != "MachinePool pool owns this config, and machine pools are not supported: use a MachineDeployment" {
		t.Errorf("condition is %v", got)
	}
}
