package controlplane

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// upToDate is the condition with which the control plane tells its Machines whether they are what it
// asks for now.
func upToDate(s *snapshot, r *replica) metav1.Condition {
	differences := differences(s, r)
	if len(differences) == 0 {
		return conditions.True(clusterv1.MachineUpToDateCondition, clusterv1.MachineUpToDateReason, "")
	}
	return conditions.False(clusterv1.MachineUpToDateCondition, clusterv1.MachineNotUpToDateReason, "* %s", strings.Join(differences, "\n* "))
}

// differences says, one line each, why a Machine is to be replaced. An object that is missing is not a difference: it may
// have been deleted, or not been seen yet.
//
// A Machine that has just been made must have none, whatever the API server, its defaults and other controllers have
// made of it meanwhile: else it would be replaced for ever.
func differences(s *snapshot, r *replica) []string {
	var lines []string
	spec := s.controlPlane.Spec
	if r.machine.Spec.Version != spec.Version {
		lines = append(lines, fmt.Sprintf("Version %s, %s required", r.machine.Spec.Version, spec.Version))
	}
	if r.config != nil && !sameConfig(r.config.Spec, spec.KubeadmConfigSpec, r.machine.Spec.Version) {
		lines = append(lines, "KubeadmConfig differs from spec.kubeadmConfigSpec")
	}
	if r.infrastructure != nil {
		annotations := r.infrastructure.GetAnnotations()
		name, kind := annotations[clusterv1.TemplateClonedFromNameAnnotation], annotations[clusterv1.TemplateClonedFromGroupKindAnnotation]
		want := spec.MachineTemplate.Spec.InfrastructureRef
		// Machines that were not cloned from a template cannot be compared with one.
		if name != "" && kind != "" && (name != want.Name || kind != want.GroupKind().String()) {
			lines = append(lines, fmt.Sprintf("Infrastructure template %s/%s, %s/%s required", kind, name, want.GroupKind(), want.Name))
		}
	}
	if after := spec.Rollout.After.Time; !after.IsZero() && !s.now.Before(after) && madeBefore(r.machine, after) {
		lines = append(lines, "Made before spec.rollout.after, "+after.UTC().Format(time.RFC3339))
	}
	if at := renewalDue(s, r); !at.IsZero() && !s.now.Before(at) {
		lines = append(lines, fmt.Sprintf("Certificates expire at %s: spec.rollout.before.certificatesExpiryDays is %d",
			certificatesExpiry(r).UTC().Format(time.RFC3339), spec.Rollout.Before.CertificatesExpiryDays))
	}
	return lines
}

// madeBefore goes by what the Machine was made for, where that is recorded: the clock that stamps objects and the one
// that decides that the time has come are two.
func madeBefore(machine *clusterv1.Machine, after time.Time) bool {
	madeFor, err := time.Parse(time.RFC3339, machine.Annotations[lifecycle.RolloutAfterAnnotation])
	return machine.CreationTimestamp.Time.Before(after) && (err != nil || madeFor.Before(after))
}

// renewalDue returns when a Machine is to be replaced for the sake of its certificates; zero where that is not asked for
// or not known. It is never in the first half of their life: new ones that are due at once would be replaced for ever.
func renewalDue(s *snapshot, r *replica) time.Time {
	days, expiry := s.controlPlane.Spec.Rollout.Before.CertificatesExpiryDays, certificatesExpiry(r)
	if days == 0 || expiry.IsZero() {
		return time.Time{}
	}
	made := r.machine.CreationTimestamp.Time
	due, half := expiry.AddDate(0, 0, -int(days)), made.Add(expiry.Sub(made)/2)
	if due.Before(half) {
		return half
	}
	return due
}

// certificatesExpiry returns what is recorded with the Machine or its bootstrap config; zero when nothing is. What we
// have just read stands in the annotations; the Machine's controller takes it over into the status later.
func certificatesExpiry(r *replica) time.Time {
	recorded := r.machine.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	if recorded == "" && r.config != nil {
		recorded = r.config.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation]
	}
	at, err := time.Parse(time.RFC3339, recorded)
	if err != nil {
		return r.machine.Status.CertificatesExpiryDate.Time
	}
	return at
}

// nextRollout returns how long it is until time alone makes a Machine out of date; zero for never.
func nextRollout(s *snapshot) time.Duration {
	var wait time.Duration
	until := func(at time.Time) {
		if left := at.Sub(s.now); !at.IsZero() && left > 0 {
			wait = earliest(wait, left)
		}
	}
	until(s.controlPlane.Spec.Rollout.After.Time)
	for _, r := range s.replicas {
		until(renewalDue(s, r))
	}
	return wait
}

// sameConfig compares what a machine was made from with what one of its version would be made from now, as one that
// initializes or as one that joins: what concerns the other kind changes nothing on it.
func sameConfig(have, want bootstrapv1.KubeadmConfigSpec, version string) bool {
	_, chosen := want.ClusterConfiguration.FeatureGates[kubeletLocalMode]
	wanted := kubeadmConfigSpec(want, version, joins(have.JoinConfiguration))
	return reflect.DeepEqual(comparable(have, chosen), comparable(wanted, chosen))
}

// joins tells whether a machine of a control plane was made to join.
func joins(config bootstrapv1.JoinConfiguration) bool {
	return config.ControlPlane != nil || config.Discovery.BootstrapToken.Token != "" || config.Discovery.File.IsDefined()
}

// comparable returns a configuration as the API server would store it, without what is filled in for a single machine,
// what changes nothing on one that exists, and the feature gate that we add unless it was chosen.
func comparable(spec bootstrapv1.KubeadmConfigSpec, chosen bool) any {
	out := *spec.DeepCopy()
	out.ClusterConfiguration.ControlPlaneEndpoint = ""
	out.ClusterConfiguration.DNS = bootstrapv1.DNS{}
	out.ClusterConfiguration.CACertificateValidityPeriodDays = 0
	out.JoinConfiguration.Discovery = bootstrapv1.Discovery{}
	out.InitConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = nil
	out.JoinConfiguration.Timeouts.ControlPlaneComponentHealthCheckSeconds = nil
	if !chosen && out.ClusterConfiguration.FeatureGates[kubeletLocalMode] {
		delete(out.ClusterConfiguration.FeatureGates, kubeletLocalMode)
	}
	if out.Format == "" {
		out.Format = bootstrapv1.CloudConfig
	}
	// Types of the API always encode, and what they encode to can be read.
	data, _ := json.Marshal(out)
	var fields any
	_ = json.Unmarshal(data, &fields)
	return withoutEmpty(fields)
}

// withoutEmpty drops fields that are null or objects without fields: whether they are left out depends on who wrote them
// last. Empty lists stay: no taints are something else than the default ones.
func withoutEmpty(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			v[key] = withoutEmpty(field)
			if object, ok := v[key].(map[string]any); v[key] == nil || ok && len(object) == 0 {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return value
}
