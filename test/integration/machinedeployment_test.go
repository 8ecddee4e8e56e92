package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
)

func TestADeploymentGetsDefaultsAndItsMachines(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", nil)
	create(t, deployment)
	startOperator(t, namespace, "core")
	wantMachines(t, namespace, 1)

	get(t, deployment)
	if *deployment.Spec.Replicas != 1 || deployment.Spec.Template.Spec.Version != "v1.37.2" ||
		deployment.Spec.Rollout.Strategy.Type != clusterv1.RollingUpdateMachineDeploymentStrategyType {
		t.Errorf("defaults were not stored: %+v", deployment.Spec)
	}
	if !isOwnedBy(deployment, cluster) {
		t.Errorf("the Cluster does not own the deployment: %+v", deployment.OwnerReferences)
	}

	machine := machines(t, namespace)[0]
	wantLabels := map[string]string{
		clusterv1.ClusterNameLabel:             "prod",
		clusterv1.MachineDeploymentNameLabel:   "workers",
		clusterv1.MachineSetNameLabel:          metav1.GetControllerOf(&machine).Name,
		clusterv1.MachineDeploymentUniqueLabel: strings.TrimPrefix(metav1.GetControllerOf(&machine).Name, "workers-"),
	}
	if diff := cmp.Diff(wantLabels, machine.Labels); diff != "" {
		t.Errorf("labels of the Machine (-want +got):\n%s", diff)
	}
	if machine.Spec.InfrastructureRef.Name != machine.Name || machine.Spec.InfrastructureRef.Kind != "VSphereMachine" ||
		machine.Spec.Bootstrap.ConfigRef.Name != machine.Name || machine.Spec.Bootstrap.ConfigRef.Kind != "KubeadmConfig" {
		t.Errorf("the Machine does not refer to its own objects: %+v", machine.Spec)
	}

	for _, template := range []client.Object{newBootstrapTemplate(namespace, "prod"), newMachineTemplate(namespace, "prod")} {
		if !isOwnedBy(get(t, template), cluster) {
			t.Errorf("the Cluster does not own %T: %+v", template, template.GetOwnerReferences())
		}
	}
	eventually(t, func() string {
		get(t, deployment)
		switch {
		case deployment.Status.ObservedGeneration != deployment.Generation:
			return "status is of another generation"
		case !conditions.IsTrue(deployment, clusterv1.MachineDeploymentMachinesUpToDateCondition):
			return fmt.Sprintf("MachinesUpToDate is %+v", conditions.Get(deployment, clusterv1.MachineDeploymentMachinesUpToDateCondition))
		case !conditions.IsFalse(deployment, clusterv1.MachineDeploymentAvailableCondition):
			return "a deployment whose Machine has no Node says that it is available"
		case deployment.Status.Phase != string(clusterv1.MachineDeploymentPhaseScalingUp):
			return "phase is " + deployment.Status.Phase
		}
		return ""
	})
}

func isOwnedBy(obj, owner client.Object) bool {
	for _, reference := range obj.GetOwnerReferences() {
		if reference.UID == owner.GetUID() {
			return true
		}
	}
	return false
}

func TestAnOperatorThatDiesDuringAScaleUpNeverMakesAMachineTooMany(t *testing.T) {
	t.Parallel()
	const want, deaths = 20, 10
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](0))
	create(t, deployment)

	made := watchMachines(t, namespace)
	stop := startOperator(t, namespace, "core")
	scale(t, deployment, want)
	for range deaths {
		// The operator dies somewhere in the work that follows the Machines seen: its requests under way fail.
		made.waitFor(t, min(made.len()+1+rand.IntN(want/deaths), want))
		stop()
		stop = startOperator(t, namespace, "core")
	}
	wantMachines(t, namespace, want)
	eventually(t, func() string {
		if get(t, deployment); ptr.Deref(deployment.Status.Replicas, 0) != want || !conditions.IsFalse(deployment, clusterv1.MachineDeploymentScalingUpCondition) {
			return fmt.Sprintf("status is %+v", deployment.Status)
		}
		return ""
	})
	made.waitFor(t, want)
	if got := made.len(); got != want {
		t.Errorf("%d Machines were made, want %d and no more", got, want)
	}
}

// seen counts the Machines that ever were in a namespace.
type seen struct {
	mu   sync.Mutex
	uids sets.Set[types.UID]
}

func watchMachines(t *testing.T, namespace string) *seen {
	t.Helper()
	events, err := admin.Watch(t.Context(), &clusterv1.MachineList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	s := &seen{uids: sets.New[types.UID]()}
	go func() {
		for event := range events.ResultChan() {
			if machine, ok := event.Object.(*clusterv1.Machine); ok {
				s.mu.Lock()
				s.uids.Insert(machine.UID)
				s.mu.Unlock()
			}
		}
	}()
	return s
}

func (s *seen) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uids.Len()
}

