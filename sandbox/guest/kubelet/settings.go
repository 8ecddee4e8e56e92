package kubelet

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kubeletapis "k8s.io/kubelet/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Where kubeadm's kubelet drop-in for systemd has the kubelet's files.
const (
	ConfigPath     = "/var/lib/kubelet/config.yaml"
	flagsPath      = "/var/lib/kubelet/kubeadm-flags.env"
	kubeconfigPath = "/etc/kubernetes/kubelet.conf"
	bootstrapPath  = "/etc/kubernetes/bootstrap-kubelet.conf"
	certDir        = "/var/lib/kubelet/pki"
)

// Settings are what the hollow kubelet takes from flags and configuration.
type Settings struct {
	NodeName      string
	CloudProvider string
	ProviderID    string
	NodeIP        string
	Labels        map[string]string
	Taints        []corev1.Taint
	StaticPodPath string
	ClientCAFile  string
	HealthzPort   int
	MaxPods       int64
	// WithoutEffect are flags that a hollow kubelet has no use for.
	WithoutEffect []string
}

// ReadSettings reads the files that kubeadm writes. hostname is the node's name
// when no flag overrides it. Errors are those that keep a kubelet from starting.
func ReadSettings(root rootfs.Root, hostname string) (Settings, error) {
	raw, err := os.ReadFile(root.Path(ConfigPath))
	if err != nil {
		return Settings{}, fmt.Errorf("failed to load kubelet config file, path: %s, error: %s", ConfigPath, root.Guest(err.Error()))
	}
	config := kubeletconfig.KubeletConfiguration{}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return Settings{}, fmt.Errorf("failed to load kubelet config file, path: %s, error: %w", ConfigPath, err)
	}
	settings := Settings{
		NodeName: hostname, ProviderID: config.ProviderID, StaticPodPath: config.StaticPodPath,
		Taints: config.RegisterWithTaints, ClientCAFile: config.Authentication.X509.ClientCAFile,
		HealthzPort: 10248, MaxPods: int64(config.MaxPods), Labels: map[string]string{},
	}
	if config.HealthzPort != nil {
		settings.HealthzPort = int(*config.HealthzPort)
	}
	if settings.MaxPods == 0 {
		settings.MaxPods = 110
	}
	env, err := os.ReadFile(root.Path(flagsPath))
	if err != nil && !os.IsNotExist(err) {
		return Settings{}, fmt.Errorf("read %s: %s", flagsPath, root.Guest(err.Error()))
	}
	return settings, settings.applyFlags(splitFlags(string(env)))
}

// splitFlags returns the arguments of the one variable that kubeadm's file has,
// split as systemd splits it.
func splitFlags(env string) []string {
	_, value, _ := strings.Cut(strings.TrimSpace(env), "=")
	return strings.Fields(strings.Trim(value, `"`))
}

func (s *Settings) applyFlags(flags []string) error {
	for _, flag := range flags {
		name, value, _ := strings.Cut(strings.TrimLeft(flag, "-"), "=")
		var err error
		switch name {
		case "hostname-override":
			s.NodeName = strings.ToLower(value)
		case "cloud-provider":
			// In-tree providers are gone since v1.31.
			if value != "" && value != "external" {
				err = fmt.Errorf("unsupported value %q: only external is known", value)
			}
			s.CloudProvider = value
		case "provider-id":
			s.ProviderID = value
		case "node-ip":
			if net.ParseIP(value) == nil && !strings.Contains(value, ",") {
				err = fmt.Errorf("bad --node-ip %q", value)
			}
			s.NodeIP = value
		case "node-labels":
			err = s.addLabels(value)
		case "register-with-taints":
			s.Taints, err = parseTaints(value)
		case "config", "kubeconfig", "bootstrap-kubeconfig", "container-runtime-endpoint", "pod-infra-container-image":
		default:
			if !knownFlag(name) {
				return fmt.Errorf("failed to parse kubelet flag: unknown flag: --%s", name)
			}
			s.WithoutEffect = append(s.WithoutEffect, name)
		}
		if err != nil {
			return fmt.Errorf("failed to parse kubelet flag: invalid argument %q for %q flag: %w", value, "--"+name, err)
		}
	}
	return nil
}

// addLabels refuses what a kubelet refuses to set on its own Node.
func (s *Settings) addLabels(list string) error {
	var refused []string
	for pair := range strings.SplitSeq(list, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("label %q has no value", pair)
		}
		s.Labels[key] = value
		if isKubernetesLabel(key) && !kubeletapis.IsKubeletLabel(key) {
			refused = append(refused, key)
		}
	}
	if len(refused) > 0 {
		slices.Sort(refused)
		return fmt.Errorf("unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: %s", strings.Join(refused, ", "))
	}
	return nil
}

func isKubernetesLabel(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	for _, domain := range []string{"kubernetes.io", "k8s.io"} {
		if namespace == domain || strings.HasSuffix(namespace, "."+domain) {
			return true
		}
	}
	return false
}

// parseTaints reads key[=value]:effect, comma-separated.
func parseTaints(list string) ([]corev1.Taint, error) {
	var taints []corev1.Taint
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		rest, effect, ok := strings.Cut(item, ":")
		taint := corev1.Taint{Effect: corev1.TaintEffect(effect)}
		taint.Key, taint.Value, _ = strings.Cut(rest, "=")
		effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
		if !ok || taint.Key == "" || !slices.Contains(effects, taint.Effect) {
			return nil, fmt.Errorf("invalid taint spec: %s", item)
		}
		taints = append(taints, taint)
	}
	return taints, nil
}
