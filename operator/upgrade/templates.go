package upgrade

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// source is the machine template that an object's next one is copied from, and how it names its image.
type source struct {
	object   object
	template *unstructured.Unstructured
	image    upgrade.Image
	// err says why no other template can be made of it.
	err error
}

// sourceOf reads the template that an object had before the upgrade moved it, or has now. A template that a user names
// for every version is not needed; what is wrong with it is told only when it is.
func (r *Reconciler) sourceOf(ctx context.Context, o object, images lifecyclev1.Images) (source, error) {
	ref, version := o.reference(), o.version()
	if had := o.before(); had != nil {
		ref.Name, version = had.Template, had.Version
	}
	src := source{object: o}
	have, err := lifecycle.ParseVersion(version)
	if err != nil {
		src.err = fmt.Errorf("its version cannot be read: %w", err)
		return src, nil
	}
	src.template, err = r.resolver.Get(ctx, o.meta().GetNamespace(), ref)
	switch {
	case apierrors.IsNotFound(err):
		src.err = fmt.Errorf("its machine template %s %q does not exist: create it, or refer to another", ref.Kind, ref.Name)
		return src, nil
	case err != nil:
		return source{}, err
	}
	if src.image, err = upgrade.FindImage(src.template.Object, images.Field, images.Pattern, have); err != nil {
		src.err = fmt.Errorf("%s %q: %w", ref.Kind, ref.Name, err)
	}
	return src, nil
}

// templateFor returns the machine template of an object at a version: the one that the user names, or a copy of the
// source with the image of that version, named by its content.
func templateFor(src source, images lifecyclev1.Images, to, final string) (*template, error) {
	for _, given := range images.Templates {
		if given.For == src.object.name() && (given.Version == to || given.Version == "" && to == final) {
			return &template{name: given.Name}, nil
		}
	}
	if src.err != nil {
		return nil, src.err
	}
	version, err := lifecycle.ParseVersion(to)
	if err != nil {
		return nil, err
	}
	made, err := copyWith(src, version)
	if err != nil {
		return nil, err
	}
	return &template{name: made.GetName(), make: made}, nil
}

// copyWith copies a machine template with the image of a version.
func copyWith(src source, version *semver.Version) (*unstructured.Unstructured, error) {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(src.template.GroupVersionKind())
	spec, found, err := unstructured.NestedMap(src.template.Object, "spec")
	if err != nil || !found {
		return nil, fmt.Errorf("%s %q has no spec", src.template.GetKind(), src.template.GetName())
	}
	out.Object["spec"] = spec
	if err := unstructured.SetNestedField(out.Object, src.image.For(version), src.image.Field...); err != nil {
		return nil, fmt.Errorf("%s %q: set %s: %w", src.template.GetKind(), src.template.GetName(), strings.Join(src.image.Field, "."), err)
	}
	root := src.template.GetAnnotations()[lifecyclev1.TemplateOfAnnotation]
	if root == "" {
		root = src.template.GetName()
	}
	content, err := json.Marshal(out.Object["spec"])
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", src.template.GetKind(), src.template.GetName(), err)
	}
	sum := sha256.Sum256(content)
	out.SetNamespace(src.template.GetNamespace())
	out.SetName(root + "-" + hex.EncodeToString(sum[:])[:hashLength])
	labels := map[string]string{lifecyclev1.MadeByUpgradeLabel: ""}
	if cluster := src.object.meta().GetLabels()[clusterv1.ClusterNameLabel]; cluster != "" {
		labels[clusterv1.ClusterNameLabel] = cluster
	}
	out.SetLabels(labels)
	out.SetAnnotations(map[string]string{lifecyclev1.TemplateOfAnnotation: root})
	return out, nil
}

// hashLength is how much of the hash of a template's content is in its name.
const hashLength = 10

// ensureTemplate makes the template of a move where it does not exist. One of its name has its content.
func (r *Reconciler) ensureTemplate(ctx context.Context, cluster *clusterv1.Cluster, t *template) error {
	if t == nil || t.make == nil {
		return nil
	}
	obj := t.make.DeepCopy()
	// So that it goes with its cluster, as templates do, and only after everything that is made from it.
	obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID}})
	labels := obj.GetLabels()
	labels[clusterv1.ClusterNameLabel] = cluster.Name
	obj.SetLabels(labels)
	if err := r.Client.Create(ctx, obj, client.FieldOwner(fieldOwner)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the machine template %s %q: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// collect deletes the machine templates that upgrades made for a cluster and that nothing refers to: no control plane, no
// MachineDeployment, and no MachineSet, to which a rollout may be undone.
func (r *Reconciler) collect(ctx context.Context, s snapshot) error {
	used, kinds := map[string]bool{}, map[string]clusterv1.ContractVersionedObjectReference{}
	use := func(ref clusterv1.ContractVersionedObjectReference) {
		used[ref.Kind+"/"+ref.Name] = true
		kinds[ref.Kind+"."+ref.APIGroup] = ref
	}
	for _, o := range s.objectsToMove() {
		use(o.reference())
	}
	sets := &clusterv1.MachineSetList{}
	of := client.MatchingLabels{clusterv1.ClusterNameLabel: s.objects.Cluster.Name}
	// Past the cache: a set that is new refers to a template that is in use.
	if err := r.Live.List(ctx, sets, client.InNamespace(s.objects.Cluster.Namespace), of); err != nil {
		return fmt.Errorf("list the MachineSets of cluster %q: %w", s.objects.Cluster.Name, err)
	}
	for i := range sets.Items {
		use(sets.Items[i].Spec.Template.Spec.InfrastructureRef)
	}
	for _, ref := range kinds {
		gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
		if err != nil {
			return err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := r.Live.List(ctx, list, client.InNamespace(s.objects.Cluster.Namespace), of, client.HasLabels{lifecyclev1.MadeByUpgradeLabel}); err != nil {
			return fmt.Errorf("list the %s objects that upgrades made: %w", gvk.Kind, err)
		}
		for i := range list.Items {
			if item := &list.Items[i]; !used[gvk.Kind+"/"+item.Name] {
				item.SetGroupVersionKind(gvk)
				if err := r.Client.Delete(ctx, item, client.Preconditions{UID: &item.UID}); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("delete the machine template %s %q, which nothing uses: %w", gvk.Kind, item.Name, err)
				}
			}
		}
	}
	return nil
}
