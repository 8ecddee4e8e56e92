package controlplane

import (
	"context"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/lifecycle"
	"github.com/millwright-dev/millwright/internal/patch"
)

const (
	// fieldOwner is the name under which the objects of new machines are applied.
	fieldOwner = "millwright-kubeadmcontrolplane"
	// hook keeps a Machine's infrastructure until we have let go of it.
	hook = controlplanev1.PreTerminateHookCleanupAnnotation
	// defaultNodeDeletionTimeout is what upstream's webhook gives a Machine, in seconds.
	defaultNodeDeletionTimeout = 10

	// kubeletLocalMode makes the kubelet of a control plane machine talk to its own API server, and so
	// keeps to the version skew policy during upgrades (KEP-4471).
	kubeletLocalMode = "ControlPlaneKubeletLocalMode"
)

var (
	// localModeFrom and localModeUntil bound the kubeadm versions that know the gate: it is alpha in
	// v1.31 and gone in v1.36, where it is always on.
	localModeFrom  = semver.MustParse("1.31.0-0")
	localModeUntil = semver.MustParse("1.36.0-0")
)

// create makes a Machine and then what belongs to it. The Machine comes first: it owns the others, so
// that whatever a crash leaves behind goes with it, and a later reconcile completes it.
func (r *Reconciler) create(ctx context.Context, s *snapshot, from *unstructured.Unstructured, n newMachine) (*replica, error) {
	made := &replica{machine: machineFor(s, n)}
	if err := r.apply(ctx, made.machine); err != nil {
		return nil, err
	}
	r.Recorder.Eventf(s.controlPlane, made.machine, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created Machine %q", n.name)
	return made, r.complete(ctx, s, from, made, n.join)
}

// complete makes the objects that a Machine lacks.
func (r *Reconciler) complete(ctx context.Context, s *snapshot, from *unstructured.Unstructured, of *replica, join bool) error {
	owner := *metav1.NewControllerRef(of.machine, clusterv1.GroupVersion.WithKind("Machine"))
	if of.config == nil {
		config := configFor(s, of.machine, owner, join)
		if err := r.apply(ctx, config); err != nil {
			return err
		}
		of.config = config
	}
	if of.infrastructure == nil {
		infrastructure, err := contract.FromTemplate(contract.CloneInput{
			Template:    from,
			Namespace:   of.machine.Namespace,
			Name:        of.machine.Name,
			ClusterName: s.cluster.Name,
			Owner:       owner,
		})
		if err != nil {
			return err
		}
		propagate(s, infrastructure)
		if err := r.apply(ctx, infrastructure); err != nil {
			return err
		}
		of.infrastructure = infrastructure
	}
	return nil
}

// apply refuses an object that is on its way out: one of an earlier Machine of this name, which must
// be gone first.
func (r *Reconciler) apply(ctx context.Context, obj client.Object) error {
	if err := contract.Apply(ctx, r.Client, obj, fieldOwner); err != nil {
		return err
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return fmt.Errorf("%T %q of an earlier Machine is still being deleted", obj, client.ObjectKeyFromObject(obj))
	}
	return nil
}

// remove deletes a Machine; its hook keeps the infrastructure until etcd is done with it.
func (r *Reconciler) remove(ctx context.Context, s *snapshot, victim *replica) error {
	err := r.Client.Delete(ctx, victim.machine, client.Preconditions{UID: &victim.machine.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Machine %q: %w", client.ObjectKeyFromObject(victim.machine), err)
	}
	r.Recorder.Eventf(s.controlPlane, victim.machine, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted Machine %q", victim.machine.Name)
	return nil
}

// unhook lets the deletion of a Machine go on.
func (r *Reconciler) unhook(ctx context.Context, of *replica) error {
	if _, ok := of.machine.Annotations[hook]; !ok {
		return nil
	}
	helper := patch.New(of.machine, r.Client)
	delete(of.machine.Annotations, hook)
	if err := helper.Patch(ctx, of.machine); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove our hook: %w", err)
	}
	return nil
}

// machineFor returns the Machine of a name. Its bootstrap config and infrastructure have the same name.
func machineFor(s *snapshot, n newMachine) *clusterv1.Machine {
	template := s.controlPlane.Spec.MachineTemplate
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.controlPlane.Namespace,
			Name:      n.name,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(s.controlPlane, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane")),
			},
			Finalizers: []string{clusterv1.MachineFinalizer},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:   s.cluster.Name,
			Version:       s.controlPlane.Spec.Version,
			FailureDomain: n.failureDomain,
			Bootstrap: clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: bootstrapv1.GroupVersion.Group, Kind: "KubeadmConfig", Name: n.name,
			}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: template.Spec.InfrastructureRef.APIGroup,
				Kind:     strings.TrimSuffix(template.Spec.InfrastructureRef.Kind, clusterv1.TemplateSuffix),
				Name:     n.name,
			},
		},
	}
	keepUp(s, machine)
	if after := rolloutAfter(s); after != "" {
		machine.Annotations[lifecycle.RolloutAfterAnnotation] = after
	}
	if a, begun := readAttempt(s.controlPlane.Annotations, controlplanev1.RemediationInProgressAnnotation); begun {
		machine.Annotations[controlplanev1.RemediationForAnnotation] = a.String()
	}
	return machine
}

func configFor(s *snapshot, machine *clusterv1.Machine, owner metav1.OwnerReference, join bool) *bootstrapv1.KubeadmConfig {
	config := &bootstrapv1.KubeadmConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       machine.Namespace,
			Name:            machine.Name,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: kubeadmConfigSpec(s.controlPlane.Spec.KubeadmConfigSpec, machine.Spec.Version, join),
	}
	propagate(s, config)
	return config
}

// kubeadmConfigSpec returns what one machine is made from: only one of init and join, and joining
// machines marked as control plane. ClusterConfiguration stays with joining ones: it tells an external
// etcd.
func kubeadmConfigSpec(in bootstrapv1.KubeadmConfigSpec, version string, join bool) bootstrapv1.KubeadmConfigSpec {
	out := *in.DeepCopy()
	if join {
		out.InitConfiguration = bootstrapv1.InitConfiguration{}
		if out.JoinConfiguration.ControlPlane == nil {
			out.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
		}
	} else {
		out.JoinConfiguration = bootstrapv1.JoinConfiguration{}
	}
	parsed, err := lifecycle.ParseVersion(version)
	if err != nil || parsed.LessThan(localModeFrom) || !parsed.LessThan(localModeUntil) {
		return out
	}
	if _, chosen := out.ClusterConfiguration.FeatureGates[kubeletLocalMode]; !chosen {
		if out.ClusterConfiguration.FeatureGates == nil {
			out.ClusterConfiguration.FeatureGates = map[string]bool{}
		}
		out.ClusterConfiguration.FeatureGates[kubeletLocalMode] = true
	}
	return out
}
