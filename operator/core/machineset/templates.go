package machineset

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

// templates are the objects that a set's machines are made from; bootstrap is nil where the template names a Secret.
type templates struct {
	bootstrap, infrastructure *unstructured.Unstructured
}

// complete tells whether all templates that the set names have been read.
func (t templates) complete(set *clusterv1.MachineSet) bool {
	return t.infrastructure != nil && (t.bootstrap != nil || !set.Spec.Template.Spec.Bootstrap.ConfigRef.IsDefined())
}

// obstacles tells what in the set and its Cluster keeps Machines from being made. All of it is watched.
func obstacles(set *clusterv1.MachineSet, cluster *clusterv1.Cluster) []string {
	var out []string
	switch {
	case cluster == nil:
		out = append(out, fmt.Sprintf("Cluster %q does not exist in namespace %q: create it", set.Spec.ClusterName, set.Namespace))
	case !cluster.DeletionTimestamp.IsZero():
		out = append(out, fmt.Sprintf("Cluster %q is being deleted", cluster.Name))
	}
	if cluster != nil && lifecycle.SpreadsDomains(set) && !provisioned(cluster) {
		out = append(out, fmt.Sprintf("The failure domains of Cluster %q are not known before its infrastructure is provisioned", cluster.Name))
	}
	if _, err := namingOf(set); err != nil {
		out = append(out, err.Error())
	}
	if createDisabled(set) {
		out = append(out, fmt.Sprintf("annotation %s is set", clusterv1.DisableMachineCreateAnnotation))
	}
	if !selectsItsMachines(set) {
		out = append(out, "spec.selector does not match spec.template.metadata.labels: change the labels so that it does")
	}
	bootstrap := set.Spec.Template.Spec.Bootstrap
	if !bootstrap.ConfigRef.IsDefined() && bootstrap.DataSecretName == nil {
		out = append(out, "spec.template.spec.bootstrap is empty: set configRef or dataSecretName")
	}
	return out
}

// selectsItsMachines tells whether the selector matches the labels that Machines get. What does not parse is told
// elsewhere.
func selectsItsMachines(set *clusterv1.MachineSet) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err != nil || selector.Matches(labels.Set(machineLabels(set)))
}

// readTemplates returns what machines of a set are made from, and what is wrong with it. Templates and their CRDs are
// watched, so that mending one makes the set go on; an error is for what only a retry can mend, and is told too.
func (r *Reconciler) readTemplates(ctx context.Context, set *clusterv1.MachineSet, cluster *clusterv1.Cluster) (from templates, problems []string, err error) {
	var errs []error
	spec := set.Spec.Template.Spec
	for _, template := range []struct {
		ref   clusterv1.ContractVersionedObjectReference
		field string
		into  **unstructured.Unstructured
	}{
		{spec.Bootstrap.ConfigRef, "bootstrap.configRef", &from.bootstrap},
		{spec.InfrastructureRef, "infrastructureRef", &from.infrastructure},
	} {
		if !template.ref.IsDefined() {
			continue
		}
		obj, problem, err := r.readTemplate(ctx, set.Namespace, template.ref)
		if err == nil && problem == "" {
			err = r.ownTemplate(ctx, cluster, obj)
		}
		if problem != "" {
			problems = append(problems, fmt.Sprintf("%s, or mend spec.template.spec.%s", problem, template.field))
		}
		if err != nil {
			problems = append(problems, err.Error())
			errs = append(errs, err)
		}
		*template.into = obj
	}
	return from, problems, errors.Join(errs...)
}

// readTemplate returns one template, or a problem that the user can solve.
func (r *Reconciler) readTemplate(ctx context.Context, namespace string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, string, error) {
	gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("Kind %s is not known to the API server: install its provider", ref.GroupKind()), nil
	}
	if err != nil {
		return nil, "", err
	}
	// Watched before it is read: what is created in between is an event.
	if err := r.watcher.Watch(gvk, r.fromTemplates(ref.GroupKind())); err != nil {
		return nil, "", err
	}
	obj, err := r.resolver.Get(ctx, namespace, ref)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("%s %q does not exist in namespace %q: create it", ref.Kind, ref.Name, namespace), nil
	}
	if err != nil {
		return nil, "", err
	}
	if _, err := contract.FromTemplate(contract.CloneInput{Template: obj, Namespace: namespace, Name: ref.Name}); err != nil {
		return nil, fmt.Sprintf("%s: replace it", err), nil
	}
	return obj, "", nil
}

// ownTemplate makes the Cluster an owner of a template, so that the template goes when the Cluster goes.
func (r *Reconciler) ownTemplate(ctx context.Context, cluster *clusterv1.Cluster, template *unstructured.Unstructured) error {
	if cluster == nil || !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	helper := patch.New(template, r.Client)
	if err := controllerutil.SetOwnerReference(cluster, template, r.Client.Scheme()); err != nil {
		return fmt.Errorf("make Cluster %q an owner of %s %q: %w", cluster.Name, template.GetKind(), template.GetName(), err)
	}
	return helper.Patch(ctx, template)
}
