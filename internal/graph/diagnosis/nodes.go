package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/graph"
)

// nodesMissing finds machines that run and whose node did not come.
func nodesMissing(f *Facts) []Finding {
	var found []Finding
	for _, o := range f.Graph.OfKind("Machine") {
		m := o.Object.(*clusterv1.Machine)
		done := m.Status.Initialization.InfrastructureProvisioned
		if m.Status.NodeRef.Name != "" || done == nil || !*done || !m.DeletionTimestamp.IsZero() {
			continue
		}
		since := m.CreationTimestamp.Time
		for _, c := range o.Conditions() {
			if c.Type == clusterv1.InfrastructureReadyCondition {
				since = c.LastTransitionTime.Time
			}
		}
		if !f.old(since) {
			continue
		}
		trouble := nodeMissing(f, o, m)
		trouble.layer, trouble.of, trouble.Object = layerBootstrap, o, reference(o)
		trouble.wide = controlPlane(o) && !initializedControlPlane(f.Graph)
		found = append(found, trouble.since(since))
	}
	return found
}

// nodeMissing tells why a machine that runs has no node, from the surest sign to the weakest.
func nodeMissing(f *Facts, o *graph.Object, m *clusterv1.Machine) Finding {
	if node := nodeOf(f, m); node != nil {
		if node.Spec.ProviderID == "" {
			return Finding{Code: "ProviderIDMissing", Cause: fmt.Sprintf("its node %s has registered and has no provider id, by which a machine finds its node", node.Name),
				Remedy: "A cloud controller manager sets it, or the kubelet's argument provider-id in the KubeadmConfig."}
		}
		return Finding{Code: "ProviderIDMismatch", Cause: fmt.Sprintf("its node %s says provider id %q, the machine %q", node.Name, node.Spec.ProviderID, m.Spec.ProviderID),
			Remedy: "See that the cloud provider in the workload cluster and the infrastructure provider name machines alike."}
	}
	if controlPlane(o) && !initializedControlPlane(f.Graph) {
		return Finding{Code: "ControlPlaneDidNotStart", Likely: true, Cause: "its virtual machine runs, and the control plane on it has never answered: cloud-init or kubeadm init failed or still runs",
			Remedy: "Look at the machine's console or at /var/log/cloud-init-output.log on it; images that cannot be pulled and an endpoint that something else holds are the usual causes."}
	}
	token, hashes := discovery(f, m)
	if id, _, ok := strings.Cut(token, "."); ok && f.Workload != nil && f.Workload.Err == nil && !slices.Contains(f.Workload.Tokens, id) {
		return Finding{Code: "JoinTokenExpired", Cause: fmt.Sprintf("it was given the bootstrap token %s, which the cluster does not know any more", id),
			Remedy: "Replace the machine: a new one is given a new token."}
	}
	if len(hashes) > 0 && f.workload().CAHash != "" && !slices.Contains(hashes, f.workload().CAHash) {
		return Finding{Code: "CAHashWrong", Cause: fmt.Sprintf("it was told to trust a CA of hash %s, the cluster's is %s: it refuses to join", strings.Join(hashes, ", "), f.workload().CAHash),
			Remedy: "Take caCertHashes out of the join configuration, or correct it; then replace the machine."}
	}
	return Finding{Code: "NodeNotRegistered", Likely: true, Cause: "its virtual machine runs, and no node of it has come: cloud-init, kubeadm join or the kubelet failed or still runs",
		Remedy: "Look at the machine's console or at /var/log/cloud-init-output.log on it."}
}

// nodeOf finds a node that is the machine's by name or address, though not by provider id.
func nodeOf(f *Facts, m *clusterv1.Machine) *corev1.Node {
	for i := range f.workload().Nodes {
		n := &f.workload().Nodes[i]
		if n.Name == m.Name || slices.ContainsFunc(n.Status.Addresses, func(a corev1.NodeAddress) bool {
			return a.Type == corev1.NodeInternalIP && slices.ContainsFunc(m.Status.Addresses, func(b clusterv1.MachineAddress) bool { return b.Address == a.Address })
		}) {
			return n
		}
	}
	return nil
}

// discovery is how a machine was told to find and trust the cluster.
func discovery(f *Facts, m *clusterv1.Machine) (token string, hashes []string) {
	ref := m.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return "", nil
	}
	o := f.Graph.Lookup(ref)
	if o == nil {
		return "", nil
	}
	config, ok := o.Object.(*unstructured.Unstructured)
	if !ok {
		return "", nil
	}
	path := []string{"spec", "joinConfiguration", "discovery", "bootstrapToken"}
	token, _, _ = unstructured.NestedString(config.Object, append(slices.Clone(path), "token")...)
	hashes, _, _ = unstructured.NestedStringSlice(config.Object, append(path, "caCertHashes")...)
	return token, hashes
}

// newerMinor tells whether a kubelet is of a newer minor version than the API server. What cannot be read is not.
func newerMinor(kubelet, server string) bool {
	k, err := semver.NewVersion(kubelet)
	if err != nil {
		return false
	}
	s, err := semver.NewVersion(server)
	return err == nil && (k.Major() > s.Major() || k.Major() == s.Major() && k.Minor() > s.Minor())
}
