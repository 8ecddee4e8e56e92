package management

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns what the sandbox applies.
const fieldManager = "millwright-sandbox"

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Install applies the manifests by server-side apply and returns once their
// CRDs are served.
func Install(ctx context.Context, config *rest.Config, m Manifests) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	for _, obj := range m.First {
		if err := apply(ctx, client, mapper, obj); err != nil {
			return err
		}
	}
	for _, obj := range m.First {
		if obj.GetKind() == "CustomResourceDefinition" {
			if err := established(ctx, client, obj.GetName()); err != nil {
				return err
			}
		}
	}
	for _, obj := range m.Then {
		if err := apply(ctx, client, mapper, obj); err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, obj.GetName(), err)
	}
	resource := dynamic.ResourceInterface(client.Resource(mapping.Resource))
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = client.Resource(mapping.Resource).Namespace(obj.GetNamespace())
	}
	_, err = resource.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %q: %w", gvk.Kind, obj.GetName(), err)
	}
	return nil
}

// established waits until a CRD is served.
func established(ctx context.Context, client dynamic.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		crd, err := client.Resource(crds).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return isEstablished(crd), nil
	})
	if err != nil {
		return fmt.Errorf("CRD %q is not served: %w", name, err)
	}
	return nil
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}
