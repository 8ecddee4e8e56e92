package controlplane

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// remediation is what is done about Machines that failed their health check.
type remediation struct {
	// remove is to be deleted for it; attempt is what to remember of that.
	remove  *replica
	attempt attempt
	// tell is what OwnerRemediated of Machines is to say; nil takes the condition away.
	tell []verdict
	// replaceFirst asks for another Machine before the only one can go.
	replaceFirst bool
	// again is when a retry is allowed; zero when no time has to pass.
	again time.Duration
	// settled tells that the annotation of the control plane tells of an attempt that has ended.
	settled bool
}

type verdict struct {
	replica   *replica
	condition *metav1.Condition
}

// attempt is the value of upstream's annotations remediation-in-progress, on a control plane between the deletion of a
// Machine and the creation of the one in its place, and remediation-for, on the latter.
type attempt struct {
	// Machine is the one with which a series of attempts began.
	Machine string      `json:"machine"`
	Time    metav1.Time `json:"timestamp"`
	// Retries is how many Machines in its place failed in turn.
	Retries int32 `json:"retryCount"`
}

func (a attempt) String() string {
	// Strings and numbers always encode.
	data, _ := json.Marshal(a)
	return string(data)
}

// readAttempt returns what an annotation tells; false where that is nothing that can be read.
func readAttempt(annotations map[string]string, name string) (attempt, bool) {
	var a attempt
	err := json.Unmarshal([]byte(annotations[name]), &a)
	return a, err == nil && a.Machine != ""
}

// planRemediation decides which one of the Machines that a health check wants replaced goes now, and what to tell all of
// them. whyNoneNew is why nothing would take its place; empty when something would.
func planRemediation(s *snapshot, whyNoneNew string) remediation {
	var out remediation
	var sick []*replica
	for _, r := range s.replicas {
		switch {
		case r.deleting() || !conditions.IsFalse(r.machine, clusterv1.MachineOwnerRemediatedCondition):
		case conditions.IsTrue(r.machine, clusterv1.MachineHealthCheckSucceededCondition):
			out.tell = append(out.tell, verdict{replica: r})
		case r.sick():
			sick = append(sick, r)
		}
	}
	if len(sick) == 0 {
		_, begun := readAttempt(s.controlPlane.Annotations, controlplanev1.RemediationInProgressAnnotation)
		out.settled = begun && len(s.replicas) >= s.desired() && !slices.ContainsFunc(s.replicas, (*replica).deleting)
		return out
	}
	// The least that is lost goes first: a machine that never joined, then the newest.
	slices.SortFunc(sick, func(a, b *replica) int {
		return cmp.Or(
			cmp.Compare(len(a.node()), 0)-cmp.Compare(len(b.node()), 0),
			b.machine.CreationTimestamp.Compare(a.machine.CreationTimestamp.Time),
			strings.Compare(a.machine.Name, b.machine.Name),
		)
	})
	for _, r := range sick {
		because := whyNoneNew
		if because == "" {
			because = whyNotYet(s, r, out.remove)
		}
		if because != "" {
			out.postpone(r, because)
			continue
		}
		if refused := whyNever(s, r); refused != "" {
			out.refuse(r, refused)
			continue
		}
		if len(s.replicas) == 1 && s.initialized() {
			out.replaceFirst = true
			out.postpone(r, "Another machine takes the place of this one first")
			continue
		}
		next, wait, exhausted := nextAttempt(s, r)
		switch {
		case exhausted != "":
			out.refuse(r, exhausted)
		case wait > 0:
			out.again = earliest(out.again, wait)
			out.postpone(r, fmt.Sprintf("The machine in whose place this one came was replaced at %s: the next try is after spec.remediation.retryPeriodSeconds",
				next.Time.UTC().Format(time.RFC3339)))
		default:
			out.remove, out.attempt = r, next
			out.say(r, controlplanev1.KubeadmControlPlaneMachineRemediationMachineDeletingReason, "Machine is being deleted; another takes its place when it is gone")
		}
	}
	return out
}

func (out *remediation) say(r *replica, reason, message string) {
	out.tell = append(out.tell, verdict{r, ptr.To(conditions.False(clusterv1.MachineOwnerRemediatedCondition, reason, "%s", message))})
}

