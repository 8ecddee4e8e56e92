package kubeadm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/version"
	componentversion "k8s.io/component-base/version"
	kubeadmapi "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm"
	"k8s.io/kubernetes/cmd/kubeadm/app/constants"
	certsphase "k8s.io/kubernetes/cmd/kubeadm/app/phases/certs"
	"k8s.io/kubernetes/cmd/kubeadm/app/preflight"
)

// check is one of kubeadm's preflight checks, answered for the guest and not for
// the host. Its name is what --ignore-preflight-errors takes.
type check struct {
	name string
	run  func() (warning, failure error)
}

func (c check) Name() string { return c.name }

func (c check) Check() (warnings, errorList []error) {
	warning, failure := c.run()
	if warning != nil {
		warnings = append(warnings, warning)
	}
	if failure != nil {
		errorList = append(errorList, failure)
	}
	return warnings, errorList
}

func (r *initRun) preflight() error {
	fmt.Println("[preflight] Running pre-flight checks")
	checks := r.controlPlaneChecks(r.cfg)
	checks = append(checks, r.nodeChecks(r.cfg.KubernetesVersion)...)
	return runChecks(checks, r.ignored)
}

func (r *joinRun) preflight() error {
	fmt.Println("[preflight] Running pre-flight checks")
	checks := []preflight.Checker{
		r.fileAvailable("/etc/kubernetes/" + constants.KubeletKubeConfigFileName),
		r.fileAvailable("/etc/kubernetes/" + constants.KubeletBootstrapKubeConfigFileName),
	}
	checks = append(checks, r.nodeChecks("")...)
	if r.cfg.ControlPlane == nil {
		checks = append(checks, r.fileAvailable(r.Root.Guest(r.cfg.CACertPath)))
	}
	if err := runChecks(checks, r.ignored); err != nil {
		return err
	}
	cluster, err := r.InitCfg()
	if err != nil {
		return err
	}
	if r.cfg.ControlPlane == nil {
		return nil
	}
	if err := r.readyForControlPlane(cluster); err != nil {
		return fmt.Errorf("One or more conditions for hosting a new control plane instance is not satisfied.\n\n%w\n\n"+
			"Please ensure that:\n* The cluster has a stable controlPlaneEndpoint address.\n"+
			"* The certificates that must be shared among control plane instances are provided.", err)
	}
	fmt.Println("[preflight] Running pre-flight checks before initializing the new control plane instance")
	return runChecks(r.controlPlaneChecks(cluster), r.ignored)
}

// runChecks runs the checks and says in its error which of them failed: kubeadm
// since v1.37 only prints that.
func runChecks(checks []preflight.Checker, ignored sets.Set[string]) error {
	var printed bytes.Buffer
	err := preflight.RunChecks(checks, io.MultiWriter(os.Stderr, &printed), ignored)
	if err == nil || strings.Contains(err.Error(), "[ERROR ") {
		return err
	}
	var failures []string
	for line := range strings.Lines(printed.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[ERROR ") {
			failures = append(failures, line)
		}
	}
	return fmt.Errorf("%w: %s", err, strings.Join(failures, "; "))
}

// readyForControlPlane checks that the cluster can have another control plane.
func (r *joinRun) readyForControlPlane(cluster *kubeadmapi.InitConfiguration) error {
	if cluster.ControlPlaneEndpoint == "" {
		return errors.New("unable to add a new control plane instance to a cluster that doesn't have a stable controlPlaneEndpoint address")
	}
	if r.CertificateKey() != "" {
		return nil
	}
	if err := r.onHost(); err != nil {
		return err
	}
	if shared, err := certsphase.SharedCertificateExists(&cluster.ClusterConfiguration); !shared {
		return err
	}
	return nil
}

func (g Guest) controlPlaneChecks(cfg *kubeadmapi.InitConfiguration) []preflight.Checker {
	checks := []preflight.Checker{
		check{"NumCPU", func() (_, _ error) {
			if g.CPUs < constants.ControlPlaneNumCPU {
				return nil, fmt.Errorf("the number of available CPUs %d is less than the required %d", g.CPUs, constants.ControlPlaneNumCPU)
			}
			return nil, nil
		}},
		check{"Mem", func() (_, _ error) {
			if g.MemoryMiB < constants.ControlPlaneMem {
				return nil, fmt.Errorf("the system RAM (%d MB) is less than the minimum %d MB", g.MemoryMiB, constants.ControlPlaneMem)
			}
			return nil, nil
		}},
		preflight.KubernetesVersionCheck{KubernetesVersion: cfg.KubernetesVersion, KubeadmVersion: componentversion.Get().GitVersion},
		g.portOpen(int(cfg.LocalAPIEndpoint.BindPort)),
		g.portOpen(constants.KubeSchedulerPort),
		g.portOpen(constants.KubeControllerManagerPort),
	}
	components := constants.ControlPlaneComponents
	if cfg.Etcd.Local != nil {
		components = append(components[:len(components):len(components)], constants.Etcd)
		data := g.Root.Guest(cfg.Etcd.Local.DataDir)
		checks = append(checks, g.portOpen(constants.EtcdListenClientPort), g.portOpen(constants.EtcdListenPeerPort),
			preflight.DirAvailableCheck{Path: g.Root.Path(data), Label: "DirAvailable-" + strings.ReplaceAll(data, "/", "-")})
	}
	for _, component := range components {
		checks = append(checks, g.fileAvailable(constants.GetStaticPodFilepath(component, "/etc/kubernetes/manifests")))
	}
	return checks
}

// nodeChecks are those that every node passes; without a version there is no
// control plane yet to compare the kubelet with.
func (g Guest) nodeChecks(controlPlane string) []preflight.Checker {
	return []preflight.Checker{
		check{"KubeletVersion", func() (_, _ error) { return nil, g.kubeletFits(controlPlane) }},
		g.portOpen(constants.KubeletPort),
	}
}

func (g Guest) kubeletFits(controlPlane string) error {
	kubelet, err := version.ParseSemantic(g.KubeletVersion)
	if err != nil {
		return fmt.Errorf("couldn't get kubelet version: %w", err)
	}
	if kubelet.LessThan(constants.MinimumKubeletVersion) {
		return fmt.Errorf("Kubelet version %q is lower than kubeadm can support. Please upgrade kubelet", kubelet)
	}
	if controlPlane == "" {
		return nil
	}
	cluster, err := version.ParseSemantic(controlPlane)
	if err != nil {
		return fmt.Errorf("couldn't parse Kubernetes version %q: %w", controlPlane, err)
	}
	if kubelet.Major() > cluster.Major() || kubelet.Minor() > cluster.Minor() {
		return fmt.Errorf("the kubelet version is higher than the control plane version. This is not a supported version skew and may lead to a malfunctional cluster. Kubelet version: %q Control plane version: %q", kubelet, cluster)
	}
	return nil
}

func (g Guest) portOpen(port int) preflight.Checker {
	return check{"Port-" + strconv.Itoa(port), func() (_, _ error) {
		listener, err := net.Listen("tcp", net.JoinHostPort(g.Address, strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("Port %d is in use", port)
		}
		return nil, listener.Close()
	}}
}

func (g Guest) fileAvailable(path string) preflight.Checker {
	return preflight.FileAvailableCheck{Path: g.Root.Path(path), Label: "FileAvailable-" + strings.ReplaceAll(path, "/", "-")}
}
