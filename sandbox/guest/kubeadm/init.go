package kubeadm

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/validation"
	phases "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/init"
	"k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/features"
	certsphase "k8s.io/kubernetes/cmd/kubeadm/app/phases/certs"
	kubeconfigphase "k8s.io/kubernetes/cmd/kubeadm/app/phases/kubeconfig"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
)

// initRun is the data that kubeadm's init phases share.
type initRun struct {
	Guest
	options
	cfg        *kubeadmapi.InitConfiguration
	paths      *clusterPaths
	ignored    sets.Set[string]
	externalCA bool
	client     clientset.Interface
}

var _ phases.InitData = &initRun{}

func (g Guest) runInit(o options) error {
	cfg, err := g.loadInit(o.config)
	if err != nil {
		return err
	}
	if o.nodeName != "" {
		cfg.NodeRegistration.Name = o.nodeName
	}
	run := &initRun{Guest: g, options: o, cfg: cfg, paths: newClusterPaths(g.Root, &cfg.ClusterConfiguration)}
	if run.ignored, err = validation.ValidateIgnorePreflightErrors(o.ignorePreflightErrors, cfg.NodeRegistration.IgnorePreflightErrors); err != nil {
		return err
	}
	cfg.NodeRegistration.IgnorePreflightErrors = sets.List(run.ignored)
	if err := features.ValidateVersion(features.InitFeatureGates, cfg.FeatureGates, cfg.KubernetesVersion); err != nil {
		return err
	}
	if err := run.checkExternalCA(); err != nil {
		return err
	}
	skip := o.skipPhases
	if len(skip) == 0 {
		skip = cfg.SkipPhases
	}
	runner := workflow.NewRunner()
	runner.Options.SkipPhases = skipAddons(&cfg.ClusterConfiguration, skip)
	onHost, onGuest := run.paths.onHost, run.paths.onGuest
	for _, phase := range []workflow.Phase{
		replace(phases.NewPreflightPhase(), run.preflight),
		around(phases.NewCertsPhase(), onHost),
		around(phases.NewKubeConfigPhase(), onHost),
		around(phases.NewEtcdPhase(), onHost),
		around(phases.NewControlPlanePhase(), onHost),
		replace(phases.NewKubeletStartPhase(), run.kubeletStart),
		replace(phases.NewWaitControlPlanePhase(), run.waitControlPlane),
		around(phases.NewUploadConfigPhase(), onGuest),
		around(phases.NewUploadCertsPhase(), onHost),
		around(phases.NewMarkControlPlanePhase(), onGuest),
		around(phases.NewBootstrapTokenPhase(), onGuest),
		// The hollow kubelet's certificate in kubelet.conf is not rotated.
		replace(phases.NewKubeletFinalizePhase(), func() error { return nil }),
		around(phases.NewAddonPhase(), onGuest),
		replace(phases.NewShowJoinCommandPhase(), run.done),
	} {
		runner.AppendPhase(phase)
	}
	return run.start(runner, cfg.KubernetesVersion)
}

func (r *initRun) start(runner *workflow.Runner, version string) error {
	runner.SetDataInitializer(initializer(r))
	fmt.Printf("[init] Using Kubernetes version: %s\n", version)
	return runner.Run(nil)
}

// checkExternalCA sees whether the CA's key is kept elsewhere, and if so that
// all it would have signed is there.
func (r *initRun) checkExternalCA() (err error) {
	if err := r.paths.onHost(); err != nil {
		return err
	}
	if r.externalCA, err = certsphase.UsingExternalCA(&r.cfg.ClusterConfiguration); r.externalCA {
		if err != nil {
			return fmt.Errorf("invalid or incomplete external CA: %w", err)
		}
		if err := kubeconfigphase.ValidateKubeconfigsForExternalCA(r.kubernetesDir(), r.cfg); err != nil {
			return err
		}
	}
	external, err := certsphase.UsingExternalFrontProxyCA(&r.cfg.ClusterConfiguration)
	if external && err != nil {
		return fmt.Errorf("invalid or incomplete external front-proxy CA: %w", err)
	}
	return nil
}

