package kubeadm

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/Masterminds/semver/v3"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/cloudinit"
)

const (
	v1beta4 = "kubeadm.k8s.io/v1beta4"
	v1beta3 = "kubeadm.k8s.io/v1beta3"
)

var (
	// firstV1Beta3 and firstV1Beta4 are the Kubernetes versions whose kubeadm first reads that API
	// (kubernetes.io, "kubeadm Configuration").
	firstV1Beta3 = semver.MustParse("1.22.0-0")
	firstV1Beta4 = semver.MustParse("1.31.0-0")
)

// InitConfig returns the two documents that kubeadm init reads on the first control plane machine,
// which is to run the given Kubernetes version.
func InitConfig(spec bootstrapv1.KubeadmConfigSpec, cluster *clusterv1.Cluster, version string) ([]byte, error) {
	if err := Check(spec, version); err != nil {
		return nil, err
	}
	api, err := apiFor(version)
	if err != nil {
		return nil, err
	}
	initConfig := newInitConfiguration(spec.InitConfiguration)
	documents := []any{newClusterConfiguration(spec.ClusterConfiguration, cluster, version), initConfig}
	if api == v1beta3 {
		documents[0], err = downgrade(documents[0], initConfig.Timeouts)
		if err != nil {
			return nil, err
		}
		documents[1], err = downgrade(documents[1], nil)
		if err != nil {
			return nil, err
		}
	}
	return encode(documents...)
}

// Check tells why no machine of a Kubernetes version can be made from spec, if so; by the field, without "spec.".
func Check(spec bootstrapv1.KubeadmConfigSpec, version string) error {
	if err := checkFeatureGates(spec.ClusterConfiguration.FeatureGates, version); err != nil {
		return err
	}
	return checkTokens(spec.InitConfiguration.BootstrapTokens)
}

// checkTokens refuses expires, which kubeadm can never read from a file: it first sets the ttl that is missing, and then
// complains that both are there.
func checkTokens(tokens []bootstrapv1.BootstrapToken) error {
	for i, token := range tokens {
		if !token.Expires.IsZero() {
			return fmt.Errorf("initConfiguration.bootstrapTokens[%d].expires is refused by every kubeadm that reads a file: set ttlSeconds instead", i)
		}
	}
	return nil
}

// JoinConfig returns the document that kubeadm join reads on every other machine.
func JoinConfig(join bootstrapv1.JoinConfiguration, version string) ([]byte, error) {
	api, err := apiFor(version)
	if err != nil {
		return nil, err
	}
	joinConfig := newJoinConfiguration(join)
	var document any = joinConfig
	if api == v1beta3 {
		if document, err = downgrade(joinConfig, joinConfig.Timeouts); err != nil {
			return nil, err
		}
	}
	return encode(document)
}

// apiFor returns the newest kubeadm API that the kubeadm of this Kubernetes version reads.
func apiFor(version string) (string, error) {
	parsed, err := semver.NewVersion(version)
	switch {
	case err != nil:
		return "", fmt.Errorf("Kubernetes version %q: %w: give it as v1.37.2", version, err)
	case parsed.LessThan(firstV1Beta3):
		return "", fmt.Errorf("Kubernetes version %q: its kubeadm is too old: use v1.22 or later", version)
	case parsed.LessThan(firstV1Beta4):
		return v1beta3, nil
	default:
		return v1beta4, nil
	}
}

func encode(documents ...any) ([]byte, error) {
	var out bytes.Buffer
	for i, document := range documents {
		data, err := cloudinit.MarshalYAML(document)
		if err != nil {
			return nil, fmt.Errorf("encode kubeadm configuration: %w", err)
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(data)
	}
	return out.Bytes(), nil
}

// fields returns value as the generic form of its JSON.
func fields(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode kubeadm configuration: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("decode kubeadm configuration: %w", err)
	}
	return out, nil
}