func (out *remediation) postpone(r *replica, message string) {
	out.say(r, controlplanev1.KubeadmControlPlaneMachineRemediationDeferredReason, message)
}

func (out *remediation) refuse(r *replica, message string) {
	out.say(r, controlplanev1.KubeadmControlPlaneMachineCannotBeRemediatedReason, message)
}

// sick tells whether a health check asked for a Machine's replacement, and nobody has objected since.
func (r *replica) sick() bool {
	_, skip := r.machine.Annotations[clusterv1.MachineSkipRemediationAnnotation]
	return !skip && !r.deleting() &&
		conditions.IsFalse(r.machine, clusterv1.MachineHealthCheckSucceededCondition) &&
		conditions.IsFalse(r.machine, clusterv1.MachineOwnerRemediatedCondition)
}

// whyNotYet tells what a remediation waits for that ends by itself; empty for nothing.
func whyNotYet(s *snapshot, r, chosen *replica) string {
	if chosen != nil {
		return "Machine " + chosen.machine.Name + " is replaced first"
	}
	for _, other := range s.replicas {
		switch {
		case other == r || other.sick():
		case other.deleting() && !waitsForUs(other):
			return "Machine " + other.machine.Name + " is being deleted"
		case !other.deleting() && other.node() == "":
			return "Machine " + other.machine.Name + " has no Node yet"
		}
	}
	return ""
}

// whyNever tells what forbids a remediation until a person, or a machine that comes back, changes it; empty for nothing.
func whyNever(s *snapshot, r *replica) string {
	switch {
	case !s.initialized():
		return ""
	case quorumLost(s):
		return "Nothing is deleted while the API server of the Cluster does not answer:\n" + recoverySteps(s)
	case len(s.replicas) == 1:
		if problems := unhealthy(s, nil); len(problems) > 0 {
			return "It is the only machine of the control plane, and as it is no other can take its place:\n* " + strings.Join(problems, "\n* ")
		}
		return ""
	}
	if reason := mayLose(s, r); reason != "" {
		return "Nothing is deleted: " + reason
	}
	return ""
}

// nextAttempt returns what would be remembered of replacing a Machine now, how long that has to wait, and why it is not
// tried any more.
func nextAttempt(s *snapshot, r *replica) (next attempt, wait time.Duration, exhausted string) {
	limits := s.controlPlane.Spec.Remediation
	last, isRetry := readAttempt(r.machine.Annotations, controlplanev1.RemediationForAnnotation)
	healthyFor := time.Duration(ptr.Deref(limits.MinHealthyPeriodSeconds, controlplanev1.DefaultMinHealthyPeriodSeconds)) * time.Second
	if !isRetry || s.now.Sub(last.Time.Time) >= healthyFor {
		return attempt{Machine: r.machine.Name, Time: metav1.NewTime(s.now.UTC().Truncate(time.Second))}, 0, ""
	}
	if limits.MaxRetry != nil && last.Retries >= *limits.MaxRetry {
		return last, 0, fmt.Sprintf("%d machines in the place of Machine %s failed in turn, and spec.remediation.maxRetry is %d: "+
			"find out why with kubectl machines tree, then raise maxRetry or delete this Machine", last.Retries+1, last.Machine, *limits.MaxRetry)
	}
	period := time.Duration(ptr.Deref(limits.RetryPeriodSeconds, 0)) * time.Second
	if left := last.Time.Add(period).Sub(s.now); left > 0 {
		return last, left, ""
	}
	return attempt{Machine: last.Machine, Time: metav1.NewTime(s.now.UTC().Truncate(time.Second)), Retries: last.Retries + 1}, 0, ""
}

// lastRemediation returns the newest attempt that is recorded; zero without any.
func lastRemediation(s *snapshot) controlplanev1.LastRemediationStatus {
	newest, found := readAttempt(s.controlPlane.Annotations, controlplanev1.RemediationInProgressAnnotation)
	for _, r := range s.replicas {
		if a, ok := readAttempt(r.machine.Annotations, controlplanev1.RemediationForAnnotation); ok && (!found || newest.Time.Before(&a.Time)) {
			newest, found = a, true
		}
	}
	if !found {
		return s.controlPlane.Status.LastRemediation
	}
	return controlplanev1.LastRemediationStatus{Machine: newest.Machine, Time: newest.Time, RetryCount: &newest.Retries}
}
