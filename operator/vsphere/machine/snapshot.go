package machine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/vcenter"
	"github.com/millwright-dev/millwright/operator/vsphere/identity"
)

// providerIDPrefix precedes the BIOS UUID in spec.providerID, as the vSphere cloud provider writes it on Nodes.
const providerIDPrefix = "vsphere://"

// connect finds the machine's place and its vCenter, and logs in there.
func (r *Reconciler) connect(ctx context.Context, s *scope) error {
	if s.cluster == nil {
		return problem(infrav1.CredentialsNotAvailableReason, "the Cluster of VSphereMachine %q does not exist, and with it the way to vCenter: "+
			"create Cluster %q again", s.machine.Name, s.machine.Labels[clusterv1.ClusterNameLabel])
	}
	ref := s.cluster.Spec.InfrastructureRef
	infra := &infrav1.VSphereCluster{}
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: ref.Name}
	if err := r.Client.Get(ctx, key, infra); err != nil {
		if apierrors.IsNotFound(err) {
			return problem(infrav1.CredentialsNotAvailableReason, "VSphereCluster %q, which Cluster %q names, does not exist: "+
				"create it, or correct the Cluster's spec.infrastructureRef", key, s.cluster.Name)
		}
		return fmt.Errorf("get VSphereCluster %q: %w", key, err)
	}
	var err error
	if s.zone, err = r.zoneOf(ctx, s); err != nil {
		return err
	}
	s.spec = placed(s.machine.Spec.VirtualMachineCloneSpec, s.zone)
	resolver := identity.Resolver{Client: r.Client, Live: r.Live, Namespace: r.Namespace}
	endpoint, err := resolver.Endpoint(ctx, infra)
	if err != nil {
		return err
	}
	s.session, err = r.Sessions.Session(ctx, identity.Key(infra), endpointFor(endpoint, s.spec))
	return err
}

// zoneOf returns the failure domain of the machine, nil when it has none.
func (r *Reconciler) zoneOf(ctx context.Context, s *scope) (*zone, error) {
	name := s.machine.Status.FailureDomain
	if name == "" && s.owner != nil {
		name = s.owner.Spec.FailureDomain
	}
	if name == "" {
		return nil, nil
	}
	z := &zone{deployment: &infrav1.VSphereDeploymentZone{}, domain: &infrav1.VSphereFailureDomain{}}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, z.deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem(infrav1.InvalidSpecReason, "failure domain %q of the Machine is no VSphereDeploymentZone: create it, or correct the Machine", name)
		}
		return nil, fmt.Errorf("get VSphereDeploymentZone %q: %w", name, err)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: z.deployment.Spec.FailureDomain}, z.domain); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem(infrav1.InvalidSpecReason, "VSphereFailureDomain %q, which VSphereDeploymentZone %q names, does not exist: create it",
				z.deployment.Spec.FailureDomain, name)
		}
		return nil, fmt.Errorf("get VSphereFailureDomain %q: %w", z.deployment.Spec.FailureDomain, err)
	}
	return z, nil
}

// recorded is the part of a snapshot that the VSphereMachine itself holds.
func recorded(m *infrav1.VSphereMachine) snapshot {
	s := snapshot{
		now: time.Now(), name: m.Name,
		clone: m.Status.Clone, taskRef: m.Status.TaskRef, vmRef: m.Status.VMRef,
		providerID: m.Spec.ProviderID, provisioned: isTrue(m.Status.Initialization.Provisioned),
		powerOffMode: m.Spec.PowerOffMode, timeout: infrav1.DefaultGuestSoftPowerOffTimeoutSeconds * time.Second,
	}
	if seconds := m.Spec.GuestSoftPowerOffTimeoutSeconds; seconds > 0 {
		s.timeout = time.Duration(seconds) * time.Second
	}
	if asked := conditions.Get(m, infrav1.GuestSoftPowerOffSucceededCondition); asked != nil && asked.Status == metav1.ConditionFalse {
		s.askedAt = asked.LastTransitionTime.Time
	}
	return s
}

// observe looks at vCenter. It notes in the status what is found there.
func (r *Reconciler) observe(ctx context.Context, s *scope) (snapshot, error) {
	m := s.machine
	seen := recorded(m)
	var err error
	if seen.task, err = s.taskOf(ctx); err != nil {
		return seen, err
	}
	if seen.task != nil && seen.task.State == vcenter.TaskRunning {
		return seen, nil
	}
	// Before the inventory: a clone that ends between the two looks is then found there, and not overlooked by both.
	if seen.clones, err = s.clonesOf(ctx, seen); err != nil {
		return seen, err
	}
	id := vcenter.Identity{Ref: m.Status.VMRef, InstanceUUID: string(m.UID), BIOSUUID: strings.TrimPrefix(m.Spec.ProviderID, providerIDPrefix)}
	seen.vm, err = s.session.FindVM(ctx, id)
	switch {
	case errors.Is(err, vcenter.ErrVMNotFound):
		if err := s.observeTraces(ctx, &seen); err != nil || seen.vm == nil {
			return seen, err
		}
	case err != nil:
		return seen, err
	}
	m.Status.VMRef, m.Status.TaskRef = seen.vm.Ref, ""
	if m.DeletionTimestamp.IsZero() && !seen.provisioned {
		err = r.observeConfig(ctx, s, &seen)
	}
	return seen, err
}

