package kubeadm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/componentconfigs"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	kubeletphase "k8s.io/kubernetes/cmd/kubeadm/app/phases/kubelet"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/apiclient"
	kubeconfigutil "k8s.io/kubernetes/cmd/kubeadm/app/util/kubeconfig"
	staticpodutil "k8s.io/kubernetes/cmd/kubeadm/app/util/staticpod"
)

// kubeletStart writes the kubelet's settings and starts it.
func (r *initRun) kubeletStart() error {
	if err := r.writeKubeletFiles(&r.cfg.ClusterConfiguration, &r.cfg.NodeRegistration, false, r.PatchesDir()); err != nil {
		return err
	}
	fmt.Println("[kubelet-start] Starting the kubelet")
	r.StartKubelet()
	return nil
}

// writeKubeletFiles writes what a kubelet reads at its start. A control plane's
// taints are not registered by the kubelet: kubeadm marks the Node afterwards.
func (g Guest) writeKubeletFiles(cfg *kubeadmapi.ClusterConfiguration, registration *kubeadmapi.NodeRegistrationOptions, registerTaints bool, patches string) error {
	if err := kubeletphase.WriteKubeletDynamicEnvFile(cfg, registration, registerTaints, g.kubeletDir()); err != nil {
		return fmt.Errorf("error writing a dynamic environment file for the kubelet: %w", err)
	}
	instance := &kubeletconfig.KubeletConfiguration{ContainerRuntimeEndpoint: registration.CRISocket}
	if err := kubeletphase.WriteInstanceConfigToDisk(instance, g.kubeletDir()); err != nil {
		return fmt.Errorf("error writing instance kubelet configuration to disk: %w", err)
	}
	if err := kubeletphase.WriteConfigToDisk(cfg, g.kubeletDir(), patches, os.Stdout); err != nil {
		return fmt.Errorf("error writing kubelet configuration to disk: %w", err)
	}
	return nil
}

// kubeletStart writes the credentials for TLS bootstrap and the kubelet's
// settings and starts it, unless a Node of the name is there and lives.
func (r *joinRun) kubeletStart() error {
	cluster, err := r.InitCfg()
	if err != nil {
		return err
	}
	client, err := kubeconfigutil.ToClientSet(r.bootstrap)
	if err != nil {
		return fmt.Errorf("could not create client from bootstrap kubeconfig: %w", err)
	}
	kubelets := r.bootstrap.DeepCopy()
	if r.cfg.ControlPlane != nil {
		if err := pointTo(kubelets, &r.cfg.ControlPlane.LocalAPIEndpoint); err != nil {
			return fmt.Errorf("could not get LocalAPIEndpoint: %w", err)
		}
	}
	if err := kubeconfigutil.WriteToDisk(r.bootstrapPath(), kubelets); err != nil {
		return fmt.Errorf("couldn't save %s to disk: %w", constants.KubeletBootstrapKubeConfigFileName, err)
	}
	if err := r.writeCA(kubelets); err != nil {
		return err
	}
	if err := refuseLiveNode(client, &r.cfg.NodeRegistration); err != nil {
		return err
	}
	if err := r.onGuest(); err != nil {
		return err
	}
	if err := r.writeKubeletFiles(&cluster.ClusterConfiguration, &cluster.NodeRegistration, r.cfg.ControlPlane == nil, r.PatchesDir()); err != nil {
		return err
	}
	fmt.Println("[kubelet-start] Starting the kubelet")
	r.StartKubelet()
	return nil
}

func (r *joinRun) bootstrapPath() string {
	return filepath.Join(r.kubernetesDir(), constants.KubeletBootstrapKubeConfigFileName)
}

func (r *joinRun) writeCA(config *clientcmdapi.Config) error {
	if _, err := os.Stat(r.cfg.CACertPath); err == nil {
		return nil
	}
	cluster := config.Contexts[config.CurrentContext].Cluster
	if err := certutil.WriteCert(r.cfg.CACertPath, config.Clusters[cluster].CertificateAuthorityData); err != nil {
		return fmt.Errorf("couldn't save the CA certificate to disk: %w", err)
	}
	return nil
}

func refuseLiveNode(client clientset.Interface, registration *kubeadmapi.NodeRegistrationOptions) error {
	name, _, err := kubeletphase.GetNodeNameAndHostname(registration)
	if err != nil {
		klog.Warning(err)
	}
	node, err := client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot get Node %q: %w", name, err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
			return fmt.Errorf("a Node with name %q and status %q already exists in the cluster. "+
				"You must delete the existing Node or change the name of this new joining Node", name, corev1.NodeReady)
		}
	}
	return nil
}

