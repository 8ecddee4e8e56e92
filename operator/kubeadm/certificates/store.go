package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/pki"
)

// Store reads and makes the certificate Secrets of clusters.
type Store struct {
	// Client reads Secrets with the cluster's label from a cache. Live reads past it: a user's Secret
	// may have no label, and a cache may lag behind what we made.
	Client client.Client
	Live   client.Reader
	// Now is the clock.
	Now func() time.Time
}

// Load returns those certificates that exist. A Secret that cannot serve is an error that names it.
func (s *Store) Load(ctx context.Context, cluster *clusterv1.Cluster, purposes []Purpose) (Set, error) {
	set := Set{}
	for _, purpose := range purposes {
		secret, err := s.read(ctx, cluster, purpose)
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		if set[purpose], err = s.pair(purpose, secret); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// Require is Load for a cluster that has been initialized: what is missing is an error, since new
// authorities would be trusted by nobody.
func (s *Store) Require(ctx context.Context, cluster *clusterv1.Cluster, purposes []Purpose) (Set, error) {
	set, err := s.Load(ctx, cluster, purposes)
	if err != nil {
		return nil, err
	}
	if missing := set.Missing(purposes); len(missing) > 0 {
		return nil, &MissingError{Secrets: join(missing, cluster.Name), Namespace: cluster.Namespace}
	}
	return set, nil
}

// Ensure returns all certificates that config needs, having made those that are missing for owner.
// Secrets of ours that have lost their owner get it back.
func (s *Store) Ensure(ctx context.Context, cluster *clusterv1.Cluster, config bootstrapv1.ClusterConfiguration, owner metav1.OwnerReference) (Set, error) {
	set := Set{}
	var missing []Purpose
	for _, purpose := range Needed(config) {
		secret, err := s.read(ctx, cluster, purpose)
		if err != nil {
			return nil, err
		}
		switch {
		case secret == nil && !generated(purpose, config):
			missing = append(missing, purpose)
			continue
		case secret == nil:
			if secret, err = s.create(ctx, cluster, config, purpose, owner); err != nil {
				return nil, err
			}
		default:
			if err := s.own(ctx, secret, owner); err != nil {
				return nil, err
			}
		}
		if set[purpose], err = s.pair(purpose, secret); err != nil {
			return nil, err
		}
	}
	if len(missing) > 0 {
		return nil, &MissingError{Secrets: join(missing, cluster.Name), Namespace: cluster.Namespace}
	}
	return set, nil
}

// MissingError says that certificates are not there and cannot be made.
type MissingError struct {
	Secrets, Namespace string
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("Secrets %s do not exist in namespace %q: restore them from a backup, or provide them with tls.crt and tls.key", e.Secrets, e.Namespace)
}

// UnfitError says that a Secret holds what cannot do what it is for.
type UnfitError struct {
	Secret client.ObjectKey
	// Key of the Secret that is at fault.
	Key   string
	Cause error
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("Secret %q cannot serve: %s: %s: replace its %s and %s by a pair that belongs together; it is never changed by us",
		e.Secret, e.Key, e.Cause, certKey, keyKey)
}

func (e *UnfitError) Unwrap() error { return e.Cause }

// ForTheUser tells whether an error of a Store is for the user to mend: nothing tells when it has been.
func ForTheUser(err error) bool {
	var missing *MissingError
	var unfit *UnfitError
	return errors.As(err, &missing) || errors.As(err, &unfit)
}

func (s *Store) read(ctx context.Context, cluster *clusterv1.Cluster, purpose Purpose) (*corev1.Secret, error) {
	return s.Read(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: SecretName(cluster.Name, purpose)})
}

// Read reads a Secret through the cache, and past it what the cache does not hold; nil when there is none.
func (s *Store) Read(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = s.Live.Get(ctx, key, secret)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get Secret %q: %w", key, err)
	}
	return secret, nil
}

func (s *Store) pair(purpose Purpose, secret *corev1.Secret) (pki.KeyPair, error) {
	pair := pki.KeyPair{Cert: secret.Data[certKey], Key: secret.Data[keyKey]}
	if key, err := check(purpose, pair, s.Now()); err != nil {
		return pki.KeyPair{}, &UnfitError{Secret: client.ObjectKeyFromObject(secret), Key: key, Cause: err}
	}
	return pair, nil
}

// create makes a new certificate. Whoever was faster is right: the Secret that is stored is returned.
func (s *Store) create(ctx context.Context, cluster *clusterv1.Cluster, config bootstrapv1.ClusterConfiguration, purpose Purpose, owner metav1.OwnerReference) (*corev1.Secret, error) {
	pair, err := generate(purpose, config, s.Now)
	if err != nil {
		return nil, fmt.Errorf("make certificate %q of Cluster %q: %w", purpose, client.ObjectKeyFromObject(cluster), err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       cluster.Namespace,
			Name:            SecretName(cluster.Name, purpose),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{certKey: pair.Cert, keyKey: pair.Key},
	}
	err = s.Client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		key := client.ObjectKeyFromObject(secret)
		secret = &corev1.Secret{}
		err = s.Live.Get(ctx, key, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("store certificate %q of Cluster %q: %w", purpose, client.ObjectKeyFromObject(cluster), err)
	}
	return secret, nil
}

// own gives a Secret of ours that nobody controls (after a restore, say) its owner back.
func (s *Store) own(ctx context.Context, secret *corev1.Secret, owner metav1.OwnerReference) error {
	before := secret.DeepCopy()
	if _, changed := Adopt(secret, owner); !changed {
		return nil
	}
	if err := s.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("give Secret %q its owner %s %q: %w", client.ObjectKeyFromObject(secret), owner.Kind, owner.Name, err)
	}
	return nil
}

// Adopt makes owner the controller of secret, in memory. It is not ours, and stays as it is, when the user made it or
// somebody else controls it. The same owner with another UID is one from before a move, a restore, or a cluster of the
// same name that has just been deleted: the garbage collector takes what is not adopted.
func Adopt(secret *corev1.Secret, owner metav1.OwnerReference) (ours, changed bool) {
	if secret.Type != clusterv1.ClusterSecretType {
		return false, false
	}
	var owners []metav1.OwnerReference
	for _, ref := range secret.OwnerReferences {
		sameName := ref.Kind == owner.Kind && ref.Name == owner.Name
		switch {
		case ref.UID == owner.UID:
			return true, false
		case ref.Controller != nil && *ref.Controller && !sameName:
			return false, false
		case !sameName:
			owners = append(owners, ref)
		}
	}
	secret.OwnerReferences = append(owners, owner)
	return true, true
}