// skipAddons keeps the addons' phases and their settings in step: either way of
// saying no counts.
func skipAddons(cfg *kubeadmapi.ClusterConfiguration, skip []string) []string {
	skip = slices.Clone(skip)
	for phase, disabled := range map[string]*bool{"addon/coredns": &cfg.DNS.Disabled, "addon/kube-proxy": &cfg.Proxy.Disabled} {
		if slices.Contains(skip, "addon") || slices.Contains(skip, phase) {
			*disabled = true
		} else if *disabled {
			skip = append(skip, phase)
		}
	}
	return skip
}

func (r *initRun) done() error {
	fmt.Println("\nYour Kubernetes control-plane has initialized successfully!")
	return nil
}

func (r *initRun) UploadCerts() bool                       { return r.uploadCerts }
func (r *initRun) CertificateKey() string                  { return r.cfg.CertificateKey }
func (r *initRun) SetCertificateKey(key string)            { r.cfg.CertificateKey = key }
func (r *initRun) SkipCertificateKeyPrint() bool           { return r.skipCertificateKeyPrint }
func (r *initRun) Cfg() *kubeadmapi.InitConfiguration      { return r.cfg }
func (r *initRun) DryRun() bool                            { return false }
func (r *initRun) SkipTokenPrint() bool                    { return r.skipTokenPrint }
func (r *initRun) IgnorePreflightErrors() sets.Set[string] { return r.ignored }
func (r *initRun) CertificateWriteDir() string             { return r.paths.hostCertificates }
func (r *initRun) CertificateDir() string                  { return r.paths.hostCertificates }
func (r *initRun) KubeConfigDir() string                   { return r.kubernetesDir() }
func (r *initRun) ManifestDir() string                     { return r.manifestDir() }
func (r *initRun) KubeletDir() string                      { return r.kubeletDir() }
func (r *initRun) ExternalCA() bool                        { return r.externalCA }
func (r *initRun) OutputWriter() io.Writer                 { return os.Stdout }
func (r *initRun) PatchesDir() string                      { return r.patchesDir(r.patches, r.cfg.Patches) }

func (r *initRun) KubeConfigPath() string {
	return filepath.Join(r.kubernetesDir(), constants.AdminKubeConfigFileName)
}

// KubeConfigOriginal returns admin.conf as it was written.
func (r *initRun) KubeConfigOriginal() (*clientcmdapi.Config, error) {
	return clientcmd.LoadFromFile(r.KubeConfigPath())
}

// KubeConfig is the same: before v1.36 kubeadm made of it what joining nodes are told, which must be the cluster's address;
// since then no phase asks for it.
func (r *initRun) KubeConfig() (*clientcmdapi.Config, error) { return r.KubeConfigOriginal() }

// Client returns a client of this machine's API server with admin.conf's rights,
// which the first call gives it.
func (r *initRun) Client() (clientset.Interface, error) {
	if r.client != nil {
		return r.client, nil
	}
	client, err := ensureAdmin(r.kubernetesDir(), &r.cfg.LocalAPIEndpoint)
	if err != nil {
		return nil, fmt.Errorf("could not bootstrap the admin user in file %s: %w", constants.AdminKubeConfigFileName, err)
	}
	r.client = client
	return client, nil
}

// WaitControlPlaneClient returns a client that needs no RBAC rule yet. Kubeadm
// before v1.36 asks for it.
func (r *initRun) WaitControlPlaneClient() (clientset.Interface, error) {
	name := constants.SuperAdminKubeConfigFileName
	if r.externalCA {
		name = constants.AdminKubeConfigFileName
	}
	config, err := clientcmd.LoadFromFile(filepath.Join(r.kubernetesDir(), name))
	if err != nil {
		return nil, err
	}
	if err := pointTo(config, &r.cfg.LocalAPIEndpoint); err != nil {
		return nil, err
	}
	return kubeconfigutil.ToClientSet(config)
}

func (r *initRun) Tokens() []string {
	var tokens []string
	for _, token := range r.cfg.BootstrapTokens {
		tokens = append(tokens, token.Token.String())
	}
	return tokens
}
