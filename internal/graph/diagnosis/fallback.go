package diagnosis

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/graph"
)

// unexplained finds what is not ready for longer than is ordinary and that no rule knows: a provider's own objects say in
// their own words what is wrong. Core objects sum up others and are left out while any of those has a finding.
func unexplained(f *Facts, known []Finding) []Finding {
	var found []Finding
	for _, o := range f.Graph.Objects {
		if o.Kind.Group == clusterv1.GroupVersion.Group || !failing(f, o) ||
			slices.ContainsFunc(known, func(k Finding) bool { return k.of == o }) {
			continue
		}
		l := layerMachine
		if o.Owner == f.Graph.Cluster || o.Owner == nil {
			l = layerProvider
			if f.Graph.Spec().Spec.ControlPlaneRef.Kind == o.Kind.Kind {
				l = layerControlPlane
			}
		}
		found = append(found, notReady(o, l))
	}
	if len(found) > 0 || len(known) > 0 {
		return found
	}
	for _, o := range f.Graph.OfKind("Machine") {
		if failing(f, o) {
			found = append(found, notReady(o, layerMachine))
		}
	}
	if len(found) == 0 && failing(f, f.Graph.Cluster) {
		found = append(found, notReady(f.Graph.Cluster, layerProvider))
	}
	return found
}

func failing(f *Facts, o *graph.Object) bool {
	state := o.State()
	return state.Ready == metav1.ConditionFalse && !state.Deleting && !state.Paused && f.old(state.Since)
}

func notReady(o *graph.Object, l layer) Finding {
	state := o.State()
	cause := graph.FirstLine(cmp.Or(state.Message, "it is not ready and says no more than "+state.Reason))
	trouble := finding("NotReady", l, o, cause).since(state.Since).
		because(fmt.Sprintf("state of %s", reference(o)), string(state.Ready)+" ("+state.Reason+")")
	trouble.Likely = true
	return trouble
}
