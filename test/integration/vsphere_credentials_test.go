package integration

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestAWrongPasswordIsToldAndANewSecretHeals(t *testing.T) {
	bed := newVSphereBed(t, func(b *vsphereBed) { b.secret.StringData["password"] = "wrong" })
	told := wantState(t, bed.infra, infrav1.VCenterAvailableCondition, metav1.ConditionFalse, infrav1.LoginFailedReason)
	if !strings.Contains(told.Message, vcentertest.Username) {
		t.Errorf("message is %q; want the user name in it", told.Message)
	}
	if bed.infra.Status.Initialization.Provisioned != nil {
		t.Error("provisioned without a login")
	}
	update(t, bed.secret, func() { bed.secret.StringData = map[string]string{"password": vcentertest.Password} })
	wantState(t, bed.infra, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
}

func TestAClusterWithoutEndpointOrCredentialsSaysWhatToDo(t *testing.T) {
	bed := newVSphereBed(t, func(b *vsphereBed) {
		b.infra.Spec.ControlPlaneEndpoint, b.infra.Spec.IdentityRef.Name = infrav1.APIEndpoint{}, "missing"
	})
	wantState(t, bed.infra, infrav1.ControlPlaneEndpointSetCondition, metav1.ConditionFalse, "NotSet")
	told := wantState(t, bed.infra, infrav1.VCenterAvailableCondition, metav1.ConditionFalse, infrav1.CredentialsNotAvailableReason)
	if !strings.Contains(told.Message, "missing") || !strings.Contains(told.Message, "create it") {
		t.Errorf("message is %q; want the Secret's name and the next step", told.Message)
	}
}

func TestASharedIdentityServesTheNamespacesItAllows(t *testing.T) {
	identity := &infrav1.VSphereClusterIdentity{ObjectMeta: metav1.ObjectMeta{GenerateName: "shared-"}}
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "millwright-system", GenerateName: "shared-"},
		StringData: map[string]string{"username": vcentertest.Username, "password": vcentertest.Password},
	}
	create(t, credentials)
	identity.Spec.SecretName = credentials.Name
	identity.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"fleet": credentials.Name}}}
	create(t, identity)
	bed := newVSphereBed(t, func(b *vsphereBed) {
		b.infra.Spec.IdentityRef = infrav1.VSphereIdentityReference{Kind: infrav1.VSphereClusterIdentityKind, Name: identity.Name}
	})
	told := wantState(t, bed.infra, infrav1.VCenterAvailableCondition, metav1.ConditionFalse, infrav1.CredentialsNotAvailableReason)
	if !strings.Contains(told.Message, "does not allow namespace") {
		t.Errorf("message is %q", told.Message)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: bed.namespace}}
	update(t, namespace, func() { namespace.Labels = map[string]string{"fleet": credentials.Name} })
	wantState(t, bed.infra, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
}

func TestAPasswordRotatedDuringAScaleUpFailsNoMachine(t *testing.T) {
	bed := newVSphereBed(t)
	bed.provisioned(t)
	var machines []*infrav1.VSphereMachine
	for i := range 10 {
		machines = append(machines, bed.machine(t, fmt.Sprintf("prod-%d", i)))
		if i == 4 {
			bed.vcenter.SetPassword("rotated")
			bed.vcenter.EndSessions(t)
			update(t, bed.secret, func() { bed.secret.StringData = map[string]string{"password": "rotated"} })
		}
	}
	for _, machine := range machines {
		wantState(t, machine, clusterv1.ReadyCondition, metav1.ConditionTrue, clusterv1.ReadyReason)
	}
	eventually(t, func() string {
		if n := bed.vcenter.Logins(t); n != 1 {
			return fmt.Sprintf("%d sessions in vCenter; want one for all machines", n)
		}
		return ""
	})
}