// taskOf returns the machine's task. A task that failed is forgotten and returned as an error, once: the next try starts
// from what vCenter holds then.
func (s *scope) taskOf(ctx context.Context) (*vcenter.Task, error) {
	task := s.session.Task(s.key())
	if task == nil && s.machine.Status.TaskRef != "" {
		var err error
		if task, err = s.session.ResumeClone(ctx, s.key(), s.machine.Status.TaskRef, "clone the template"); err != nil {
			return nil, err
		}
	}
	if task == nil || task.State == vcenter.TaskRunning {
		return task, nil
	}
	s.session.ClearTask(s.key())
	if task.State == vcenter.TaskSucceeded {
		return task, nil
	}
	if task.Kind == vcenter.TaskClone {
		// Nothing came of this clone, unless the name was taken: perhaps by an earlier one of ours.
		s.machine.Status.TaskRef = ""
		if !vcenter.IsNameTaken(task.Err) {
			return nil, errors.Join(recordClone(s.machine, nil), task.Err)
		}
		return nil, nil
	}
	if vcenter.IsNotFound(task.Err) || vcenter.IsInState(task.Err) {
		return nil, nil // It is as it was to be.
	}
	return nil, task.Err
}

// observeTraces looks for what there may be of a virtual machine that cannot be found by its identity.
func (s *scope) observeTraces(ctx context.Context, seen *snapshot) error {
	m := s.machine
	if seen.clone == nil || m.Spec.ProviderID != "" || len(seen.clones) > 0 {
		// While clones run, what is in the folder says nothing: it is looked at when they have ended.
		return nil
	}
	if m.DeletionTimestamp.IsZero() && s.told == infrav1.WaitingForCloneSlotReason {
		// Nothing was asked of vCenter yet. If it was, just before a crash, it refuses the second clone, and we look then.
		return nil
	}
	named, err := s.session.VMNamed(ctx, seen.clone.Folder, seen.clone.Name)
	if err != nil && !errors.Is(err, vcenter.ErrVMNotFound) {
		return err
	}
	seen.recognize(named, string(m.UID))
	return nil
}

// clonesOf lists the clones of the template that are not over, for a machine that goes and of which nobody knows whether
// its own is among them: it was asked for just before a crash.
func (s *scope) clonesOf(ctx context.Context, seen snapshot) ([]string, error) {
	if s.machine.DeletionTimestamp.IsZero() || seen.clone == nil || s.machine.Spec.ProviderID != "" || seen.taskRef != "" || seen.vmRef != "" {
		return nil, nil
	}
	return s.session.ClonesOf(ctx, seen.clone.Template)
}

// recognize takes in the virtual machine that bears the machine's name, nil for none. One with its identity is its own:
// its clone has ended since it was looked for.
func (s *snapshot) recognize(named *vcenter.VM, uid string) {
	if named != nil && named.Configured() && named.InstanceUUID == strings.ToLower(uid) {
		s.vm = named
		return
	}
	s.namesake = named
}

// observeConfig compares the virtual machine with what it is to be.
func (r *Reconciler) observeConfig(ctx context.Context, s *scope, seen *snapshot) error {
	if seen.vm.Power == vcenter.PoweredOn {
		seen.configured, seen.missing = true, missingAddresses(s.spec.Network.Devices, seen.vm)
		return nil
	}
	data, err := r.bootstrapData(ctx, s)
	if err != nil {
		return err
	}
	macs := make([]string, 0, len(seen.vm.NICs))
	for _, nic := range seen.vm.NICs {
		macs = append(macs, nic.MAC)
	}
	metadata, err := renderMetadata(seen.vm.Name, s.spec.Network, macs)
	if err != nil {
		return err
	}
	extra, err := options(s.spec.CustomVMXKeys, data, metadata)
	if err != nil {
		return problem(infrav1.InvalidSpecReason, "Machine %q: %v", s.owner.Name, err)
	}
	clone := s.machine.Status.Clone
	linked := seen.vm.Linked || clone != nil && clone.Mode == infrav1.LinkedClone
	wanted := config(s.spec, linked, extra)
	s.config, seen.configured = &wanted, !wanted.Differs(seen.vm)
	return nil
}

// bootstrapData reads the Secret that the Machine names; live, where it is none of those with the cluster's label, which
// the cache holds.
func (r *Reconciler) bootstrapData(ctx context.Context, s *scope) (bootstrapData, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: s.machine.Namespace, Name: *s.owner.Spec.Bootstrap.DataSecretName}
	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, secret)
	}
	if err != nil {
		if apierrors.IsNotFound(err) {
			return bootstrapData{}, problem(infrav1.WaitingForBootstrapDataReason, "Secret %q with the bootstrap data of Machine %q does not exist: "+
				"create it again, or delete the Machine so that another is made in its place", key, s.owner.Name)
		}
		return bootstrapData{}, fmt.Errorf("get Secret %q: %w", key, err)
	}
	data := bootstrapData{value: secret.Data["value"], format: string(secret.Data["format"])}
	if len(data.value) == 0 {
		return data, problem(infrav1.WaitingForBootstrapDataReason, "Secret %q with the bootstrap data of Machine %q has no key value: put the data there, "+
			"or delete the Machine so that another is made in its place", key, s.owner.Name)
	}
	return data, nil
}

func list(items []string) string { return strings.Join(items, ", ") }
