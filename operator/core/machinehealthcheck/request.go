package machinehealthcheck

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

// fieldOwner is the name under which remediation requests are applied.
const fieldOwner = "millwright-machinehealthcheck"

// ensureRequest sees to it that the remediation request of a Machine exists, and tells on the Machine how that went. It
// has the Machine's name, so that there is only one. What is missing is told and is no error: a watch tells when it comes.
func (r *Reconciler) ensureRequest(ctx context.Context, check *clusterv1.MachineHealthCheck, machine *clusterv1.Machine) error {
	template, err := r.read(ctx, check.Namespace, templateRef(check))
	if err == nil {
		_, err = contract.FromTemplate(contract.CloneInput{Template: template})
	}
	if err != nil {
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason,
			fmt.Sprintf("%v: mend that, or spec.remediation.templateRef of MachineHealthCheck %q", err, check.Name))
		return client.IgnoreNotFound(err)
	}
	ref := requestRef(check, machine.Name)
	if err := r.watch(ctx, ref.GroupKind()); err != nil {
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, err.Error())
		return client.IgnoreNotFound(err)
	}
	request, err := r.resolver.Get(ctx, check.Namespace, ref)
	switch {
	case apierrors.IsNotFound(err):
		return r.createRequest(ctx, template, machine)
	case err != nil:
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, err.Error())
		return err
	case !metav1.IsControlledBy(request, machine):
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason,
			fmt.Sprintf("%s %q exists and does not belong to this Machine: delete it", request.GetKind(), machine.Name))
		return nil
	}
	// What the external controller says about its work stays.
	if have := conditions.Get(machine, clusterv1.MachineExternallyRemediatedCondition); have == nil || neverRequested(have.Reason) {
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "")
	}
	return nil
}

func (r *Reconciler) createRequest(ctx context.Context, template *unstructured.Unstructured, machine *clusterv1.Machine) error {
	request, err := contract.FromTemplate(contract.CloneInput{
		Template:    template,
		Namespace:   machine.Namespace,
		Name:        machine.Name,
		ClusterName: machine.Spec.ClusterName,
		Owner:       *metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine")),
	})
	if err == nil {
		err = contract.Apply(ctx, r.Client, request, fieldOwner)
	}
	if err != nil {
		setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason, err.Error())
		return fmt.Errorf("request the remediation of Machine %q: %w", client.ObjectKeyFromObject(machine), err)
	}
	setExternallyRemediated(machine, clusterv1.MachineExternallyRemediatedWaitingForRemediationReason, "")
	return nil
}

// deleteRequest takes the remediation request of a Machine back that has got well.
func (r *Reconciler) deleteRequest(ctx context.Context, check *clusterv1.MachineHealthCheck, machine *clusterv1.Machine) error {
	request, err := r.read(ctx, check.Namespace, requestRef(check, machine.Name))
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && metav1.IsControlledBy(request, machine) && request.GetDeletionTimestamp() == nil {
		uid := request.GetUID()
		if err := r.Client.Delete(ctx, request, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %q, whose Machine is healthy again: %w", request.GetKind(), client.ObjectKeyFromObject(request), err)
		}
	}
	if conditions.IsFalse(machine, clusterv1.MachineExternallyRemediatedCondition) {
		conditions.Delete(machine, clusterv1.MachineExternallyRemediatedCondition)
	}
	return nil
}

// templateRef refers to the remediation template by its kind alone: the version is that of the contract, as for every
// other object of a provider, so that spec.remediation.templateRef.apiVersion never goes stale.
func templateRef(check *clusterv1.MachineHealthCheck) clusterv1.ContractVersionedObjectReference {
	ref := check.Spec.Remediation.TemplateRef
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref.GroupVersionKind().Group, Kind: ref.Kind, Name: ref.Name}
}

// requestRef refers to the remediation request of a Machine.
func requestRef(check *clusterv1.MachineHealthCheck, machine string) clusterv1.ContractVersionedObjectReference {
	ref := templateRef(check)
	ref.Kind = strings.TrimSuffix(ref.Kind, clusterv1.TemplateSuffix)
	ref.Name = machine
	return ref
}

// read returns an object of a kind that may not be installed. The kind is watched first: what is created in between is
// an event.
func (r *Reconciler) read(ctx context.Context, namespace string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error) {
	if err := r.watch(ctx, ref.GroupKind()); err != nil {
		return nil, err
	}
	return r.resolver.Get(ctx, namespace, ref)
}

func setExternallyRemediated(machine *clusterv1.Machine, reason, message string) {
	conditions.Set(machine, conditions.False(clusterv1.MachineExternallyRemediatedCondition, reason, "%s", message))
}

// neverRequested tells whether the reason of ExternallyRemediated=False says that there was no request so far.
func neverRequested(reason string) bool {
	return reason == clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason ||
		reason == clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason
}
