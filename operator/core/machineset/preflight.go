package machineset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=kubeadmcontrolplanes,verbs=get;list;watch

// controlPlane is what the checks before a Machine is made look at.
type controlPlane struct {
	// name is how messages call it: its kind and name.
	name string
	// wanted and running are spec.version and status.version.
	wanted, running string
	// topology is the version of the Cluster's topology, where it has one.
	topology string
}

// preflight returns why no Machine should be made yet: upstream's checks of MachineSets. A control plane without a
// version says too little for any of them. The annotation machineset.cluster.x-k8s.io/skip-preflight-checks on the set
// or its deployment names checks to leave out.
func preflight(set *clusterv1.MachineSet, cp controlPlane) []string {
	if cp.wanted == "" {
		return nil
	}
	var out []string
	check := func(name clusterv1.MachineSetPreflightCheck, problem string) {
		if problem != "" && !skips(set, name) {
			out = append(out, fmt.Sprintf("%s (check %s)", problem, name))
		}
	}
	check(clusterv1.MachineSetPreflightCheckControlPlaneIsStable, unstable(cp))
	if version := set.Spec.Template.Spec.Version; version != "" {
		check(clusterv1.MachineSetPreflightCheckKubernetesVersionSkew, skewed(version, cp))
		if usesKubeadm(set) {
			check(clusterv1.MachineSetPreflightCheckKubeadmVersionSkew, kubeadmSkewed(version, cp))
		}
		if cp.topology != "" && version != cp.wanted {
			check(clusterv1.MachineSetPreflightCheckControlPlaneVersionSkew,
				fmt.Sprintf("version %s is not that of the control plane, %s, and would have to be replaced soon", version, cp.wanted))
		}
	}
	return out
}

func skips(set *clusterv1.MachineSet, name clusterv1.MachineSetPreflightCheck) bool {
	for skipped := range strings.SplitSeq(set.Annotations[clusterv1.MachineSetSkipPreflightChecksAnnotation], ",") {
		if slices.Contains([]string{string(name), string(clusterv1.MachineSetPreflightCheckAll)}, strings.TrimSpace(skipped)) {
			return true
		}
	}
	return false
}

// unstable tells that a control plane is being made or upgraded, or is about to be: a node that joins meanwhile may get
// the wrong version of what kubeadm hands out.
func unstable(cp controlPlane) string {
	switch {
	case cp.running == "":
		return fmt.Sprintf("%s is not up yet: it reports no status.version", cp.name)
	case lifecycle.Older(cp.running, cp.wanted):
		return fmt.Sprintf("%s is being upgraded from %s to %s", cp.name, cp.running, cp.wanted)
	case cp.topology != "" && cp.topology != cp.wanted:
		return fmt.Sprintf("%s is about to be upgraded from %s to %s", cp.name, cp.wanted, cp.topology)
	}
	return ""
}

// skewed follows the Kubernetes version skew policy for kubelets: not newer than the API server, and not more than 3
// minors older, 2 before v1.28.
func skewed(version string, cp controlPlane) string {
	node, err := lifecycle.ParseVersion(version)
	if err != nil {
		return fmt.Sprintf("spec.template.spec.version: %s", err)
	}
	server, err := lifecycle.ParseVersion(cp.wanted)
	if err != nil {
		return fmt.Sprintf("spec.version of %s: %s", cp.name, err)
	}
	older := uint64(3)
	if server.Minor() < 28 {
		older = 2
	}
	switch {
	case node.Minor() > server.Minor():
		return fmt.Sprintf("version %s is newer than that of the control plane, %s: upgrade the control plane first", version, cp.wanted)
	case node.Minor()+older < server.Minor():
		return fmt.Sprintf("version %s is more than %d minors older than that of the control plane, %s: set a newer one", version, older, cp.wanted)
	}
	return ""
}

// kubeadmSkewed tells that kubeadm of one minor would have to join a control plane that kubeadm of another made.
func kubeadmSkewed(version string, cp controlPlane) string {
	node, err1 := lifecycle.ParseVersion(version)
	server, err2 := lifecycle.ParseVersion(cp.wanted)
	// What does not parse is told by the check before.
	if err1 != nil || err2 != nil || node.Minor() == server.Minor() {
		return ""
	}
	return fmt.Sprintf("kubeadm of %s does not join a control plane of %s: set spec.template.spec.version to the minor of the control plane", version, cp.wanted)
}

func usesKubeadm(set *clusterv1.MachineSet) bool {
	ref := set.Spec.Template.Spec.Bootstrap.ConfigRef
	return ref.Kind == "KubeadmConfigTemplate" && ref.APIGroup == bootstrapv1.GroupVersion.Group
}

// checkPreflight reads the control plane of a set's Cluster, which is watched from then on, and returns why no Machine
// should be made yet. An error is for what only a retry can mend.
func (r *Reconciler) checkPreflight(ctx context.Context, set *clusterv1.MachineSet, cluster *clusterv1.Cluster) ([]string, error) {
	if cluster == nil || !cluster.Spec.ControlPlaneRef.IsDefined() || skips(set, clusterv1.MachineSetPreflightCheckAll) {
		return nil, nil
	}
	ref := cluster.Spec.ControlPlaneRef
	gvk, err := r.resolver.GVK(ctx, ref.GroupKind())
	if err == nil {
		err = r.watcher.Watch(gvk, r.fromControlPlanes(ref.GroupKind()), controlPlaneChanged())
	}
	if err != nil {
		return []string{err.Error()}, err
	}
	obj, err := r.resolver.Get(ctx, cluster.Namespace, ref)
	switch {
	case apierrors.IsNotFound(err):
		return []string{fmt.Sprintf("%s %q, the control plane of the Cluster, does not exist in namespace %q: create it", ref.Kind, ref.Name, cluster.Namespace)}, nil
	case err != nil:
		return []string{err.Error()}, err
	}
	return preflight(set, controlPlane{
		name:     ref.Kind + " " + ref.Name,
		wanted:   lifecycle.NormalizeVersion(contract.Version(obj)),
		running:  lifecycle.NormalizeVersion(contract.StatusVersion(obj)),
		topology: cluster.Spec.Topology.Version,
	}), nil
}
