package kubeadm

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/sets"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/validation"
	phases "k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/join"
	"k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	"k8s.io/kubernetes/cmd/kubeadm/app/discovery"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
)

// joinRun is the data that kubeadm's join phases share.
type joinRun struct {
	Guest
	options
	cfg     *kubeadmapi.JoinConfiguration
	ignored sets.Set[string]

	// What discovery finds, when it is first asked for.
	bootstrap *clientcmdapi.Config
	cluster   *kubeadmapi.InitConfiguration
	paths     *clusterPaths
}

var _ phases.JoinData = &joinRun{}

func (g Guest) runJoin(o options) error {
	cfg, err := g.loadJoin(o.config)
	if err != nil {
		return err
	}
	if o.nodeName != "" {
		cfg.NodeRegistration.Name = o.nodeName
	}
	run := &joinRun{Guest: g, options: o, cfg: cfg}
	if run.ignored, err = validation.ValidateIgnorePreflightErrors(o.ignorePreflightErrors, cfg.NodeRegistration.IgnorePreflightErrors); err != nil {
		return err
	}
	cfg.NodeRegistration.IgnorePreflightErrors = sets.List(run.ignored)
	cfg.CACertPath = g.Root.Path(cfg.CACertPath)
	if file := cfg.Discovery.File; file != nil && !isURL(file.KubeConfigPath) {
		file.KubeConfigPath = g.Root.Path(file.KubeConfigPath)
	}
	skip := o.skipPhases
	if len(skip) == 0 {
		skip = cfg.SkipPhases
	}
	runner := workflow.NewRunner()
	runner.Options.SkipPhases = skip
	for _, phase := range []workflow.Phase{
		replace(phases.NewPreflightPhase(), run.preflight),
		around(phases.NewControlPlanePreparePhase(), run.onHost),
		around(phases.NewCheckEtcdPhase(), run.onHost),
		replace(phases.NewKubeletStartPhase(), run.kubeletStart),
		around(phases.NewEtcdJoinPhase(), run.onHost),
		replace(phases.NewKubeletWaitBootstrapPhase(), run.waitBootstrap),
		around(phases.NewControlPlaneJoinPhase(), run.onGuest),
		replace(phases.NewWaitControlPlanePhase(), run.waitControlPlane),
	} {
		runner.AppendPhase(phase)
	}
	runner.SetDataInitializer(initializer(run))
	if err := runner.Run(nil); err != nil {
		return err
	}
	fmt.Println("\nThis node has joined the cluster.")
	return nil
}

func isURL(path string) bool {
	u, err := url.Parse(path)
	return err == nil && u.Scheme == "https"
}

// onHost and onGuest are for control planes: a worker writes no such files. They
// begin with discovery, should --skip-phases have left out what comes first.
func (r *joinRun) onHost() error {
	if r.cfg.ControlPlane == nil {
		return nil
	}
	if _, err := r.InitCfg(); err != nil {
		return err
	}
	return r.paths.onHost()
}

func (r *joinRun) onGuest() error {
	if r.cfg.ControlPlane == nil {
		return nil
	}
	if _, err := r.InitCfg(); err != nil {
		return err
	}
	return r.paths.onGuest()
}

// TLSBootstrapCfg returns the kubeconfig that discovery trusts.
func (r *joinRun) TLSBootstrapCfg() (*clientcmdapi.Config, error) {
	if r.bootstrap != nil {
		return r.bootstrap, nil
	}
	config, err := discovery.For(nil, r.cfg)
	if err != nil {
		return nil, err
	}
	r.bootstrap = config
	return config, nil
}

// InitCfg returns the cluster's configuration with this node's registration in it.
func (r *joinRun) InitCfg() (*kubeadmapi.InitConfiguration, error) {
	if r.cluster != nil {
		return r.cluster, nil
	}
	bootstrap, err := r.TLSBootstrapCfg()
	if err != nil {
		return nil, err
	}
	client, err := kubeconfigutil.ToClientSet(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("unable to access the cluster: %w", err)
	}
	cluster, err := fetchInitConfiguration(client)
	if err != nil {
		return nil, fmt.Errorf("unable to fetch the kubeadm-config ConfigMap: %w", err)
	}
	if err := refuseHostChanges(&cluster.ClusterConfiguration); err != nil {
		return nil, err
	}
	if err := renameCluster(bootstrap, cluster.ClusterName); err != nil {
		return nil, err
	}
	cluster.NodeRegistration = r.cfg.NodeRegistration
	if r.cfg.ControlPlane != nil {
		cluster.LocalAPIEndpoint = r.cfg.ControlPlane.LocalAPIEndpoint
	}
	r.cluster = cluster
	r.paths = newClusterPaths(r.Root, &cluster.ClusterConfiguration)
	return cluster, nil
}

// renameCluster gives the cluster of a discovered kubeconfig its proper name.
func renameCluster(config *clientcmdapi.Config, name string) error {
	_, cluster, err := kubeconfigutil.GetClusterFromKubeConfig(config)
	if err != nil {
		return fmt.Errorf("the TLS bootstrap kubeconfig is malformed: %w", err)
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil {
		return fmt.Errorf("the TLS bootstrap kubeconfig is malformed: no context %q", config.CurrentContext)
	}
	config.Clusters = map[string]*clientcmdapi.Cluster{name: cluster}
	current.Cluster = name
	return nil
}

func (r *joinRun) adminPath() string {
	return filepath.Join(r.kubernetesDir(), constants.AdminKubeConfigFileName)
}

// Client returns a client with admin.conf's rights.
func (r *joinRun) Client() (clientset.Interface, error) {
	client, err := kubeconfigutil.ClientSetFromFile(r.adminPath())
	if err != nil {
		return nil, fmt.Errorf("couldn't create Kubernetes client: %w", err)
	}
	return client, nil
}

// WaitControlPlaneClient returns a client of this machine's API server.
func (r *joinRun) WaitControlPlaneClient() (clientset.Interface, error) {
	config, err := clientcmd.LoadFromFile(r.adminPath())
	if err != nil {
		return nil, err
	}
	if r.cfg.ControlPlane == nil {
		return nil, errors.New("a worker has no API server")
	}
	if err := pointTo(config, &r.cfg.ControlPlane.LocalAPIEndpoint); err != nil {
		return nil, err
	}
	return kubeconfigutil.ToClientSet(config)
}

func (r *joinRun) CertificateKey() string {
	if r.cfg.ControlPlane == nil {
		return ""
	}
	return r.cfg.ControlPlane.CertificateKey
}

func (r *joinRun) Cfg() *kubeadmapi.JoinConfiguration      { return r.cfg }
func (r *joinRun) IgnorePreflightErrors() sets.Set[string] { return r.ignored }
func (r *joinRun) OutputWriter() io.Writer                 { return os.Stdout }
func (r *joinRun) PatchesDir() string                      { return r.patchesDir(r.patches, r.cfg.Patches) }
func (r *joinRun) DryRun() bool                            { return false }
func (r *joinRun) KubeConfigDir() string                   { return r.kubernetesDir() }
func (r *joinRun) KubeletDir() string                      { return r.kubeletDir() }
func (r *joinRun) ManifestDir() string                     { return r.manifestDir() }
func (r *joinRun) CertificateWriteDir() string             { return r.paths.hostCertificates }
