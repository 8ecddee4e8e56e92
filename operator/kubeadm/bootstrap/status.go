package bootstrap

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/ignition"
	"github.com/millwright-dev/millwright/internal/kubeadm"
)

// dataAvailable says that the machine can start: its user data is in the named Secret. What had to be left out of it is told
// with that.
func dataAvailable(s snapshot, secret string) {
	s.config.Status.DataSecretName = secret
	s.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	conditions.Set(s.config, conditions.True(bootstrapv1.KubeadmConfigDataSecretAvailableCondition, bootstrapv1.KubeadmConfigDataSecretAvailableReason, "%s", leftOut(s)))
	certificatesAvailable(s.config)
}

// leftOut says which fields of the spec are not in the user data, as what reads it does not know them.
func leftOut(s snapshot) string {
	var out []string
	version := s.machine.Spec.Version
	if lost := kubeadm.Lost(s.config.Spec, !joins(s.config.Spec.JoinConfiguration), version); len(lost) > 0 {
		out = append(out, fmt.Sprintf("kubeadm %s cannot be told, and does without: %s: use Kubernetes v1.31 or later, or remove them", version, strings.Join(lost, ", ")))
	}
	if s.config.Spec.Format == bootstrapv1.Ignition {
		if lost := ignition.Lost(s.config.Spec); len(lost) > 0 {
			out = append(out, fmt.Sprintf("Ignition cannot express, and does without: %s: remove them, or say it in spec.ignition", strings.Join(lost, ", ")))
		}
	}
	return strings.Join(out, "\n")
}

// dataMissing says what the user data waits for.
func dataMissing(config *bootstrapv1.KubeadmConfig, message string) {
	conditions.Set(config, conditions.False(bootstrapv1.KubeadmConfigDataSecretAvailableCondition, bootstrapv1.KubeadmConfigDataSecretNotAvailableReason, "%s", message))
}

func certificatesAvailable(config *bootstrapv1.KubeadmConfig) {
	conditions.Set(config, conditions.True(bootstrapv1.KubeadmConfigCertificatesAvailableCondition, bootstrapv1.KubeadmConfigCertificatesAvailableReason, ""))
}

func certificatesUnknown(config *bootstrapv1.KubeadmConfig, err error) {
	conditions.Set(config, conditions.Unknown(bootstrapv1.KubeadmConfigCertificatesAvailableCondition, bootstrapv1.KubeadmConfigCertificatesAvailableInternalErrorReason, "%s", err))
}

// certificatesMissing says what the user has to mend. Upstream has no reason of its own for it on this kind.
func certificatesMissing(config *bootstrapv1.KubeadmConfig, err error) {
	conditions.Set(config, conditions.False(bootstrapv1.KubeadmConfigCertificatesAvailableCondition, clusterv1.NotAvailableReason, "%s", err))
}

// summarize writes Ready from the two conditions that it consists of.
func summarize(config *bootstrapv1.KubeadmConfig) {
	config.Status.ObservedGeneration = config.Generation
	conditions.Set(config, conditions.Summary(config, bootstrapv1.KubeadmConfigReadyCondition, conditions.Reasons{
		True:    bootstrapv1.KubeadmConfigReadyReason,
		False:   bootstrapv1.KubeadmConfigNotReadyReason,
		Unknown: bootstrapv1.KubeadmConfigReadyUnknownReason,
	}, []conditions.Part{
		{Type: bootstrapv1.KubeadmConfigDataSecretAvailableCondition},
		// Not looked at before there is any use for them.
		{Type: bootstrapv1.KubeadmConfigCertificatesAvailableCondition, Optional: true},
	}))
}
