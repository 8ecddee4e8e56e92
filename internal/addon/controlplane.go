package addon

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
)

// skipAnnotations keep the controller of a KubeadmControlPlane away from the
// add-ons that it would otherwise bring to its own version.
var skipAnnotations = map[string]string{
	"coredns":    controlplanev1.SkipCoreDNSAnnotation,
	"kube-proxy": controlplanev1.SkipKubeProxyAnnotation,
}

// TakeFromControlPlane tells the cluster's control plane not to look after an
// add-on of this name, and whether that was news. An add-on or a kind of control
// plane that knows no such thing is left alone. Call it before the add-on is applied.
func TakeFromControlPlane(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, name string) (bool, error) {
	return annotate(ctx, c, cluster, name, func(_ string, set bool) *string {
		if set {
			return nil
		}
		return ptr.To(`"` + apply.FieldManager + `"`)
	})
}

// GiveBackToControlPlane takes back what TakeFromControlPlane said, unless
// somebody else said it too. Call it after the add-on is uninstalled.
func GiveBackToControlPlane(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, name string) (bool, error) {
	return annotate(ctx, c, cluster, name, func(value string, _ bool) *string {
		if value != apply.FieldManager {
			return nil
		}
		return ptr.To("null")
	})
}

// annotate patches the annotation of an add-on to the JSON that change makes of its value; nil leaves it.
func annotate(ctx context.Context, c client.Client, cluster *clusterv1.Cluster, name string, change func(value string, set bool) *string) (bool, error) {
	annotation, ref := skipAnnotations[name], cluster.Spec.ControlPlaneRef
	if annotation == "" || ref.GroupKind() != controlPlaneKind {
		return false, nil
	}
	mapping, err := c.RESTMapper().RESTMapping(ref.GroupKind())
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find kind %s: %w", ref.Kind, err)
	}
	controlPlane := &metav1.PartialObjectMetadata{}
	controlPlane.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, controlPlane); err != nil {
		// A control plane that is gone, or comes later with its own annotations, installs nothing now.
		return false, client.IgnoreNotFound(err)
	}
	value, set := controlPlane.GetAnnotations()[annotation]
	wanted := change(value, set)
	if wanted == nil {
		return false, nil
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, *wanted)
	if err := c.Patch(ctx, controlPlane, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(apply.FieldManager)); err != nil {
		return false, fmt.Errorf("annotate %s %q with %s: %w", ref.Kind, ref.Name, annotation, err)
	}
	return true, nil
}

var controlPlaneKind = schema.GroupKind{Group: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane"}
