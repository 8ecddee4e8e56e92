package contract

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of a CRD that name its versions of a contract, joined by "_", the preferred one last.
const (
	labelV1Beta2 = "cluster.x-k8s.io/v1beta2"
	labelV1Beta1 = "cluster.x-k8s.io/v1beta1"
)

// cacheFillTimeout bounds the first list of a kind; after a failure nobody waits for it during cacheFillPause.
const (
	cacheFillTimeout = 10 * time.Second
	cacheFillPause   = 20 * time.Second
)

// crdGVK is the kind whose metadata the resolver reads.
var crdGVK = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Resolver finds the objects behind references without a version. Its client reads CRDs as metadata only, through the
// cache, so that a lookup costs no request.
type Resolver struct {
	Client client.Client

	// unfilled remembers when a kind was last waited for in vain: one wait in a while is enough, or objects of a kind
	// that may not be read would keep all workers of a controller waiting.
	unfilled sync.Map // schema.GroupVersionKind → time.Time
}

// GVK returns the kind in the version of the contract that its CRD is labelled with. The error is NotFound
// (apierrors.IsNotFound) while the CRD does not exist.
func (r *Resolver) GVK(ctx context.Context, gk schema.GroupKind) (schema.GroupVersionKind, error) {
	name := CRDName(gk)
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdGVK)
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("find the CRD of %s: %w: install the provider that serves this kind", gk, err)
	}
	version, ok := contractVersion(crd.Labels)
	if !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("CRD %q has no label %s: the provider of %s must support the Cluster API contract v1beta2",
			name, labelV1Beta2, gk)
	}
	// A CRD is there before it is served. Who asks the cache for such a kind waits ten seconds for its next try.
	if _, err := r.Client.RESTMapper().RESTMapping(gk, version); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("CRD %q is not served yet: %w", name, err)
	}
	return gk.WithVersion(version), nil
}

// Get returns the object that ref points to in namespace. The error is NotFound (apierrors.IsNotFound) when either the
// object or the CRD of its kind does not exist.
func (r *Resolver) Get(ctx context.Context, namespace string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	gvk, err := r.GVK(ctx, ref.GroupKind())
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	if since, ok := r.unfilled.Load(gvk); ok && time.Since(since.(time.Time)) < cacheFillPause {
		return nil, errCacheFill(ref)
	}
	// The first Get of a kind waits until the cache holds it. Without the right to list it that is for ever.
	bounded, cancel := context.WithTimeout(ctx, cacheFillTimeout)
	defer cancel()
	if err := r.Client.Get(bounded, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj); err != nil {
		if bounded.Err() != nil && ctx.Err() == nil {
			r.unfilled.Store(gvk, time.Now())
			return nil, errCacheFill(ref)
		}
		return nil, fmt.Errorf("get %s %q: %w", ref.Kind, namespace+"/"+ref.Name, err)
	}
	return obj, nil
}

// errCacheFill says why the objects of a kind do not come.
func errCacheFill(ref clusterv1.ContractVersionedObjectReference) error {
	return fmt.Errorf("%s cannot be listed: its provider must grant the operator get, list and watch of API group %s "+
		"in a ClusterRole with the label cluster.x-k8s.io/aggregate-to-manager: \"true\"", ref.Kind, ref.APIGroup)
}

// CRDMetadata returns an empty object to watch CRDs with: a kind that a reference names may be installed later.
func CRDMetadata() *metav1.PartialObjectMetadata {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(crdGVK)
	return crd
}

// CRDName returns the name of the CRD of a kind. It follows the rule of kubebuilder and of upstream: lower-case plural, dot, group.
func CRDName(gk schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return plural.Resource + "." + gk.Group
}

func contractVersion(labels map[string]string) (string, bool) {
	for _, label := range []string{labelV1Beta2, labelV1Beta1} {
		if versions := labels[label]; versions != "" {
			return versions[strings.LastIndex(versions, "_")+1:], true
		}
	}
	return "", false
}
