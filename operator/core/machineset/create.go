package machineset

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// fieldOwner is the name under which the objects of new machines are applied.
const fieldOwner = "millwright-machineset"

// createMachines makes Machines and returns those that were made. One event tells of all of them: an event a Machine
// would be a tenth of what a large set costs the API server.
func (r *Reconciler) createMachines(ctx context.Context, set *clusterv1.MachineSet, from templates, machines []*clusterv1.Machine) ([]*clusterv1.Machine, error) {
	created, err := inBatches(machines, func(machine *clusterv1.Machine) (*clusterv1.Machine, error) {
		name := machine.Name
		if err := r.createMachine(ctx, set, from, machine); err != nil {
			return nil, fmt.Errorf("create Machine %q: %w", set.Namespace+"/"+name, err)
		}
		return machine, nil
	})
	switch len(created) {
	case 0:
	case 1:
		r.Recorder.Eventf(set, created[0], corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created Machine %q", created[0].Name)
	default:
		r.Recorder.Eventf(set, nil, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created %d Machines, %q to %q",
			len(created), created[0].Name, created[len(created)-1].Name)
	}
	return created, err
}

// createMachine applies the Machine and then what it refers to, which so has its last owner from the start. Whatever a try
// before this one made is found again by its name, and what it did not come to make is made by completeMachines.
func (r *Reconciler) createMachine(ctx context.Context, set *clusterv1.MachineSet, from templates, machine *clusterv1.Machine) error {
	// Asked before anything is made: of a template that cannot be cloned there is to be no Machine.
	if _, err := objectsOf(set, from, machine); err != nil {
		return err
	}
	machine.Annotations = labels.Merge(machine.Annotations, labels.Set{
		lifecycle.TemplateContentAnnotation: lifecycle.Fingerprints(from.bootstrap, from.infrastructure),
	})
	if err := r.apply(ctx, machine); err != nil {
		return err
	}
	return r.createObjects(ctx, set, from, machine)
}

// createObjects applies the bootstrap config and the infrastructure object of a Machine that is stored.
func (r *Reconciler) createObjects(ctx context.Context, set *clusterv1.MachineSet, from templates, machine *clusterv1.Machine) error {
	objects, err := objectsOf(set, from, machine)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	r.complete.add(client.ObjectKeyFromObject(set), machine.UID)
	return nil
}

// objectsOf returns the objects that a Machine of the set refers to, as the templates describe them.
func objectsOf(set *clusterv1.MachineSet, from templates, machine *clusterv1.Machine) ([]*unstructured.Unstructured, error) {
	planned := newMachine(set, machine.Name)
	var out []*unstructured.Unstructured
	for _, template := range []*unstructured.Unstructured{from.bootstrap, from.infrastructure} {
		if template == nil {
			continue
		}
		obj, err := contract.FromTemplate(contract.CloneInput{
			Template:    template,
			Namespace:   set.Namespace,
			Name:        machine.Name,
			ClusterName: set.Spec.ClusterName,
			Owner:       *metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine")),
			Labels:      planned.Labels,
			Annotations: planned.Annotations,
		})
		if err != nil {
			return nil, err
		}
		out = append(out, obj)
	}
	return out, nil
}

// apply refuses an object that is on its way out: one of an earlier Machine of this name, which must be gone first.
func (r *Reconciler) apply(ctx context.Context, obj client.Object) error {
	if err := contract.Apply(ctx, r.Client, obj, fieldOwner); err != nil {
		return err
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("%s %q is still being deleted", obj.GetObjectKind().GroupVersionKind().Kind, client.ObjectKeyFromObject(obj))
	}
	return nil
}

// newMachine returns the Machine of one name. Its bootstrap config and infrastructure object have the same name.
func newMachine(set *clusterv1.MachineSet, name string) *clusterv1.Machine {
	template := set.Spec.Template
	owner := ownerOf(set)
	owner.Controller = ptr.To(true)
	owner.BlockOwnerDeletion = ptr.To(true)
	machine := &clusterv1.Machine{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       set.Namespace,
			Name:            name,
			OwnerReferences: []metav1.OwnerReference{*owner},
			Finalizers:      []string{clusterv1.MachineFinalizer},
		},
		Spec: *template.Spec.DeepCopy(),
	}
	machine.Spec.ClusterName = set.Spec.ClusterName
	machine.Spec.ProviderID = ""
	machine.Spec.Version = lifecycle.NormalizeVersion(template.Spec.Version)
	machine.Spec.InfrastructureRef = cloned(template.Spec.InfrastructureRef, name)
	if template.Spec.Bootstrap.ConfigRef.IsDefined() {
		machine.Spec.Bootstrap = clusterv1.Bootstrap{ConfigRef: cloned(template.Spec.Bootstrap.ConfigRef, name)}
	}
	keepUp(set, machine)
	return machine
}

// cloned refers to the object of one name that was made from a template.
func cloned(template clusterv1.ContractVersionedObjectReference, name string) clusterv1.ContractVersionedObjectReference {
	return clusterv1.ContractVersionedObjectReference{
		APIGroup: template.APIGroup,
		Kind:     strings.TrimSuffix(template.Kind, clusterv1.TemplateSuffix),
		Name:     name,
	}
}

func ownerOf(set *clusterv1.MachineSet) *metav1.OwnerReference {
	return &metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: set.Name, UID: set.UID,
	}
}
