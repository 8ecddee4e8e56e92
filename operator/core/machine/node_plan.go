package machine

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// wantedNode returns the Node as the Machine wants it: the Machine's labels and annotations of the managed domains, its
// taints, annotations that lead from the Node to the Machine, and no uninitialized taint any more. What an earlier
// reconcile brought and the Machine no longer has is removed: annotations of the Node remember it. Nothing else of the
// Node changes.
func wantedNode(machine *clusterv1.Machine, node *corev1.Node) *corev1.Node {
	out := node.DeepCopy()
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	labels := managed(machine.Labels, isManagedLabel)
	annotations := managed(machine.Annotations, isManagedAnnotation)
	replaceManaged(out.Labels, labels, out.Annotations[clusterv1.LabelsFromMachineAnnotation])
	replaceManaged(out.Annotations, annotations, out.Annotations[clusterv1.AnnotationsFromMachineAnnotation])
	out.Spec.Taints = wantedTaints(machine, node)

	remember := map[string]string{
		clusterv1.ClusterNameAnnotation:            machine.Spec.ClusterName,
		clusterv1.ClusterNamespaceAnnotation:       machine.Namespace,
		clusterv1.MachineAnnotation:                machine.Name,
		clusterv1.LabelsFromMachineAnnotation:      joinKeys(labels),
		clusterv1.AnnotationsFromMachineAnnotation: joinKeys(annotations),
		clusterv1.TaintsFromMachineAnnotation:      strings.Join(permanentTaints(machine), ","),
	}
	if owner := metav1.GetControllerOf(machine); owner != nil {
		remember[clusterv1.OwnerKindAnnotation] = owner.Kind
		remember[clusterv1.OwnerNameAnnotation] = owner.Name
	}
	maps.Copy(out.Annotations, remember)
	return out
}

// isManagedLabel tells whether a label of a Machine goes to its Node: domain node-role.kubernetes.io, and
// node-restriction.kubernetes.io and node.cluster.x-k8s.io with their subdomains (upstream's book, "Machine
// controller", and the proposal "label sync between Machine and underlying Kubernetes Nodes").
func isManagedLabel(key string) bool {
	domain := domainOf(key)
	return domain == clusterv1.NodeRoleLabelPrefix ||
		within(domain, clusterv1.NodeRestrictionLabelDomain) ||
		within(domain, clusterv1.ManagedNodeLabelDomain)
}

func isManagedAnnotation(key string) bool {
	return within(domainOf(key), clusterv1.ManagedNodeAnnotationDomain)
}

func domainOf(key string) string {
	domain, _, _ := strings.Cut(key, "/")
	return domain
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}

func managed(all map[string]string, keep func(string) bool) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		if keep(key) {
			out[key] = value
		}
	}
	return out
}

// replaceManaged puts wanted into have and removes keys that were put there before, a list joined by commas.
func replaceManaged(have, wanted map[string]string, before string) {
	for key := range strings.SplitSeq(before, ",") {
		if _, keep := wanted[key]; !keep && key != "" {
			delete(have, key)
		}
	}
	maps.Copy(have, wanted)
}

// wantedTaints returns the Node's taints without those that we are to take away and with those that are missing. A taint
// that is wanted only on initialization comes with the first sync and is left alone afterwards.
func wantedTaints(machine *clusterv1.Machine, node *corev1.Node) []corev1.Taint {
	_, initialized := node.Annotations[clusterv1.MachineAnnotation]
	before := strings.Split(node.Annotations[clusterv1.TaintsFromMachineAnnotation], ",")
	permanent := permanentTaints(machine)

	var out []corev1.Taint
	for _, taint := range node.Spec.Taints {
		id := taintID(taint.Key, taint.Effect)
		stale := slices.Contains(before, id) && !slices.Contains(permanent, id)
		if taint.MatchTaint(&clusterv1.NodeUninitializedTaint) || stale {
			continue
		}
		out = append(out, taint)
	}
	for _, want := range machine.Spec.Taints {
		if want.Propagation == clusterv1.MachineTaintPropagationOnInitialization && initialized {
			continue
		}
		taint := corev1.Taint{Key: want.Key, Value: want.Value, Effect: want.Effect}
		i := slices.IndexFunc(out, func(have corev1.Taint) bool { return have.MatchTaint(&taint) })
		switch {
		case i < 0:
			out = append(out, taint)
		case out[i].Value != taint.Value:
			out[i].Value = taint.Value
		}
	}
	return out
}

// permanentTaints identifies the taints that are kept on the Node, sorted.
func permanentTaints(machine *clusterv1.Machine) []string {
	var out []string
	for _, taint := range machine.Spec.Taints {
		if taint.Propagation == clusterv1.MachineTaintPropagationAlways {
			out = append(out, taintID(taint.Key, taint.Effect))
		}
	}
	slices.Sort(out)
	return out
}

func taintID(key string, effect corev1.TaintEffect) string {
	return key + ":" + string(effect)
}

func joinKeys(m map[string]string) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ",")
}
