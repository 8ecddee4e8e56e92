package main

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cli"
)

// target is what is to be scaled: KIND/NAME on the command line.
type target struct {
	kind schema.GroupVersionKind
	name string
}

var (
	kindDeployment   = clusterv1.GroupVersion.WithKind("MachineDeployment")
	kindSet          = clusterv1.GroupVersion.WithKind("MachineSet")
	kindControlPlane = controlplanev1.GroupVersion.WithKind("KubeadmControlPlane")
)

// targetKinds are the words for kinds that can be scaled: singular, plural and
// the short name of the resource.
var targetKinds = map[string]schema.GroupVersionKind{
	"machinedeployment": kindDeployment, "machinedeployments": kindDeployment, "md": kindDeployment,
	"machineset": kindSet, "machinesets": kindSet, "ms": kindSet,
	"kubeadmcontrolplane": kindControlPlane, "kubeadmcontrolplanes": kindControlPlane, "kcp": kindControlPlane,
}

// parseTarget reads NAME, which is a MachineDeployment, or KIND/NAME, where KIND
// may carry its group behind a dot.
func parseTarget(arg string) (target, error) {
	kind, name, found := strings.Cut(arg, "/")
	if !found {
		kind, name = "machinedeployment", arg
	}
	word, _, _ := strings.Cut(strings.ToLower(kind), ".")
	gvk, known := targetKinds[word]
	switch {
	case !known:
		return target{}, cli.UsageErrorf("%q cannot be scaled: give the name of a MachineDeployment, kubeadmcontrolplane/NAME or machineset/NAME", arg)
	case name == "" || strings.Contains(name, "/"):
		return target{}, cli.UsageErrorf("%q has no name: give %s/NAME", arg, word)
	}
	return target{kind: gvk, name: name}, nil
}

// String is how messages call the target.
func (t target) String() string { return t.kind.Kind + " " + t.name }

// resource is how kubectl prints the target: machinedeployment.cluster.x-k8s.io/prod.
func (t target) resource() string {
	return strings.ToLower(t.kind.Kind) + "." + t.kind.Group + "/" + t.name
}

func (t target) newObject() client.Object {
	switch t.kind {
	case kindControlPlane:
		return &controlplanev1.KubeadmControlPlane{}
	case kindSet:
		return &clusterv1.MachineSet{}
	default:
		return &clusterv1.MachineDeployment{}
	}
}

func (t target) newList() client.ObjectList {
	switch t.kind {
	case kindControlPlane:
		return &controlplanev1.KubeadmControlPlaneList{}
	case kindSet:
		return &clusterv1.MachineSetList{}
	default:
		return &clusterv1.MachineDeploymentList{}
	}
}

// readTarget reads what the user named. When there is none of that name, the error names some that there are.
func readTarget(ctx context.Context, o *cli.Options, c client.Client, t target, namespace string) (client.Object, error) {
	obj := t.newObject()
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: t.name}, obj)
	if !apierrors.IsNotFound(err) {
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t, err)
		}
		return obj, nil
	}
	next := "see what there is: " + o.Typed() + " get"
	if names := listNames(ctx, c, t.newList(), namespace); len(names) > 0 {
		next = "there is " + strings.Join(names, ", ")
	}
	// People give the name of the cluster.
	cluster := &clusterv1.Cluster{}
	if c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: t.name}, cluster) == nil {
		next = fmt.Sprintf("%s is a cluster, whose machines belong to its deployments: %s", t.name, next)
	}
	return nil, fmt.Errorf("%s not found in namespace %s: %s", t, namespace, next)
}

// clusterOf is the name of the cluster of what is to be scaled. A control plane
// has it in a label, or in its owner before it has the label.
func clusterOf(obj client.Object) string {
	switch obj := obj.(type) {
	case *clusterv1.MachineDeployment:
		return obj.Spec.ClusterName
	case *clusterv1.MachineSet:
		return obj.Spec.ClusterName
	}
	if name := obj.GetLabels()[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind == "Cluster" {
			return ref.Name
		}
	}
	return ""
}

// desired is the number of replicas that the target is asked to have now.
func desired(obj client.Object) int32 {
	var replicas *int32
	switch obj := obj.(type) {
	case *clusterv1.MachineDeployment:
		replicas = obj.Spec.Replicas
	case *clusterv1.MachineSet:
		replicas = obj.Spec.Replicas
	case *controlplanev1.KubeadmControlPlane:
		replicas = obj.Spec.Replicas
	}
	// The API server does not default it; the controllers take 1.
	if replicas == nil {
		return 1
	}
	return *replicas
}
