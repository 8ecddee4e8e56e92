package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/cloudinit"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/ignition"
	"github.com/millwright-dev/millwright/internal/kubeadm"
	"github.com/millwright-dev/millwright/internal/patch"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// initialize makes the user data of the cluster's first machine. Everything that can fail for the
// user's sake comes before the lock, so that a machine which cannot start holds up no other.
func (r *Reconciler) initialize(ctx context.Context, s snapshot) error {
	clusterConfig := &s.config.Spec.ClusterConfiguration
	if clusterConfig.ControlPlaneEndpoint == "" && s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		clusterConfig.ControlPlaneEndpoint = s.cluster.Spec.ControlPlaneEndpoint.String()
	}
	set, err := r.initialCertificates(ctx, s)
	if err != nil {
		return err
	}
	document, err := kubeadm.InitConfig(s.config.Spec, s.cluster, s.machine.Spec.Version)
	if err != nil {
		return badInput("%s", err)
	}
	data, err := r.render(ctx, s, cloudinit.Init, document, set.Files(*clusterConfig))
	if err != nil {
		return err
	}

	holder, err := r.lock.acquire(ctx, s.cluster, s.machine)
	if err != nil {
		return err
	}
	if holder != "" {
		dataMissing(s.config, fmt.Sprintf("Waiting for Machine %s to initialize the control plane", holder))
		return nil
	}
	// The cache may be older than the lock's last release, which follows initialization.
	fresh := &clusterv1.Cluster{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.cluster), fresh); err != nil {
		return fmt.Errorf("read Cluster %q: %w", client.ObjectKeyFromObject(s.cluster), err)
	}
	if ptr.Deref(fresh.Status.Initialization.ControlPlaneInitialized, false) {
		dataMissing(s.config, "The control plane of Cluster "+s.cluster.Name+" has just been initialized")
		return r.lock.release(ctx, s.cluster)
	}
	return r.store(ctx, s, data)
}

// initialCertificates returns the cluster's authorities. They are made by its control plane's
// controller, or here for a Cluster that has no control plane object.
func (r *Reconciler) initialCertificates(ctx context.Context, s snapshot) (certificates.Set, error) {
	config := s.config.Spec.ClusterConfiguration
	var set certificates.Set
	var err error
	if s.cluster.Spec.ControlPlaneRef.IsDefined() {
		set, err = r.certificates.Require(ctx, s.cluster, certificates.Needed(config))
	} else {
		// They outlive the machine that happens to be first.
		set, err = r.certificates.Ensure(ctx, s.cluster, config, clusterReference(s.cluster))
	}
	return set, tellCertificates(s.config, err)
}

// tellCertificates tells why certificates cannot be had, if so.
func tellCertificates(config *bootstrapv1.KubeadmConfig, err error) error {
	if err == nil {
		return nil
	}
	if certificates.ForTheUser(err) {
		certificatesMissing(config, err)
		return badInput("%s", err)
	}
	certificatesUnknown(config, err)
	return err
}

// join makes the user data of a machine that joins. The token is stored in the spec before it is
// made in the workload cluster: a second try finds the first.
func (r *Reconciler) join(ctx context.Context, s snapshot, as step, helper *patch.Helper) (time.Duration, error) {
	needed := []certificates.Purpose{certificates.ClusterCA}
	if as == joinControlPlane {
		needed = certificates.Needed(s.config.Spec.ClusterConfiguration)
		if err := r.lock.release(ctx, s.cluster); err != nil {
			return 0, err
		}
	}
	set, err := r.certificates.Require(ctx, s.cluster, needed)
	if err := tellCertificates(s.config, err); err != nil {
		return 0, err
	}
	join := &s.config.Spec.JoinConfiguration
	fresh := join.Discovery.BootstrapToken.Token == ""
	if err := completeDiscovery(join, s.cluster, set[certificates.ClusterCA].Cert); err != nil {
		return 0, err
	}
	var files []bootstrapv1.File
	if as == joinControlPlane {
		if join.ControlPlane == nil {
			join.ControlPlane = &bootstrapv1.JoinControlPlane{}
		}
		files = set.Files(s.config.Spec.ClusterConfiguration)
	}
	if err := helper.Patch(ctx, s.config); err != nil {
		return 0, err
	}
	certificatesAvailable(s.config)

	again, err := r.makeToken(ctx, s, fresh)
	if err != nil {
		return 0, err
	}
	document, err := kubeadm.JoinConfig(joinDocument(s.config.Spec.JoinConfiguration, as), s.machine.Spec.Version)
	if err != nil {
		return 0, badInput("%s", err)
	}
	kubeconfig, err := discoveryFile(s.config.Spec.JoinConfiguration.Discovery.File)
	if err != nil {
		return 0, err
	}
	if kubeconfig != nil {
		files = append(files, *kubeconfig)
	}
	data, err := r.render(ctx, s, cloudinit.Join, document, files)
	if err != nil {
		return 0, err
	}
	return again, r.store(ctx, s, data)
}

// makeToken makes the token in the workload cluster; a fresh one is not there yet.
func (r *Reconciler) makeToken(ctx context.Context, s snapshot, fresh bool) (time.Duration, error) {
	token := s.config.Spec.JoinConfiguration.Discovery.BootstrapToken.Token
	if token == "" {
		return 0, nil
	}
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return 0, err
	}
	now, again := time.Now(), r.ttl()/3
	if fresh {
		err = createToken(ctx, connection.Client, token, now.Add(r.ttl()))
	} else {
		again, err = ensureToken(ctx, connection.Client, token, now, r.ttl())
	}
	if err == nil {
		r.tokens.set(client.ObjectKeyFromObject(s.config), now.Add(again))
	}
	return again, err
}

