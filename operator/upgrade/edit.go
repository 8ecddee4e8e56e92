package upgrade

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/lifecycle/upgrade"
)

// edit changes one object by one patch.
func (r *Reconciler) edit(ctx context.Context, s snapshot, name string, change func(object)) error {
	for _, o := range s.objectsToMove() {
		if o.name() != name {
			continue
		}
		obj := o.meta().(client.Object)
		stored := obj.DeepCopyObject().(client.Object)
		change(o)
		if err := r.Client.Patch(ctx, obj, optimistic(stored), client.FieldOwner(fieldOwner)); err != nil {
			return fmt.Errorf("change %s: %w", describeObject(o), err)
		}
		return nil
	}
	return nil
}

// moveObject asks for a version and a template. What the object had is kept until the move is over; of a move that is
// made anew, with another image, it is what there was before the first.
func moveObject(m move) func(object) {
	return func(o object) {
		if o.before() == nil {
			// Two strings always encode.
			had, _ := json.Marshal(before{Version: o.version(), Template: o.template()})
			annotate(o.meta(), lifecyclev1.BeforeAnnotation, string(had))
		}
		setTarget(o, m.version, m.template.name)
	}
}

// undoObject asks for what the object had.
func undoObject(o object) {
	if had := o.before(); had != nil {
		setTarget(o, had.Version, had.Template)
	}
}

func forgetObject(o object) { annotate(o.meta(), lifecyclev1.BeforeAnnotation, "") }

func setTarget(o object, version, templateName string) {
	if o.deployment != nil {
		o.deployment.Spec.Template.Spec.Version = version
		o.deployment.Spec.Template.Spec.InfrastructureRef.Name = templateName
		return
	}
	// Both are maps of strings in an object that was read from the API server.
	_ = unstructured.SetNestedField(o.controlPlane.Object, version, "spec", "version")
	_ = unstructured.SetNestedField(o.controlPlane.Object, templateName, append(append([]string{}, controlPlaneTemplate...), "name")...)
}

// haltObject pauses the rollout of a MachineDeployment, or a control plane.
func haltObject(by string) func(object) {
	return func(o object) {
		annotate(o.meta(), lifecyclev1.HaltedByAnnotation, by)
		if o.deployment != nil {
			o.deployment.Spec.Paused = ptr.To(true)
			return
		}
		annotate(o.meta(), clusterv1.PausedAnnotation, "true")
	}
}

func resumeObject(o object) {
	annotate(o.meta(), lifecyclev1.HaltedByAnnotation, "")
	if o.deployment != nil {
		o.deployment.Spec.Paused = nil
		return
	}
	annotate(o.meta(), clusterv1.PausedAnnotation, "")
}

// annotate sets an annotation, or removes it where the value is empty.
func annotate(obj metav1.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if value == "" {
		delete(annotations, key)
	} else {
		annotations[key] = value
	}
	obj.SetAnnotations(annotations)
}

// historyLength is how many upgrades a Cluster remembers.
const historyLength = 10

// remember adds the upgrade to the Cluster's history.
func (r *Reconciler) remember(ctx context.Context, s snapshot, d decision) error {
	cluster := s.objects.Cluster
	history := upgrade.ReadHistory(cluster.Annotations[lifecyclev1.HistoryAnnotation])
	entry := upgrade.Past{Name: s.upgrade.Name, From: s.upgrade.Status.FromVersion, To: s.upgrade.Spec.Version, Phase: string(d.phase), Start: s.now.UTC(), End: s.now.UTC()}
	if start := s.upgrade.Status.StartTime; start != nil {
		entry.Start = start.UTC()
	}
	if len(history) > 0 && history[0].Name == entry.Name && history[0].To == entry.To && (s.upgrade.Status.StartTime == nil || history[0].Start.Equal(entry.Start)) {
		// Written before a crash.
		return nil
	}
	for _, step := range d.steps {
		entry.Machines += step.Done
	}
	history = append([]upgrade.Past{entry}, history...)
	text, err := json.Marshal(history[:min(len(history), historyLength)])
	if err != nil {
		return fmt.Errorf("write the upgrade history of Cluster %q: %w", cluster.Name, err)
	}
	stored := cluster.DeepCopy()
	annotate(cluster, lifecyclev1.HistoryAnnotation, string(text))
	if err := r.Client.Patch(ctx, cluster, optimistic(stored), client.FieldOwner(fieldOwner)); err != nil {
		return fmt.Errorf("write the upgrade history of Cluster %q: %w", cluster.Name, err)
	}
	return nil
}
