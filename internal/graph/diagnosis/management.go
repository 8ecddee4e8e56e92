package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/graph"
)

// unreported finds objects that no controller has looked at.
func unreported(f *Facts) []Finding {
	var found []Finding
	for _, o := range f.Graph.Objects {
		made := o.GetCreationTimestamp().Time
		if !o.GetDeletionTimestamp().IsZero() || len(o.Conditions()) > 0 || !f.old(made) {
			continue
		}
		if state := o.State(); state.Reason != graph.NotReported || state.Paused || f.Graph.Cluster.State().Paused {
			continue
		}
		trouble := finding("NoController", layerController, o, fmt.Sprintf("no controller has reported on %s since it was made", reference(o))).since(made)
		trouble.Remedy = fmt.Sprintf("See that the controller of %s runs, and that its CRD bears the label of the Cluster API contract.", o.Kind.GroupKind())
		trouble.Likely, trouble.wide = true, o == f.Graph.Cluster
		found = append(found, trouble)
	}
	return found
}

// stuckFinalizers finds objects whose deletion nobody works at.
func stuckFinalizers(f *Facts) []Finding {
	var found []Finding
	for _, o := range f.Graph.Objects {
		deleted := o.GetDeletionTimestamp()
		if deleted == nil || len(o.GetFinalizers()) == 0 || !f.old(deleted.Time) {
			continue
		}
		// Who works at it says so in Deleting, or holds on to it until what it owns is gone.
		working := slices.ContainsFunc(o.Conditions(), func(c metav1.Condition) bool {
			return c.Type == clusterv1.DeletingCondition && c.Status == metav1.ConditionTrue
		})
		if working || len(o.Owned) > 0 {
			continue
		}
		trouble := finding("FinalizerStuck", layerController, o,
			fmt.Sprintf("%s waits for whoever set the finalizer %s to remove it", reference(o), strings.Join(o.GetFinalizers(), ", "))).since(deleted.Time)
		trouble.Remedy = "See that the controller of this finalizer runs. Removing the finalizer by hand leaves behind what it guards, a virtual machine for one."
		trouble.Likely = true
		found = append(found, trouble)
	}
	return found
}

// refusal is what an API server or a controller says, in conditions and events, when it may not do something.
type refusal struct {
	says   []string
	code   string
	remedy string
}

var refusalTable = []refusal{
	{says: []string{"exceeded quota"}, code: "QuotaExceeded", remedy: "Raise the ResourceQuota of the namespace, or remove what uses it up."},
	{says: []string{"is forbidden: user", "cannot"}, code: "ControllerForbidden", remedy: "Grant the controller what it lacks: a provider does so by a ClusterRole labelled cluster.x-k8s.io/aggregate-to-manager: \"true\"."},
	{says: []string{"has no label cluster.x-k8s.io/"}, code: "ContractLabelMissing", remedy: "Install a version of the provider that supports the contract v1beta2."},
	{says: []string{"no matches for kind"}, code: "ProviderMissing", remedy: "Install the provider whose kind is named."},
}

// refusals finds what was refused in the management cluster.
func refusals(f *Facts) []Finding {
	var found []Finding
	tell := func(o *graph.Object, message, source string, since time.Time) {
		text := strings.ToLower(message)
		for _, r := range refusalTable {
			if slices.ContainsFunc(r.says, func(part string) bool { return !strings.Contains(text, part) }) {
				continue
			}
			trouble := finding(r.code, layerController, o, graph.FirstLine(message)).since(since).because(source, message)
			trouble.Remedy = r.remedy
			found = append(found, trouble)
			return
		}
	}
	for _, o := range f.Graph.Objects {
		for _, c := range o.Conditions() {
			// Ready and Available repeat what the others say.
			if c.Status != metav1.ConditionTrue && c.Type != clusterv1.ReadyCondition && c.Type != clusterv1.AvailableCondition {
				tell(o, c.Message, "condition "+c.Type+" of "+reference(o).String(), c.LastTransitionTime.Time)
			}
		}
	}
	for i := range f.Events {
		e := &f.Events[i]
		if o := f.subject(e); o != nil && e.Type == corev1.EventTypeWarning && f.Now.Sub(lastSeen(e)) < max(10*time.Minute, f.Patience) {
			tell(o, e.Message, "event "+e.Reason+" of "+reference(o).String(), lastSeen(e))
		}
	}
	return found
}

// subject is the object of the graph that an event is about.
func (f *Facts) subject(e *corev1.Event) *graph.Object {
	i := slices.IndexFunc(f.Graph.Objects, func(o *graph.Object) bool {
		return o.Kind.Kind == e.InvolvedObject.Kind && o.GetName() == e.InvolvedObject.Name && o.GetNamespace() == e.InvolvedObject.Namespace
	})
	if i < 0 {
		return nil
	}
	return f.Graph.Objects[i]
}

func lastSeen(e *corev1.Event) time.Time {
	latest := e.LastTimestamp.Time
	if e.EventTime.After(latest) {
		latest = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(latest) {
		latest = e.Series.LastObservedTime.Time
	}
	return latest
}

// paused finds what somebody told the controllers to leave alone.
func paused(f *Facts) []Finding {
	var found []Finding
	cluster := f.Graph.Spec()
	if cluster.Spec.Paused != nil && *cluster.Spec.Paused {
		trouble := whoPaused(finding("Paused", layerIntent, f.Graph.Cluster, "the cluster is paused: nothing of it is reconciled"), f.Graph.Cluster, "f:spec", "f:paused")
		trouble.Remedy, trouble.wide = fmt.Sprintf("kubectl patch cluster %s --type merge -p '{\"spec\":{\"paused\":false}}'", cluster.Name), true
		found = append(found, trouble)
	}
	for _, o := range f.Graph.Objects {
		if _, annotated := o.GetAnnotations()[clusterv1.PausedAnnotation]; annotated {
			trouble := whoPaused(finding("Paused", layerIntent, o, reference(o).String()+" bears the annotation "+clusterv1.PausedAnnotation+": it is not reconciled"),
				o, "f:metadata", "f:annotations", "f:"+clusterv1.PausedAnnotation)
			trouble.Remedy = fmt.Sprintf("kubectl annotate %s %s %s-", strings.ToLower(o.Kind.Kind), o.GetName(), clusterv1.PausedAnnotation)
			trouble.wide = o == f.Graph.Cluster
			found = append(found, trouble)
		}
		deployment, ok := o.Object.(*clusterv1.MachineDeployment)
		if ok && deployment.Spec.Paused != nil && *deployment.Spec.Paused {
			trouble := whoPaused(finding("RolloutPaused", layerPolicy, o, "its rollout is paused: machines are added and removed, but not replaced"), o, "f:spec", "f:paused")
			trouble.Remedy = "kubectl machines rollout resume " + deployment.Name
			found = append(found, trouble)
		}
	}
	return found
}

// whoPaused adds who owns a field, and since when, as the API server recorded it.
func whoPaused(f Finding, o *graph.Object, path ...string) Finding {
	for _, entry := range o.GetManagedFields() {
		if entry.FieldsV1 == nil || !owns(entry.FieldsV1.GetRawBytes(), path) {
			continue
		}
		if entry.Time != nil {
			f = f.since(entry.Time.Time)
		}
		return f.because("field manager", entry.Manager)
	}
	return f
}