// joinDocument adds to a worker's taints the one that keeps pods away until the Machine's labels are
// on the Node. It is no part of the spec: the Machine's controller removes it from the Node.
func joinDocument(join bootstrapv1.JoinConfiguration, as step) bootstrapv1.JoinConfiguration {
	if as != joinWorker {
		return join
	}
	out := *join.DeepCopy()
	taints := ptr.Deref(out.NodeRegistration.Taints, nil)
	for _, taint := range taints {
		if taint.MatchTaint(&clusterv1.NodeUninitializedTaint) {
			return out
		}
	}
	taints = append(taints, clusterv1.NodeUninitializedTaint)
	out.NodeRegistration.Taints = &taints
	return out
}

// render puts everything together.
func (r *Reconciler) render(ctx context.Context, s snapshot, command cloudinit.Command, document []byte, files []bootstrapv1.File) ([]byte, error) {
	version, err := r.controlPlaneVersion(ctx, s)
	if err != nil {
		return nil, err
	}
	spec, err := r.resolve(ctx, s.config.Namespace, s.config.Spec, version)
	if err != nil {
		return nil, err
	}
	in := cloudinit.Input{Command: command, Config: document, Certificates: files, Spec: spec}
	if spec.Format == bootstrapv1.Ignition {
		data, err := ignition.Render(in)
		if err != nil {
			return nil, badInput("spec.format is ignition: %s", err)
		}
		return data, nil
	}
	data, err := cloudinit.Render(in)
	if err != nil {
		return nil, fmt.Errorf("render user data of KubeadmConfig %q: %w", client.ObjectKeyFromObject(s.config), err)
	}
	return data, nil
}

// controlPlaneVersion is read only for those whose files ask for it.
func (r *Reconciler) controlPlaneVersion(ctx context.Context, s snapshot) (string, error) {
	for _, file := range s.config.Spec.Files {
		if file.ContentFormat != bootstrapv1.FileContentFormatTemplate || !s.cluster.Spec.ControlPlaneRef.IsDefined() {
			continue
		}
		obj, err := r.resolver.Get(ctx, s.cluster.Namespace, s.cluster.Spec.ControlPlaneRef)
		if err != nil {
			return "", err
		}
		return contract.Version(obj), nil
	}
	return "", nil
}

// store keeps the user data in the Secret of the config's name. One of the same name that is not ours
// is never overwritten.
func (r *Reconciler) store(ctx context.Context, s snapshot, data []byte) error {
	format := s.config.Spec.Format
	if format == "" {
		format = bootstrapv1.CloudConfig
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.config.Namespace,
			Name:            s.config.Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
			OwnerReferences: []metav1.OwnerReference{ownerOfData(s.config)},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": data, "format": []byte(format)},
	}
	key := client.ObjectKeyFromObject(secret)
	if err := r.Client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		if err := r.replaceData(ctx, s.config, secret); err != nil {
			return err
		}
	} else if err != nil {
		return fmt.Errorf("store user data in Secret %q: %w", key, err)
	}
	dataAvailable(s, key.Name)
	return nil
}

// replaceData writes user data into a Secret that exists: ours, from a try that was cut short, or that
// of an earlier config of this name, which the garbage collector has not come to yet.
func (r *Reconciler) replaceData(ctx context.Context, config *bootstrapv1.KubeadmConfig, secret *corev1.Secret) error {
	key := client.ObjectKeyFromObject(secret)
	existing := &corev1.Secret{}
	if err := r.Live.Get(ctx, key, existing); err != nil {
		return fmt.Errorf("get Secret %q: %w", key, err)
	}
	owner := metav1.GetControllerOf(existing)
	switch {
	case owner != nil && owner.UID == config.UID:
		before := existing.DeepCopy()
		existing.Data = secret.Data
		if err := r.Client.Patch(ctx, existing, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("store user data in Secret %q: %w", key, err)
		}
	case owner != nil && owner.Kind == "KubeadmConfig" && owner.Name == config.Name:
		if err := r.Client.Delete(ctx, existing, client.Preconditions{UID: &existing.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %q of an earlier machine: %w", key, err)
		}
		secret.ResourceVersion = ""
		if err := r.Client.Create(ctx, secret); err != nil {
			return fmt.Errorf("store user data in Secret %q: %w", key, err)
		}
	default:
		return badInput("Secret %q, which is to hold the user data, exists and is not ours: rename or delete it", key)
	}
	return nil
}

// ownData puts back the owner reference of the user data's Secret.
func (r *Reconciler) ownData(ctx context.Context, config *bootstrapv1.KubeadmConfig) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: config.Namespace, Name: config.Status.DataSecretName}
	if err := r.Client.Get(ctx, key, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	if secret.Type != clusterv1.ClusterSecretType || metav1.GetControllerOf(secret) != nil {
		return nil
	}
	before := secret.DeepCopy()
	secret.OwnerReferences = append(secret.OwnerReferences, ownerOfData(config))
	if err := r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("give Secret %q its owner: %w", key, err)
	}
	return nil
}

func ownerOfData(config *bootstrapv1.KubeadmConfig) metav1.OwnerReference {
	return *metav1.NewControllerRef(config, bootstrapv1.GroupVersion.WithKind("KubeadmConfig"))
}
