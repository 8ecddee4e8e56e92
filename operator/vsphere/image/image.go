// Package image tells which templates of virtual machines a vCenter has.
//
// In: a Cluster and a VSphereMachineTemplate. Out: the names of the templates in the datacenter that its machines are
// cloned in. It decides nothing, and knows of Kubernetes versions and upgrades nothing.
package image

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusters,verbs=get;list;watch

// Lister asks vCenter.
type Lister struct {
	Client client.Client
	Live   client.Reader
	// Sessions are those of the machines' controller.
	Sessions *vcenter.Pool
	// Namespace holds the Secrets of cluster-wide identities.
	Namespace string
}

// Names lists the names of the templates in the datacenter of a machine template; nil without an error for a template of
// another provider.
func (l *Lister) Names(ctx context.Context, cluster *clusterv1.Cluster, machineTemplate *unstructured.Unstructured) ([]string, error) {
	if machineTemplate.GetKind() != "VSphereMachineTemplate" || machineTemplate.GroupVersionKind().Group != infrav1.GroupName {
		return nil, nil
	}
	template := &infrav1.VSphereMachineTemplate{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(machineTemplate.Object, template); err != nil {
		return nil, fmt.Errorf("read VSphereMachineTemplate %q: %w", machineTemplate.GetName(), err)
	}
	infra := &infrav1.VSphereCluster{}
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.InfrastructureRef.Name}
	if err := l.Client.Get(ctx, key, infra); err != nil {
		return nil, fmt.Errorf("get VSphereCluster %q of Cluster %q: %w", key, cluster.Name, err)
	}
	resolver := identity.Resolver{Client: l.Client, Live: l.Live, Namespace: l.Namespace}
	endpoint, err := resolver.Endpoint(ctx, infra)
	if err != nil {
		return nil, err
	}
	spec := template.Spec.Template.Spec.VirtualMachineCloneSpec
	if spec.Server != "" && spec.Server != endpoint.Server {
		endpoint.Server, endpoint.Thumbprint = spec.Server, spec.Thumbprint
	}
	session, err := l.Sessions.Session(ctx, identity.Key(infra), endpoint)
	if err != nil {
		return nil, err
	}
	return session.Templates(ctx, spec.Datacenter)
}
