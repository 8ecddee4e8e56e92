package addon

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
)

// MakeSet is what the engine applies of a rendered version: with the parts that
// its add-on derives from what the cluster of c has. The objects are changed in
// place. The notices are worth telling a person.
func MakeSet(ctx context.Context, c client.Client, in bundle.Input, objects []*unstructured.Unstructured) (set apply.Set, notices []string, err error) {
	notices, err = in.Derive(objects, func(kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, error) {
		return read(ctx, c, kind, namespace, name)
	})
	if err != nil {
		return apply.Set{}, nil, err
	}
	return apply.Set{
		Name: in.Addon.Name, Version: in.Version.Version, Parameters: in.Values, Customization: in.Custom.String(), Objects: objects,
		Retain:   matcher(in.Version.Retain),
		Moved:    matcher(in.Version.Moved),
		Recreate: matcher(in.Version.Recreate),
		Derived:  func(id apply.ID) bool { return in.Addon.Derives(id.GroupKind(), id.Namespace, id.Name) },
	}, notices, nil
}

// Check tells whether objects of the set are healthy by the version's own rules, as apply.Engine asks it.
func Check(version *bundle.Version) func(apply.ID, *unstructured.Unstructured) (bool, string) {
	return func(id apply.ID, live *unstructured.Unstructured) (bool, string) {
		return version.Healthy(id.GroupKind(), live)
	}
}

// Retains tells which objects a version never prunes.
func Retains(version *bundle.Version) func(apply.ID) bool { return matcher(version.Retain) }

func matcher(refs []bundle.ObjectRef) func(apply.ID) bool {
	return func(id apply.ID) bool { return bundle.AnyMatches(refs, id.GroupKind(), id.Namespace, id.Name) }
}

// read reads an object in the version that the server prefers; nil when there is none.
func read(ctx context.Context, c client.Client, kind schema.GroupKind, namespace, name string) (*unstructured.Unstructured, error) {
	mapping, err := c.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return object, nil
}
