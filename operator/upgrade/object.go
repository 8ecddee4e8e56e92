package upgrade

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// controlPlaneTemplate is where the contract puts the reference to the machine template of a control plane.
var controlPlaneTemplate = []string{"spec", "machineTemplate", "spec", "infrastructureRef"}

// object is what an upgrade moves: a control plane or a MachineDeployment.
type object struct {
	controlPlane *unstructured.Unstructured
	deployment   *clusterv1.MachineDeployment
}

// before is what an object had before it was moved.
type before struct {
	Version  string `json:"version"`
	Template string `json:"template"`
}

// name of the MachineDeployment, empty for the control plane.
func (o object) name() string {
	if o.deployment != nil {
		return o.deployment.Name
	}
	return ""
}

func (o object) meta() metav1.Object {
	if o.deployment != nil {
		return o.deployment
	}
	return o.controlPlane
}

// before reads the annotation; nil where there is none, or none that can be read.
func (o object) before() *before {
	if o.deployment == nil && o.controlPlane == nil {
		return nil
	}
	text, ok := o.meta().GetAnnotations()[lifecyclev1.BeforeAnnotation]
	if !ok {
		return nil
	}
	had := &before{}
	if json.Unmarshal([]byte(text), had) != nil {
		return nil
	}
	return had
}

// version and template are what the object asks for.
func (o object) version() string {
	if o.deployment != nil {
		return o.deployment.Spec.Template.Spec.Version
	}
	return versionOf(o.controlPlane)
}

func (o object) template() string { return o.reference().Name }

func (o object) reference() clusterv1.ContractVersionedObjectReference {
	if o.deployment != nil {
		return o.deployment.Spec.Template.Spec.InfrastructureRef
	}
	ref, _, _ := unstructured.NestedStringMap(o.controlPlane.Object, controlPlaneTemplate...)
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref["apiGroup"], Kind: ref["kind"], Name: ref["name"]}
}

// haltedBy names the upgrade that paused the object; empty when none did.
func (o object) haltedBy() string { return o.meta().GetAnnotations()[lifecyclev1.HaltedByAnnotation] }

func (o object) unsettled(objects upgrade.Objects) string {
	if o.deployment != nil {
		return upgrade.Unsettled(objects, o.deployment)
	}
	return upgrade.ControlPlaneUnsettled(objects)
}

// objectsToMove are the control plane and the MachineDeployments.
func (s snapshot) objectsToMove() []object {
	var out []object
	if s.objects.ControlPlane != nil {
		out = append(out, object{controlPlane: s.objects.ControlPlane})
	}
	for _, deployment := range s.objects.Deployments {
		if deployment.DeletionTimestamp.IsZero() {
			out = append(out, object{deployment: deployment})
		}
	}
	return out
}

// object returns what a step moves, nil for an add-on.
func (s snapshot) object(step upgrade.Step) *object {
	for _, o := range s.objectsToMove() {
		if step.Kind != upgrade.MoveAddon && (step.Kind == upgrade.MoveControlPlane) == (o.deployment == nil) && o.name() == step.Name {
			return &o
		}
	}
	return nil
}
