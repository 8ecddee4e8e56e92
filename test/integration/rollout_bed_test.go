package integration

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// startProvider plays the provider of all FooMachines of a namespace until the test ends: each is provisioned at once,
// and its Node registers.
func startProvider(t *testing.T, namespace string) {
	t.Helper()
	vms := &unstructured.UnstructuredList{}
	vms.SetGroupVersionKind(foo(namespace, "FooMachineList", "", nil).GroupVersionKind())
	follow(t, namespace, vms, func(event watch.Event) {
		vm, ok := event.Object.(*unstructured.Unstructured)
		if event.Type != watch.Added || !ok {
			return
		}
		if err := provision(vm); err != nil {
			t.Errorf("provision %s: %v", vm.GetName(), err)
		}
	})
}

func provision(vm *unstructured.Unstructured) error {
	ctx := context.Background()
	id := "foo://" + vm.GetNamespace() + "/" + vm.GetName()
	node := newNode(vm.GetName()+"-"+vm.GetNamespace(), "")
	node.Spec.ProviderID = id
	status := node.Status
	if err := admin.Create(ctx, node); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	node.Status = status
	steps := []error{
		admin.Status().Update(ctx, node),
		admin.Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"providerID":%q}}`, id))),
		admin.Status().Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"initialization":{"provisioned":true}}}`))),
	}
	for _, err := range steps {
		// It may be on its way out already.
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// follow calls f with every event of the objects of a list's kind, one after another, until the test ends.
func follow(t *testing.T, namespace string, list client.ObjectList, f func(watch.Event)) {
	t.Helper()
	events, err := admin.Watch(context.Background(), list, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for event := range events.ResultChan() {
			f(event)
		}
	})
	t.Cleanup(func() {
		events.Stop()
		work.Wait()
	})
}

// crowd watches the Machines of a namespace from outside, as the API server tells of them, one change after another.
type crowd struct {
	mu       sync.Mutex
	machines map[types.UID]*clusterv1.Machine
	changes  int
	// fewest available and most in all there ever were.
	fewest, most int
}

func watchCrowd(t *testing.T, namespace string) *crowd {
	t.Helper()
	c := &crowd{machines: map[types.UID]*clusterv1.Machine{}}
	follow(t, namespace, &clusterv1.MachineList{}, func(event watch.Event) {
		machine, ok := event.Object.(*clusterv1.Machine)
		if !ok {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.machines[machine.UID] = machine
		if event.Type == watch.Deleted {
			delete(c.machines, machine.UID)
		}
		c.changes++
		c.fewest, c.most = min(c.fewest, c.available()), max(c.most, len(c.machines))
	})
	return c
}

func (c *crowd) available() int {
	n := 0
	for _, machine := range c.machines {
		if lifecycle.Available(machine) {
			n++
		}
	}
	return n
}

// gauge waits until so many Machines are available, and keeps the extremes from then on.
func (c *crowd) gauge(t *testing.T, available int) {
	t.Helper()
	eventually(t, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if have := c.available(); have != available || len(c.machines) != available {
			return fmt.Sprintf("%d of %d Machines are available, want %d", have, len(c.machines), available)
		}
		c.fewest, c.most = available, available
		return ""
	})
}

func (c *crowd) want(t *testing.T, fewest, most int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fewest < fewest || c.most > most {
		t.Errorf("between %d available and %d in all, want no fewer than %d and no more than %d", c.fewest, c.most, fewest, most)
	}
}

func (c *crowd) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// rollingDeployment returns a deployment of provided Machines that surges by 3, in a cluster of its own.
func rollingDeployment(t *testing.T, replicas int32) *clusterv1.MachineDeployment {
	t.Helper()
	namespace := newNamespace(t)
	newFooCluster(t, namespace, "prod")
	deployment := newFooDeployment(t, namespace, "prod", replicas)
	deployment.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
		Type: clusterv1.RollingUpdateMachineDeploymentStrategyType,
		RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{
			MaxSurge: ptr.To(intstr.FromInt32(3)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
		},
	}
	create(t, deployment)
	startProvider(t, namespace)
	return deployment
}

// change writes a deployment; the function may be called more than once.
func change(t *testing.T, deployment *clusterv1.MachineDeployment, f func(*clusterv1.MachineDeployment)) {
	t.Helper()
	before := get(t, deployment).DeepCopy()
	f(deployment)
	if err := admin.Patch(t.Context(), deployment, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func setVersion(version string) func(*clusterv1.MachineDeployment) {
	return func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = version }
}

// rolledOut tells whether all Machines come from the deployment's template and are available; "" if so.
func rolledOut(t *testing.T, deployment *clusterv1.MachineDeployment) string {
	t.Helper()
	status, want := get(t, deployment).Status, *deployment.Spec.Replicas
	if status.ObservedGeneration != deployment.Generation || ptr.Deref(status.Replicas, 0) != want || ptr.Deref(status.AvailableReplicas, 0) != want ||
		ptr.Deref(status.UpToDateReplicas, 0) != want || !conditions.IsFalse(deployment, clusterv1.MachineDeploymentRollingOutCondition) ||
		!conditions.IsTrue(deployment, clusterv1.MachineDeploymentAvailableCondition) {
		return fmt.Sprintf("%d replicas, %d available, %d up to date, %d wanted: %+v", ptr.Deref(status.Replicas, -1),
			ptr.Deref(status.AvailableReplicas, -1), ptr.Deref(status.UpToDateReplicas, -1), want, status.Conditions)
	}
	return ""
}

func wantRolledOut(t *testing.T, deployment *clusterv1.MachineDeployment) {
	t.Helper()
	eventually(t, func() string { return rolledOut(t, deployment) })
}

// wantSets waits for the sets of a deployment: "revision:replicas" of each, oldest first.
func wantSets(t *testing.T, deployment *clusterv1.MachineDeployment, want string) []clusterv1.MachineSet {
	t.Helper()
	list := &clusterv1.MachineSetList{}
	eventually(t, func() string {
		if err := admin.List(t.Context(), list, client.InNamespace(deployment.Namespace)); err != nil {
			t.Fatal(err)
		}
		var have []string
		for revision := int64(1); revision < 20; revision++ {
			for _, set := range list.Items {
				if lifecycle.Revision(&set) == revision {
					have = append(have, fmt.Sprintf("%d:%d", revision, *set.Spec.Replicas))
				}
			}
		}
		if got := strings.Join(have, " "); got != want {
			return fmt.Sprintf("sets are %q, want %q", got, want)
		}
		return ""
	})
	return list.Items
}
