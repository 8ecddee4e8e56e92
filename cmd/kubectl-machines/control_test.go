package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/graph"
	"github.com/millwright-dev/millwright/test/testserver"
)

// patch changes an object as somebody else would: patch [-status] KIND NAME JSON.
func patch(ts *testscript.TestScript, neg bool, args []string) {
	status := len(args) > 0 && args[0] == "-status"
	if status {
		args = args[1:]
	}
	if len(args) != 3 || neg {
		ts.Fatalf("usage: patch [-status] KIND NAME JSON")
	}
	c := ts.Value(clientKey{}).(client.Client)
	gvk, known := targetKinds[strings.ToLower(args[0])]
	if !known {
		gvk = clusterv1.GroupVersion.WithKind(args[0])
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	obj.SetNamespace(ts.Getenv("NAMESPACE"))
	obj.SetName(args[1])
	change := client.RawPatch(types.MergePatchType, []byte(args[2]))
	if status {
		ts.Check(c.Status().Patch(context.Background(), obj, change))
		return
	}
	ts.Check(c.Patch(context.Background(), obj, change))
}

// secret creates a Secret with one key: secret NAME KEY VALUE.
func secret(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 || neg {
		ts.Fatalf("usage: secret NAME KEY VALUE")
	}
	c := ts.Value(clientKey{}).(client.Client)
	ts.Check(c.Create(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ts.Getenv("NAMESPACE"), Name: args[0]},
		Type:       clusterv1.ClusterSecretType,
		StringData: map[string]string{args[1]: args[2] + "\n"},
	}))
}

// workload makes the server of the script the workload cluster of a cluster too: workload CLUSTER.
func workload(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: workload CLUSTER")
	}
	secret(ts, false, []string{args[0] + "-kubeconfig", kubeconfigKey, ts.ReadFile(ts.Getenv("KUBECONFIG"))})
}

// createFile creates the objects of a file, those without a namespace in that of the script: create FILE. An owner without
// a uid is one that is there already.
func createFile(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: create FILE")
	}
	objects, err := testserver.Parse(ts.MkAbs(args[0]))
	ts.Check(err)
	for _, obj := range objects {
		if obj.GetNamespace() == "" && obj.GetKind() != "Node" {
			obj.SetNamespace(ts.Getenv("NAMESPACE"))
		}
		if obj.GetKind() == "Event" && obj.GetNamespace() != metav1.NamespaceDefault {
			ts.Check(unstructured.SetNestedField(obj.Object, obj.GetNamespace(), "involvedObject", "namespace"))
		}
		owners := obj.GetOwnerReferences()
		for i, owner := range owners {
			if owner.UID != "" {
				continue
			}
			live := &unstructured.Unstructured{}
			live.SetAPIVersion(owner.APIVersion)
			live.SetKind(owner.Kind)
			ts.Check(ts.Value(clientKey{}).(client.Client).Get(context.Background(), client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}, live))
			owners[i].UID = live.GetUID()
		}
		obj.SetOwnerReferences(owners)
	}
	ts.Check(testserver.Create(context.Background(), ts.Value(clientKey{}).(client.Client), objects))
}

// control plays the controller of a MachineDeployment in the background, until
// the script ends: control DEPLOYMENT.
func control(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: control DEPLOYMENT")
	}
	c := ts.Value(clientKey{}).(client.WithWatch)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ts.Defer(func() {
		cancel()
		if err := <-ended; err != nil {
			ts.Logf("control %s: %v", args[0], err)
		}
	})
	key := client.ObjectKey{Namespace: ts.Getenv("NAMESPACE"), Name: args[0]}
	go func() { ended <- controlDeployment(ctx, c, key) }()
}

// controlDeployment makes the machines of a deployment as many as it asks for,
// one at a time, running at once.
func controlDeployment(ctx context.Context, c client.WithWatch, key client.ObjectKey) error {
	follower := graph.NewFollower(c)
	inNamespace := []client.ListOption{client.InNamespace(key.Namespace)}
	err := follower.Follow(ctx,
		graph.Source{List: &clusterv1.MachineDeploymentList{}, Options: inNamespace},
		graph.Source{List: &clusterv1.MachineSetList{}, Options: inNamespace},
		graph.Source{List: &clusterv1.MachineList{}, Options: inNamespace},
	)
	for err == nil {
		select {
		case <-ctx.Done():
			return nil
		case <-follower.Changed():
			err = step(ctx, c, key)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func step(ctx context.Context, c client.Client, key client.ObjectKey) error {
	deployment := &clusterv1.MachineDeployment{}
	if err := c.Get(ctx, key, deployment); err != nil {
		return err
	}
	machines := &clusterv1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: key.Name}); err != nil {
		return err
	}
	have, want := len(machines.Items), int(*deployment.Spec.Replicas)
	switch {
	case have < want:
		for i := have; ; i++ {
			if err := addMachine(ctx, c, deployment, fmt.Sprintf("%s-new-%d", key.Name, i)); !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	case have > want:
		goes := have - 1
		for i := range machines.Items {
			if _, marked := machines.Items[i].Annotations[clusterv1.DeleteMachineAnnotation]; marked {
				goes = i
			}
		}
		return client.IgnoreNotFound(c.Delete(ctx, &machines.Items[goes]))
	}
	if deployment.Status.ObservedGeneration == deployment.Generation && *deployment.Status.Replicas == int32(want) {
		return nil
	}
	// Not an update: commands patch the deployment at the same time.
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Status.ObservedGeneration = deployment.Generation
	deployment.Status.Replicas, deployment.Status.ReadyReplicas = ptr.To(int32(want)), ptr.To(int32(want))
	return c.Status().Patch(ctx, deployment, before)
}

func addMachine(ctx context.Context, c client.Client, deployment *clusterv1.MachineDeployment, name string) error {
	sets := &clusterv1.MachineSetList{}
	if err := c.List(ctx, sets, client.InNamespace(deployment.Namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment.Name}); err != nil {
		return err
	}
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: name,
			Labels: map[string]string{
				clusterv1.ClusterNameLabel:           deployment.Spec.ClusterName,
				clusterv1.MachineDeploymentNameLabel: deployment.Name,
			},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&sets.Items[0], kindSet)},
		},
		Spec: deployment.Spec.Template.Spec,
	}
	if err := c.Create(ctx, machine); err != nil {
		return err
	}
	machine.Status.Phase = string(clusterv1.MachinePhaseRunning)
	machine.Status.NodeRef.Name = "node-" + name
	machine.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineNodeReadyCondition, Status: metav1.ConditionTrue, Reason: "NodeReady", LastTransitionTime: metav1.Now(),
	}, {
		Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(),
	}, {
		Type: clusterv1.MachineAvailableCondition, Status: metav1.ConditionTrue, Reason: "Available", LastTransitionTime: metav1.Now(),
	}}
	return c.Status().Update(ctx, machine)
}
