package machine

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/contract"
)

// staleDeletion is how long a deletion may take before the Ready condition repeats what holds it up.
const staleDeletion = 15 * time.Minute

// makerGrace is how long whoever makes Machines may take to make the objects of a new one too.
const makerGrace = 30 * time.Second

// report writes phase and conditions of the Machine from the snapshot. It returns when they have to be looked at again
// though nothing happens until then; zero for never.
func report(s *snapshot) time.Duration {
	machine := s.machine
	healthy, ready, again := nodeConditions(s)
	for _, c := range []metav1.Condition{
		bootstrapCondition(s),
		infrastructureCondition(s),
		healthy,
		ready,
		conditions.False(clusterv1.MachineUpdatingCondition, clusterv1.MachineNotUpdatingReason, ""),
		deletingCondition(s),
	} {
		conditions.Set(machine, c)
	}
	conditions.Set(machine, readyCondition(s))
	available, untilAvailable := availableCondition(s)
	conditions.Set(machine, available)

	if now := phase(s); now != s.phaseBefore || machine.Status.LastUpdated.IsZero() {
		machine.Status.SetTypedPhase(now)
		machine.Status.LastUpdated = metav1.NewTime(s.now.Truncate(time.Second))
	}
	machine.Status.CertificatesExpiryDate = certificatesExpiry(s)
	machine.Status.ObservedGeneration = machine.Generation
	return earliest(earliest(again, untilAvailable), untilMade(s))
}

// certificatesExpiry returns when the certificates of a control plane's machine end, as its control plane or its bootstrap
// provider tells by an annotation on either object; the Machine's own goes first.
func certificatesExpiry(s *snapshot) metav1.Time {
	const annotation = clusterv1.MachineCertificatesExpiryDateAnnotation
	if _, ok := s.machine.Labels[clusterv1.MachineControlPlaneLabel]; !ok {
		return metav1.Time{}
	}
	value, told := s.machine.Annotations[annotation]
	if !told && s.bootstrap.obj != nil {
		value, told = s.bootstrap.obj.GetAnnotations()[annotation]
	}
	if !told && s.bootstrap.failed != nil {
		return s.machine.Status.CertificatesExpiryDate
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return metav1.Time{}
	}
	return metav1.NewTime(at)
}

// untilMade returns what is left of makerGrace for a Machine whose objects are not all there, zero for none.
func untilMade(s *snapshot) time.Duration {
	if (s.bootstrap.missing == nil && s.infrastructure.missing == nil) || !s.machine.DeletionTimestamp.IsZero() {
		return 0
	}
	return max(0, makerGrace-s.now.Sub(s.machine.CreationTimestamp.Time))
}

func bootstrapCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.MachineBootstrapConfigReadyCondition
	if !s.bootstrap.ref.IsDefined() {
		if s.machine.Spec.Bootstrap.DataSecretName != nil {
			return conditions.True(kind, clusterv1.MachineBootstrapDataSecretProvidedReason, "")
		}
		return conditions.False(kind, clusterv1.MachineBootstrapConfigNotReadyReason,
			"Neither spec.bootstrap.configRef nor spec.bootstrap.dataSecretName is set: set one of them")
	}
	created := isTrue(s.machine.Status.Initialization.BootstrapDataSecretCreated)
	return externalCondition(s, kind, s.bootstrap, created, "status.initialization.dataSecretCreated", "spec.bootstrap.configRef")
}

func infrastructureCondition(s *snapshot) metav1.Condition {
	const kind = clusterv1.MachineInfrastructureReadyCondition
	provisioned := isTrue(s.machine.Status.Initialization.InfrastructureProvisioned)
	if obj := s.infrastructure.obj; obj != nil && contract.Provisioned(obj) && contract.ProviderID(obj) == "" {
		return conditions.False(kind, clusterv1.MachineInfrastructureNotReadyReason,
			"%s says that it is provisioned, but has no spec.providerID: its provider must set it", describe(s.infrastructure.ref))
	}
	return externalCondition(s, kind, s.infrastructure, provisioned, "status.initialization.provisioned", "spec.infrastructureRef")
}

