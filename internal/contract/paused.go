package contract

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// PausedCondition returns the condition Paused of an object: it says which of the two switches stops its controller.
// cluster may be nil.
func PausedCondition(cluster *clusterv1.Cluster, obj client.Object) metav1.Condition {
	var causes []string
	if cluster != nil && Paused(cluster, &metav1.ObjectMeta{}) {
		causes = append(causes, fmt.Sprintf("Cluster %q has spec.paused set", cluster.Name))
	}
	if Paused(nil, obj) {
		causes = append(causes, fmt.Sprintf("annotation %s is set", clusterv1.PausedAnnotation))
	}
	if len(causes) == 0 {
		return conditions.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")
	}
	return conditions.True(clusterv1.PausedCondition, clusterv1.PausedReason, "%s", strings.Join(causes, ", "))
}
