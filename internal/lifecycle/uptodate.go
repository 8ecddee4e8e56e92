package lifecycle

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// UpToDate is the condition that tells whether the Machines of a set are what their deployment asks for at a time.
func UpToDate(set *clusterv1.MachineSet, deployment *clusterv1.MachineDeployment, now time.Time) metav1.Condition {
	reasons := OutOfDate(set, deployment, now)
	if len(reasons) == 0 {
		return conditions.True(clusterv1.MachineUpToDateCondition, clusterv1.MachineUpToDateReason, "")
	}
	return conditions.False(clusterv1.MachineUpToDateCondition, clusterv1.MachineNotUpToDateReason, "* %s", strings.Join(reasons, "\n* "))
}