func (s *seen) waitFor(t *testing.T, count int) {
	t.Helper()
	eventually(t, func() string {
		if have := s.len(); have < count {
			return fmt.Sprintf("%d Machines were made, want %d", have, count)
		}
		return ""
	})
}

func TestScalingDownTakesTheMarkedMachineAndDeletingTheDeploymentAll(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](5))
	create(t, deployment)
	startOperator(t, namespace, "core")
	wantMachines(t, namespace, 5)

	marked := machines(t, namespace)[3]
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"cluster.x-k8s.io/delete-machine":""}}}`))
	if err := admin.Patch(t.Context(), &marked, patch); err != nil {
		t.Fatal(err)
	}
	scale(t, deployment, 4)
	wantMachines(t, namespace, 4)
	for _, machine := range machines(t, namespace) {
		if machine.UID == marked.UID {
			t.Errorf("%s was to be deleted first", marked.Name)
		}
	}

	scale(t, deployment, 0)
	wantMachines(t, namespace, 0)
	scale(t, deployment, 3)
	wantMachines(t, namespace, 3)

	if err := admin.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the deployment is there: %v", err)
		}
		return ""
	})
	wantMachines(t, namespace, 0)
	list := &clusterv1.MachineSetList{}
	if err := admin.List(t.Context(), list, client.InNamespace(namespace)); err != nil || len(list.Items) > 0 {
		t.Errorf("%d MachineSets outlived their deployment (%v)", len(list.Items), err)
	}
}

func TestAMissingTemplateIsNamedAndHealsWithoutARestart(t *testing.T) {
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](2))
	deployment.Spec.Template.Spec.InfrastructureRef.Name = "large"
	create(t, deployment)
	startOperator(t, namespace, "core")

	want := fmt.Sprintf("Scaling up from 0 to 2 replicas is blocked:\n* VSphereMachineTemplate %q does not exist in namespace %q: create it, "+
		"or mend spec.template.spec.infrastructureRef", "large", namespace)
	eventually(t, func() string {
		condition := conditions.Get(get(t, deployment), clusterv1.MachineDeploymentScalingUpCondition)
		if condition == nil || condition.Message != want {
			return fmt.Sprintf("ScalingUp is %+v, want message %q", condition, want)
		}
		return ""
	})
	if have := machines(t, namespace); len(have) > 0 {
		t.Errorf("%d Machines were made without a template", len(have))
	}

	create(t, newMachineTemplate(namespace, "large"))
	wantMachines(t, namespace, 2)
}

func TestAPausedClusterIsLeftAlone(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newCluster(t, namespace, "prod")
	cluster.Spec.Paused = ptr.To(true)
	if err := admin.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](2))
	create(t, deployment)
	startOperator(t, namespace, "core")
	eventually(t, func() string {
		if !conditions.IsTrue(get(t, deployment), clusterv1.PausedCondition) {
			return "the deployment does not say that it is paused"
		}
		return ""
	})
	if len(deployment.Finalizers) > 0 {
		t.Error("a paused deployment was changed")
	}

	get(t, cluster).Spec.Paused = nil
	if err := admin.Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	wantMachines(t, namespace, 2)
}

func TestAChangedTemplateIsTold(t *testing.T) {
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](2))
	create(t, deployment)
	startOperator(t, namespace, "core")
	wantMachines(t, namespace, 2)

	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"version":"v1.37.3"}}}}`))
	if err := admin.Patch(t.Context(), deployment, patch); err != nil {
		t.Fatal(err)
	}
	want := "2 replicas are not up to date\n* Version v1.37.2, v1.37.3 required"
	eventually(t, func() string {
		condition := conditions.Get(get(t, deployment), clusterv1.MachineDeploymentRollingOutCondition)
		if condition == nil || condition.Message != want {
			return fmt.Sprintf("RollingOut is %+v, want message %q", condition, want)
		}
		return ""
	})
	eventually(t, func() string {
		if !conditions.IsFalse(get(t, deployment), clusterv1.MachineDeploymentMachinesUpToDateCondition) {
			return "MachinesUpToDate is not False"
		}
		return ""
	})
}

func TestAKindThatNobodyServesIsNamed(t *testing.T) {
	namespace := newNamespace(t)
	newCluster(t, namespace, "prod")
	deployment := newDeployment(namespace, "prod", "workers", ptr.To[int32](2))
	deployment.Spec.Template.Spec.InfrastructureRef.APIGroup = "infrastructure.nobody.test"
	create(t, deployment)
	startOperator(t, namespace, "core")

	const want = "VSphereMachineTemplate.infrastructure.nobody.test is not known to the API server: install its provider"
	eventually(t, func() string {
		condition := conditions.Get(get(t, deployment), clusterv1.MachineDeploymentScalingUpCondition)
		if condition == nil || !strings.Contains(condition.Message, want) {
			return fmt.Sprintf("ScalingUp is %+v, want %q in its message", condition, want)
		}
		return ""
	})
}
