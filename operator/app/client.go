package app

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/millwright-dev/millwright/internal/contract"
)

// ownWrites is a client whose cached reads see the operator's own writes: a reconcile that an event of another object
// starts a moment after a write would else repeat it, and be refused.
//
// Only objects of the Cluster API groups and of ours wait for their writes. Of Secrets the cache holds some and of ConfigMaps none:
// a read would wait for ever for a write that the cache never sees.
//
// An unstructured object of a kind that has a Go type here is read and patched by that type: see contract.Typed.
type ownWrites struct{ client.Client }

func newClient(config *rest.Config, opts client.Options) (client.Client, error) {
	opts.Cache.EnableReadYourWritesConsistency = ptr.To(true)
	c, err := client.New(config, opts)
	if err != nil {
		return nil, err
	}
	return ownWrites{c}, nil
}

// whole tells whether the cache holds all objects of a kind.
func (c ownWrites) whole(obj runtime.Object) bool {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	return err == nil && (strings.HasSuffix(gvk.Group, "cluster.x-k8s.io") || strings.HasSuffix(gvk.Group, ".millwright.dev"))
}

// consistent tells whether reads of obj wait for writes of its kind, and its writes make them wait.
func (c ownWrites) consistent(obj runtime.Object) bool {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		// controller-runtime notes writes of unstructured objects where only reads of typed ones look, and would start a
		// cache of the untyped objects beside that of the typed ones.
		return c.whole(obj) && contract.Typed(c.Scheme(), u.GroupVersionKind()) == nil
	}
	return c.whole(obj)
}

// typed returns an empty object of the Go type of obj's kind, with the name of obj, if obj is unstructured and there is
// such a type; nil else.
func (c ownWrites) typed(obj client.Object) client.Object {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	typed := contract.Typed(c.Scheme(), u.GroupVersionKind())
	if typed != nil {
		typed.SetNamespace(obj.GetNamespace())
		typed.SetName(obj.GetName())
	}
	return typed
}

// fill makes obj what typed is.
func fill(obj, typed client.Object) error {
	u, err := contract.Untyped(typed, obj.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	obj.(*unstructured.Unstructured).Object = u.Object
	return nil
}

func (c ownWrites) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if typed := c.typed(obj); typed != nil {
		// Only read, and converted into values of its own.
		if err := c.Get(ctx, key, typed, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
			return err
		}
		return fill(obj, typed)
	}
	if !c.consistent(obj) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c ownWrites) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !c.whole(list) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.List(ctx, list, opts...)
}

func (c ownWrites) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if !c.consistent(obj) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.Create(ctx, obj, opts...)
}

func (c ownWrites) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if !c.consistent(obj) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.Update(ctx, obj, opts...)
}

func (c ownWrites) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
	if typed := c.typed(obj); typed != nil {
		data, err := p.Data(obj)
		if err != nil {
			return err
		}
		if err := c.Patch(ctx, typed, client.RawPatch(p.Type(), data), opts...); err != nil {
			return err
		}
		return fill(obj, typed)
	}
	if !c.consistent(obj) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.Patch(ctx, obj, p, opts...)
}

func (c ownWrites) Status() client.SubResourceWriter {
	return ownStatuses{SubResourceWriter: c.Client.Status(), typed: c.typed}
}

// ownStatuses does for status what ownWrites does for objects.
type ownStatuses struct {
	client.SubResourceWriter
	typed func(client.Object) client.Object
}

func (s ownStatuses) Patch(ctx context.Context, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	typed := s.typed(obj)
	if typed == nil {
		return s.SubResourceWriter.Patch(ctx, obj, p, opts...)
	}
	data, err := p.Data(obj)
	if err != nil {
		return err
	}
	if err := s.SubResourceWriter.Patch(ctx, typed, client.RawPatch(p.Type(), data), opts...); err != nil {
		return err
	}
	return fill(obj, typed)
}

func (c ownWrites) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	if typed := c.typed(obj); typed != nil {
		typed.SetUID(obj.GetUID())
		typed.SetResourceVersion(obj.GetResourceVersion())
		return c.Delete(ctx, typed, opts...)
	}
	if !c.consistent(obj) {
		opts = append(opts, client.DisableReadYourWritesConsistency)
	}
	return c.Client.Delete(ctx, obj, opts...)
}
