package integration

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// newSet returns a MachineSet of its own as a user writes it.
func newSet(namespace, cluster, name string, replicas int32) *clusterv1.MachineSet {
	return &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: cluster,
			Replicas:    &replicas,
			Template:    newDeployment(namespace, cluster, name, nil).Spec.Template,
		},
	}
}

func TestASetOfItsOwnAdoptsTheMachineThatItsSelectorMatches(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newCluster(t, namespace, "prod")
	set := newSet(namespace, "prod", "pool", 2)
	set.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
	set.Spec.Template.Labels = map[string]string{"pool": "a"}
	orphan := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "orphan", Labels: map[string]string{"pool": "a", clusterv1.ClusterNameLabel: "prod"}},
		Spec:       *set.Spec.Template.Spec.DeepCopy(),
	}
	create(t, orphan, set)
	startOperator(t, namespace, "core")

	eventually(t, func() string {
		have := machines(t, namespace)
		for _, machine := range have {
			if !metav1.IsControlledBy(&machine, set) {
				return machine.Name + " is not controlled by the set"
			}
		}
		if len(have) != 2 {
			return fmt.Sprintf("%d Machines, want the orphan and one more", len(have))
		}
		return ""
	})
	if !isOwnedBy(get(t, set), cluster) {
		t.Errorf("the Cluster does not own the set: %+v", set.OwnerReferences)
	}
}

func TestASetWhoseSelectorMissesItsOwnTemplateMakesNoMachine(t *testing.T) {
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	set := newSet(namespace, "prod", "pool", 2)
	set.Spec.Selector.MatchLabels = map[string]string{"pool": "a"}
	create(t, set)
	startOperator(t, namespace, "core")

	eventually(t, func() string {
		condition := conditions.Get(get(t, set), clusterv1.MachineSetScalingUpCondition)
		if condition == nil || !strings.Contains(condition.Message, "spec.selector does not match spec.template.metadata.labels") {
			return fmt.Sprintf("ScalingUp is %+v", condition)
		}
		return ""
	})
	if have := machines(t, namespace); len(have) > 0 {
		t.Errorf("%d Machines that the set would never count", len(have))
	}
}

func TestASetBeingDeletedWaitsForItsLastMachineAndNamesIt(t *testing.T) {
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	set := newSet(namespace, "prod", "pool", 1)
	create(t, set)
	startOperator(t, namespace, "core")
	wantMachines(t, namespace, 1)

	held := machines(t, namespace)[0]
	hold := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":["machine.cluster.x-k8s.io","test/hold"]}}`))
	if err := admin.Patch(t.Context(), &held, hold); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		condition := conditions.Get(get(t, set), clusterv1.MachineSetDeletingCondition)
		if condition == nil || !strings.Contains(condition.Message, held.Name) {
			return fmt.Sprintf("Deleting is %+v, want %s named", condition, held.Name)
		}
		if get(t, &held).DeletionTimestamp.IsZero() {
			return "the Machine is not being deleted"
		}
		return ""
	})

	eventually(t, func() string {
		release := client.RawPatch("application/json-patch+json", []byte(`[{"op":"test","path":"/metadata/finalizers","value":["test/hold"]},{"op":"remove","path":"/metadata/finalizers"}]`))
		if err := admin.Patch(t.Context(), held.DeepCopy(), release); err != nil {
			return err.Error()
		}
		return ""
	})
	eventually(t, func() string {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(set), set); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the set is still there: %v", err)
		}
		return ""
	})
}

func TestReplicasStayInsideTheAutoscalersBounds(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", nil)
	deployment.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "2", clusterv1.AutoscalerMaxSizeAnnotation: "four"}
	create(t, deployment)
	startOperator(t, namespace, "core")
	eventually(t, func() string {
		condition := conditions.Get(get(t, deployment), clusterv1.MachineDeploymentScalingUpCondition)
		if condition == nil || !strings.Contains(condition.Message, `is "four", not a number of machines`) {
			return fmt.Sprintf("ScalingUp is %+v", condition)
		}
		return ""
	})

	mend := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"4"}}}`, clusterv1.AutoscalerMaxSizeAnnotation))
	if err := admin.Patch(t.Context(), deployment, mend); err != nil {
		t.Fatal(err)
	}
	wantMachines(t, namespace, 2)
	if got := ptr.Deref(get(t, deployment).Spec.Replicas, -1); got != 2 {
		t.Errorf("spec.replicas is %d, want the minimum", got)
	}
}

func TestAMachineWhoseMakingWasCutShortIsCompleted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	create(t, newSet(namespace, "prod", "pool", 2))
	stop := startOperator(t, namespace, "core")
	wantMachines(t, namespace, 2)
	objects := func() string {
		for _, machine := range machines(t, namespace) {
			for kind, obj := range map[string]client.Object{
				"KubeadmConfig":  &bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machine.Name}},
				"VSphereMachine": &infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: machine.Name}},
			} {
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
					return err.Error()
				}
				if owner := metav1.GetControllerOf(obj); len(obj.GetOwnerReferences()) != 1 || owner == nil || owner.UID != machine.UID {
					return fmt.Sprintf("%s %s is owned by %v", kind, machine.Name, obj.GetOwnerReferences())
				}
			}
		}
		return ""
	}
	eventually(t, objects)

	// The API server holds what an operator leaves that dies between a Machine and its objects.
	stop()
	before := machines(t, namespace)
	for _, obj := range []client.Object{
		&bootstrapv1.KubeadmConfig{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: before[0].Name}},
		&infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: before[0].Name}},
		&infrav1.VSphereMachine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: before[1].Name}},
	} {
		if err := admin.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	startOperator(t, namespace, "core")
	eventually(t, objects)
	for _, machine := range before {
		if after := get(t, &clusterv1.Machine{ObjectMeta: machine.ObjectMeta}); after.UID != machine.UID {
			t.Errorf("Machine %s was made anew", machine.Name)
		}
	}
	if have := machines(t, namespace); len(have) != 2 {
		t.Errorf("%d Machines, want the 2 that were there", len(have))
	}
}