// waitBootstrap waits until the kubelet has a certificate of its own.
func (r *joinRun) waitBootstrap() error {
	cluster, err := r.InitCfg()
	if err != nil {
		return err
	}
	// The token must not stay on the machine.
	defer func() { _ = os.Remove(r.bootstrapPath()) }()
	if err := r.waitKubelet(&cluster.ClusterConfiguration, r.cfg.Timeouts.KubeletHealthCheck.Duration); err != nil {
		return err
	}
	fmt.Println("[kubelet-start] Waiting for the kubelet to perform the TLS Bootstrap")
	kubeconfig := filepath.Join(r.kubernetesDir(), constants.KubeletKubeConfigFileName)
	err = wait.PollUntilContextTimeout(context.Background(), constants.TLSBootstrapRetryInterval, r.cfg.Timeouts.TLSBootstrap.Duration, true,
		func(context.Context) (bool, error) {
			_, err := kubeconfigutil.ClientSetFromFile(kubeconfig)
			return err == nil, nil
		})
	if err != nil {
		apiclient.PrintKubeletErrorHelpScreen(os.Stdout)
		return fmt.Errorf("failed while waiting for TLS bootstrap: %w", err)
	}
	return nil
}

// waitKubelet waits for the kubelet's health at the guest's address.
func (g Guest) waitKubelet(cfg *kubeadmapi.ClusterConfiguration, timeout time.Duration) error {
	kubelet, ok := cfg.ComponentConfigs[componentconfigs.KubeletGroup].Get().(*kubeletconfig.KubeletConfiguration)
	if !ok || kubelet.HealthzPort == nil {
		return fmt.Errorf("could not convert the KubeletConfiguration to a typed object")
	}
	waiter := apiclient.NewKubeWaiter(nil, timeout, os.Stdout)
	if err := waiter.WaitForKubelet(g.Address, *kubelet.HealthzPort); err != nil {
		apiclient.PrintKubeletErrorHelpScreen(os.Stdout)
		return fmt.Errorf("failed while waiting for the kubelet to start: %w", err)
	}
	return nil
}

// waitControlPlane waits for the kubelet and the control plane that it runs.
func (r *initRun) waitControlPlane() error {
	client, err := r.WaitControlPlaneClient()
	if err != nil {
		return fmt.Errorf("cannot obtain client without bootstrap: %w", err)
	}
	fmt.Printf("[wait-control-plane] Waiting for the kubelet to boot up the control plane as static Pods from directory %q\n", r.manifestDir())
	if err := r.waitKubelet(&r.cfg.ClusterConfiguration, r.cfg.Timeouts.KubeletHealthCheck.Duration); err != nil {
		return err
	}
	return r.waitComponents(client, r.cfg.Timeouts.ControlPlaneComponentHealthCheck.Duration, r.cfg.NodeRegistration.CRISocket)
}

func (r *joinRun) waitControlPlane() error {
	if r.cfg.ControlPlane == nil {
		return nil
	}
	client, err := r.WaitControlPlaneClient()
	if err != nil {
		return err
	}
	return r.waitComponents(client, r.cfg.Timeouts.ControlPlaneComponentHealthCheck.Duration, r.cfg.NodeRegistration.CRISocket)
}

// waitComponents lets kubeadm wait for the static pods where they really listen.
func (g Guest) waitComponents(client clientset.Interface, timeout time.Duration, criSocket string) error {
	pods, err := staticpodutil.ReadMultipleStaticPodsFromDisk(g.manifestDir(), constants.ControlPlaneComponents...)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for n := range pod.Spec.Containers {
			for m, arg := range pod.Spec.Containers[n].Command {
				if address, bind := strings.CutPrefix(arg, "--bind-address="); bind && (loopback(address) || address == "0.0.0.0") {
					pod.Spec.Containers[n].Command[m] = "--bind-address=" + g.Address
				}
			}
		}
	}
	waiter := apiclient.NewKubeWaiter(client, timeout, os.Stdout)
	if err := waiter.WaitForControlPlaneComponents(pods, g.Address); err != nil {
		apiclient.PrintControlPlaneErrorHelpScreen(os.Stdout, criSocket)
		return fmt.Errorf("failed while waiting for the control plane to start: %w", err)
	}
	return nil
}