// externalCondition mirrors the Ready condition of an object, or tells what its contract field says, or why there is
// no object.
func externalCondition(s *snapshot, kind string, e external, initialized bool, field, refField string) metav1.Condition {
	if message := failureOf(e); message != "" {
		return conditions.False(kind, clusterv1.NotReadyReason, "%s failed: %s", describe(e.ref), message)
	}
	if e.failed != nil {
		return conditions.Unknown(kind, clusterv1.InternalErrorReason, "%s", e.failed.Error())
	}
	if e.foreign != nil {
		return conditions.False(kind, clusterv1.NotReadyReason, "%s", e.foreign.Error())
	}
	if e.obj == nil {
		switch {
		case !s.machine.DeletionTimestamp.IsZero():
			return conditions.False(kind, clusterv1.ObjectDeletedReason, "%s has been deleted", describe(e.ref))
		case initialized:
			return conditions.False(kind, clusterv1.ObjectDeletedReason,
				"%s has been deleted while the Machine still exists: delete the Machine to have it replaced", describe(e.ref))
		}
		if maker := metav1.GetControllerOf(s.machine); maker != nil && s.now.Sub(s.machine.CreationTimestamp.Time) < makerGrace {
			return conditions.False(kind, clusterv1.NotReadyReason, "Waiting for %s %q to make %s", maker.Kind, maker.Name, describe(e.ref))
		}
		return conditions.False(kind, clusterv1.ObjectDoesNotExistReason,
			"%s does not exist (%v): create it or correct %s", describe(e.ref), e.missing, refField)
	}
	if mirrored := conditions.Get(contract.Conditions(e.obj), clusterv1.ReadyCondition); mirrored != nil {
		c := metav1.Condition{Type: kind, Status: mirrored.Status, Reason: mirrored.Reason, Message: mirrored.Message}
		if c.Reason == "" {
			c.Reason = clusterv1.InvalidConditionReportedReason
		}
		return c
	}
	if initialized {
		return conditions.True(kind, clusterv1.ReadyReason, "")
	}
	return conditions.False(kind, clusterv1.NotReadyReason, "%s %s is false", e.ref.Kind, field)
}

func failureOf(e external) string {
	if e.obj == nil {
		return ""
	}
	return contract.Failure(e.obj)
}

func deletingCondition(s *snapshot) metav1.Condition {
	switch {
	case s.machine.DeletionTimestamp.IsZero():
		return conditions.False(clusterv1.MachineDeletingCondition, clusterv1.MachineNotDeletingReason, "")
	case s.deletion == nil:
		return conditions.True(clusterv1.MachineDeletingCondition, clusterv1.MachineDeletingReason, "")
	}
	return conditions.True(clusterv1.MachineDeletingCondition, s.deletion.reason, "%s", s.deletion.message)
}

// readyCondition folds the others. What a deletion waits for changes with every pod, so it is left out until it has
// lasted long enough to be a problem.
func readyCondition(s *snapshot) metav1.Condition {
	deleting := conditions.Part{Type: clusterv1.MachineDeletingCondition, Negative: true}
	if at := s.machine.DeletionTimestamp; at != nil && s.now.Sub(at.Time) < staleDeletion {
		deleting.Brief = "Machine deletion in progress"
		if s.deletion != nil {
			deleting.Brief += ", stage: " + s.deletion.reason
		}
	}
	parts := []conditions.Part{
		deleting,
		{Type: clusterv1.MachineBootstrapConfigReadyCondition},
		{Type: clusterv1.MachineInfrastructureReadyCondition},
		{Type: clusterv1.MachineNodeHealthyCondition},
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Optional: true},
		{Type: clusterv1.MachineUpdatingCondition, Negative: true},
	}
	if !s.machine.DeletionTimestamp.IsZero() {
		// That the objects go one after the other is the point of a deletion.
		parts = parts[:1]
	}
	for _, gate := range s.machine.Spec.ReadinessGates {
		parts = append(parts, conditions.Part{Type: gate.ConditionType, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	return conditions.Summary(s.machine, clusterv1.MachineReadyCondition, conditions.Reasons{
		True: clusterv1.MachineReadyReason, False: clusterv1.MachineNotReadyReason, Unknown: clusterv1.MachineReadyUnknownReason,
	}, parts)
}

// availableCondition is Ready for minReadySeconds. The second result is the time that is left.
func availableCondition(s *snapshot) (metav1.Condition, time.Duration) {
	const kind = clusterv1.MachineAvailableCondition
	ready := conditions.Get(s.machine, clusterv1.MachineReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return conditions.False(kind, clusterv1.MachineNotReadyReason, ""), 0
	}
	minReady := time.Duration(0)
	if seconds := s.machine.Spec.MinReadySeconds; seconds != nil {
		minReady = time.Duration(*seconds) * time.Second
	}
	if left := minReady - s.now.Sub(ready.LastTransitionTime.Time); left > 0 {
		return conditions.False(kind, clusterv1.MachineWaitingForMinReadySecondsReason,
			"Ready since %s, available when that was %s ago", stamp(ready.LastTransitionTime.Time), minReady), left
	}
	return conditions.True(kind, clusterv1.MachineAvailableReason, ""), 0
}

// stamp writes a time into a message.
func stamp(t time.Time) string {
	return t.UTC().Format(time.RFC3339)
}

// bullets joins lines into a list; a single line stays a sentence.
func bullets(lines []string) string {
	if len(lines) == 1 {
		return lines[0]
	}
	var out []string
	for _, line := range lines {
		out = append(out, fmt.Sprintf("* %s", line))
	}
	return strings.Join(out, "\n")
}
