package machinedeployment

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// changeCauseAnnotation is kubectl's: why a revision was made. A set keeps that of its own.
const changeCauseAnnotation = "kubernetes.io/change-cause"

// ownAnnotations of a deployment are about the deployment alone; sets do not get them.
var ownAnnotations = []string{
	corev1.LastAppliedConfigAnnotation, clusterv1.RevisionAnnotation, clusterv1.DesiredReplicasAnnotation, clusterv1.MaxReplicasAnnotation,
	clusterv1.DisableMachineCreateAnnotation, clusterv1.PausedAnnotation, lifecycle.PropagatedAnnotation, lifecycle.CapacityAnnotation,
	"cluster.x-k8s.io/conversion-data",
}

// newSet returns the set of the deployment's template, without Machines. Its name and label come from the template, so
// that a second try finds the first one's set. Where another set has that name, one made before spec.rollout.after say,
// the next name in line is taken.
func newSet(s snapshot, revision int64) *clusterv1.MachineSet {
	deployment := s.deployment
	taken := map[string]bool{}
	for _, set := range slices.Concat(s.sets, s.orphans) {
		taken[set.Name] = true
	}
	hash := lifecycle.TemplateHash(deployment.Spec.Template)
	for n := 1; taken[deployment.Name+"-"+hash]; n++ {
		hash = lifecycle.TemplateHash(deployment.Spec.Template, strconv.Itoa(n))
	}

	unique := labels.Set{clusterv1.MachineDeploymentUniqueLabel: hash}
	selector := *deployment.Spec.Selector.DeepCopy()
	selector.MatchLabels = labels.Merge(selector.MatchLabels, unique)
	set := &clusterv1.MachineSet{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       deployment.Namespace,
			Name:            deployment.Name + "-" + hash,
			Labels:          unique,
			Annotations:     map[string]string{},
			Finalizers:      []string{clusterv1.MachineSetFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, clusterv1.GroupVersion.WithKind("MachineDeployment"))},
		},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: deployment.Spec.ClusterName,
			Selector:    selector,
			Template:    *deployment.Spec.Template.DeepCopy(),
		},
	}
	if lifecycle.RolloutDue(deployment, s.now) {
		set.Annotations[lifecycle.RolloutAfterAnnotation] = deployment.Spec.Rollout.After.UTC().Format(time.RFC3339)
	}
	keepUp(deployment, set)
	setSize(deployment, set)
	setOrDelete(set.Annotations, changeCauseAnnotation, deployment.Annotations[changeCauseAnnotation])
	set.Annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(revision, 10)
	return set
}

// desired returns a set as it is to be. What has no Machines and gets none is history: it stays as it was, or it could
// not be gone back to.
func desired(s snapshot, set, current *clusterv1.MachineSet, next lifecycle.RolloutPlan, revision int64) *clusterv1.MachineSet {
	replicas, scaled := next.Replicas[set.Name]
	if set != current && !scaled && idle(s, set) {
		return set
	}
	out := set.DeepCopy()
	if selectsItsMachines(s.deployment) {
		keepUp(s.deployment, out)
	}
	if scaled {
		out.Spec.Replicas = &replicas
	}
	// While a set is waited for, the difference between the size recorded and the one wanted must not be lost.
	if next.WaitsFor == "" {
		setSize(s.deployment, out)
	}
	disabled := ""
	switch {
	case set == current:
		out.Annotations[clusterv1.RevisionAnnotation] = strconv.FormatInt(revision, 10)
		setOrDelete(out.Annotations, changeCauseAnnotation, s.deployment.Annotations[changeCauseAnnotation])
	case current != nil && onDelete(s.deployment):
		disabled = "true"
	}
	setOrDelete(out.Annotations, clusterv1.DisableMachineCreateAnnotation, disabled)
	return out
}

// keepUp brings onto a set what needs no rollout.
func keepUp(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) {
	spec, template := &deployment.Spec, deployment.Spec.Template
	own := labels.Set{}
	if value, ok := set.Labels[clusterv1.MachineDeploymentUniqueLabel]; ok {
		own[clusterv1.MachineDeploymentUniqueLabel] = value
	}
	set.Spec.Template.Labels = labels.Merge(template.Labels, own)
	set.Spec.Template.Annotations = maps.Clone(template.Annotations)
	lifecycle.PropagateSpec(&set.Spec.Template.Spec, template.Spec)
	set.Spec.MachineNaming = spec.MachineNaming
	set.Spec.Deletion.Order = spec.Deletion.Order

	annotations := maps.Clone(deployment.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return key == changeCauseAnnotation || isOwnAnnotation(key)
	})
	own[clusterv1.MachineDeploymentNameLabel] = contract.LabelValue(deployment.Name)
	lifecycle.Propagate(set, labels.Merge(template.Labels, own), annotations)
}

func isOwnAnnotation(key string) bool {
	return slices.Contains(ownAnnotations, key) || strings.HasPrefix(key, lifecycle.CapacityPrefix)
}

// setSize records on a set how large the deployment is and may become.
func setSize(deployment *clusterv1.MachineDeployment, set *clusterv1.MachineSet) {
	wanted := *deployment.Spec.Replicas
	most := wanted + lifecycle.RolloutBounds(deployment.Spec.Rollout.Strategy, wanted).Surge
	set.Annotations[clusterv1.DesiredReplicasAnnotation] = strconv.Itoa(int(wanted))
	set.Annotations[clusterv1.MaxReplicasAnnotation] = strconv.Itoa(int(most))
}

func setOrDelete(m map[string]string, key, value string) {
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}
