package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// HistoryLimit is how many sets without Machines a deployment keeps besides the current one, as Deployments do. The
// deployment of v1beta2 has no field for it.
const HistoryLimit = 10

// Revision returns the number of a set or deployment in the deployment's history; 0 where it has none.
func Revision(obj metav1.Object) int64 {
	n, err := strconv.ParseInt(obj.GetAnnotations()[clusterv1.RevisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// OldestFirst compares two sets of a deployment by revision; without one, or with the same, by age.
func OldestFirst(a, b *clusterv1.MachineSet) int {
	return cmp.Or(
		cmp.Compare(Revision(a), Revision(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// Undo returns the template that brings a deployment back to a revision, and that revision. With 0 it is the newest
// whose Machines would differ from those that the deployment asks for now. The error says why there is none.
func Undo(deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, to int64) (clusterv1.MachineTemplateSpec, int64, error) {
	sets = slices.SortedFunc(slices.Values(sets), func(a, b *clusterv1.MachineSet) int { return OldestFirst(b, a) })
	var known []string
	for _, set := range sets {
		revision := Revision(set)
		if revision == 0 || !set.DeletionTimestamp.IsZero() {
			continue
		}
		known = append(known, strconv.FormatInt(revision, 10))
		template := templateOf(set)
		switch {
		case to == 0 && len(TemplateDifferences(template, deployment.Spec.Template)) == 0, to != 0 && to != revision:
		case equality.Semantic.DeepEqual(template, deployment.Spec.Template):
			return clusterv1.MachineTemplateSpec{}, 0, fmt.Errorf("MachineDeployment %q has the template of revision %d already", deployment.Name, to)
		default:
			return template, revision, nil
		}
	}
	switch {
	case to != 0 && len(known) == 0:
		return clusterv1.MachineTemplateSpec{}, 0, fmt.Errorf("MachineDeployment %q has no revision %d, nor any other: its controller has made no MachineSet yet", deployment.Name, to)
	case to != 0:
		slices.Reverse(known)
		return clusterv1.MachineTemplateSpec{}, 0, fmt.Errorf("MachineDeployment %q has no revision %d: there are %s", deployment.Name, to, strings.Join(known, ", "))
	}
	return clusterv1.MachineTemplateSpec{}, 0, fmt.Errorf("MachineDeployment %q has no other template in its history: there is nothing to go back to", deployment.Name)
}

// templateOf returns the template of a deployment from which a set was made.
func templateOf(set *clusterv1.MachineSet) clusterv1.MachineTemplateSpec {
	template := *set.Spec.Template.DeepCopy()
	delete(template.Labels, clusterv1.MachineDeploymentUniqueLabel)
	return template
}
