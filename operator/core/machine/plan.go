package machine

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
)

// defaultNodeDeletionTimeoutSeconds is what upstream's webhook sets.
const defaultNodeDeletionTimeoutSeconds = 10

// applyDefaults sets what upstream sets in webhooks, and the owner of a Machine that nobody controls. cluster may be nil.
func applyDefaults(machine *clusterv1.Machine, cluster *clusterv1.Cluster) {
	if machine.Labels == nil {
		machine.Labels = map[string]string{}
	}
	machine.Labels[clusterv1.ClusterNameLabel] = machine.Spec.ClusterName
	machine.Spec.Version = lifecycle.NormalizeVersion(machine.Spec.Version)
	if machine.Spec.Deletion.NodeDeletionTimeoutSeconds == nil {
		machine.Spec.Deletion.NodeDeletionTimeoutSeconds = new(int32(defaultNodeDeletionTimeoutSeconds))
	}
	if cluster == nil || metav1.GetControllerOf(machine) != nil {
		return
	}
	owner := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID,
	}
	machine.OwnerReferences = slices.DeleteFunc(machine.OwnerReferences, func(have metav1.OwnerReference) bool {
		// The same name with another UID is a Cluster that was restored from a backup.
		return have.Kind == owner.Kind && have.Name == owner.Name && have.UID != owner.UID
	})
	if !slices.ContainsFunc(machine.OwnerReferences, func(have metav1.OwnerReference) bool { return have.UID == owner.UID }) {
		machine.OwnerReferences = append(machine.OwnerReferences, owner)
	}
}

func ownerReference(machine *clusterv1.Machine) *metav1.OwnerReference {
	return metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))
}

// copyBootstrap takes over the name of the bootstrap Secret once it is complete. It never goes back: the machine has
// started with it.
func copyBootstrap(s *snapshot) {
	bootstrap := &s.machine.Spec.Bootstrap
	if s.bootstrap.obj != nil {
		if name, created := contract.DataSecret(s.bootstrap.obj); created && name != "" {
			bootstrap.DataSecretName = &name
		}
	}
	if bootstrap.DataSecretName != nil {
		s.machine.Status.Initialization.BootstrapDataSecretCreated = new(true)
	}
}

// copyInfrastructure takes over what the infrastructure reports. Addresses may come before the machine is complete:
// they help to find out why it is not.
func copyInfrastructure(s *snapshot) {
	obj := s.infrastructure.obj
	if obj == nil {
		return
	}
	status := &s.machine.Status
	if addresses := contract.Addresses(obj); len(addresses) > 0 {
		status.Addresses = addresses
	}
	if domain := contract.FailureDomain(obj); domain != "" {
		status.FailureDomain = domain
	}
	if id := contract.ProviderID(obj); contract.Provisioned(obj) && id != "" {
		s.machine.Spec.ProviderID = id
		status.Initialization.InfrastructureProvisioned = new(true)
	}
}

// copyNode takes over the Node. A reference once set stays: a Node that is gone is told in a condition.
func copyNode(s *snapshot) {
	if s.node == nil {
		return
	}
	s.machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: s.node.Name}
	s.machine.Status.NodeInfo = s.node.Status.NodeInfo.DeepCopy()
}

// matchNode picks the Node of a provider id from those that bear it and those whose system UUID is in it. A Node found by
// its UUID must have no providerID: with another one it is another machine's.
func matchNode(providerID string, byProviderID, byUUID []corev1.Node) (node *corev1.Node, foundByUUID bool, err error) {
	candidates := byProviderID
	if len(candidates) == 0 {
		foundByUUID = true
		for _, node := range byUUID {
			if node.Spec.ProviderID == "" {
				candidates = append(candidates, node)
			}
		}
	}
	switch len(candidates) {
	case 0:
		return nil, false, nil
	case 1:
		return &candidates[0], foundByUUID, nil
	}
	names := make([]string, 0, len(candidates))
	for _, node := range candidates {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return nil, false, fmt.Errorf("Nodes %s are all of the machine %s: delete those that are stale", strings.Join(names, ", "), providerID)
}

// isNodeOf tells whether a Node that the Machine refers to by name is still its own: names are used again. A Node without
// a providerID must have the UUID, where the provider's ids hold one.
func isNodeOf(node *corev1.Node, providerID string) bool {
	switch {
	case providerID == "":
		return true
	case node.Spec.ProviderID != "":
		return node.Spec.ProviderID == providerID
	}
	uuids := systemUUIDs(providerID)
	return len(uuids) == 0 || slices.Contains(uuids, strings.ToLower(node.Status.NodeInfo.SystemUUID))
}

// systemUUIDs returns the system UUIDs, in lower case, that a Node of this provider id may report: the UUID at the
// end of the id, and the same with the bytes of its first three groups swapped, as some firmware reports it (SMBIOS
// 2.6 stores them little-endian). None when the id does not end in a UUID.
func systemUUIDs(providerID string) []string {
	uuid := strings.ToLower(providerID[strings.LastIndex(providerID, "/")+1:])
	groups := strings.Split(uuid, "-")
	if len(groups) != 5 {
		return nil
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if len(groups[i]) != length || strings.Trim(groups[i], "0123456789abcdef") != "" {
			return nil
		}
	}
	swapped := slices.Clone(groups)
	for i := range 3 {
		swapped[i] = swapBytes(groups[i])
	}
	if other := strings.Join(swapped, "-"); other != uuid {
		return []string{uuid, other}
	}
	return []string{uuid}
}

// swapBytes reverses the bytes of a number in hexadecimal.
func swapBytes(hex string) string {
	var out strings.Builder
	for i := len(hex) - 2; i >= 0; i -= 2 {
		out.WriteString(hex[i : i+2])
	}
	return out.String()
}

// phase summarizes the Machine in one word.
func phase(s *snapshot) clusterv1.MachinePhase {
	status := s.machine.Status
	switch {
	case s.deletion != nil && s.deletion.done:
		return clusterv1.MachinePhaseDeleted
	case !s.machine.DeletionTimestamp.IsZero():
		return clusterv1.MachinePhaseDeleting
	case failure(s) != "":
		//lint:ignore SA1019 Only providers of the older contract report failures, and for them the phase is kept.
		return clusterv1.MachinePhaseFailed
	case status.NodeRef.IsDefined() && isTrue(status.Initialization.InfrastructureProvisioned):
		return clusterv1.MachinePhaseRunning
	case isTrue(status.Initialization.InfrastructureProvisioned):
		return clusterv1.MachinePhaseProvisioned
	case isTrue(status.Initialization.BootstrapDataSecretCreated):
		return clusterv1.MachinePhaseProvisioning
	}
	return clusterv1.MachinePhasePending
}

// failure is what a provider of the older contract reports as beyond repair; empty when nothing is.
func failure(s *snapshot) string {
	for _, e := range []external{s.bootstrap, s.infrastructure} {
		if e.obj == nil {
			continue
		}
		if message := contract.Failure(e.obj); message != "" {
			return describe(e.ref) + " failed: " + message
		}
	}
	return ""
}

func isTrue(b *bool) bool {
	return b != nil && *b
}
