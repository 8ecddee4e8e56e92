package bootstrap

import (
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
)

// dataAvailable says that the machine can start: its user data is in the named Secret.
func dataAvailable(config *bootstrapv1.KubeadmConfig, secret string) {
	config.Status.DataSecretName = secret
	config.Status.Initialization.DataSecretCreated = ptr.To(true)
	conditions.Set(config, conditions.True(bootstrapv1.KubeadmConfigDataSecretAvailableCondition, bootstrapv1.KubeadmConfigDataSecretAvailableReason, ""))
	certificatesAvailable(config)
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
