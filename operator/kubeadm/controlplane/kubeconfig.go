package controlplane

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/kubeconfig"
	"github.com/millwright-dev/millwright/internal/pki"
	"github.com/millwright-dev/millwright/operator/kubeadm/certificates"
)

// ensureKubeconfig keeps the Secret <cluster>-kubeconfig, by which everybody reaches the cluster, and
// returns when it has to be renewed. One that a user made is left alone.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, s *snapshot, ca pki.KeyPair) (time.Duration, error) {
	key := client.ObjectKey{Namespace: s.cluster.Namespace, Name: kubeconfig.SecretName(s.cluster.Name)}
	server := "https://" + s.cluster.Spec.ControlPlaneEndpoint.String()
	owner := *metav1.NewControllerRef(s.controlPlane, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))

	secret, err := r.certificates.Read(ctx, key)
	if err != nil {
		return 0, err
	}
	if secret == nil {
		data, err := r.newKubeconfig(s.cluster.Name, server, ca)
		if err != nil {
			return 0, err
		}
		secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace:       key.Namespace,
				Name:            key.Name,
				Labels:          map[string]string{clusterv1.ClusterNameLabel: s.cluster.Name},
				OwnerReferences: []metav1.OwnerReference{owner},
			},
			Type: clusterv1.ClusterSecretType,
			Data: map[string][]byte{kubeconfig.Key: data},
		}
		if err := r.Client.Create(ctx, secret); err != nil {
			return 0, fmt.Errorf("store kubeconfig in Secret %q: %w", key, err)
		}
		return r.renewal(data)
	}

	before := secret.DeepCopy()
	ours, changed := certificates.Adopt(secret, owner)
	if !ours {
		return 0, nil
	}
	stale, err := pki.KubeconfigStale(secret.Data[kubeconfig.Key], server, ca.Cert, r.Now())
	if err != nil {
		return 0, fmt.Errorf("Secret %q: %w: delete it, and it is made anew", key, err)
	}
	if stale {
		data, err := r.newKubeconfig(s.cluster.Name, server, ca)
		if err != nil {
			return 0, err
		}
		secret.Data[kubeconfig.Key] = data
	}
	if stale || changed {
		if err := r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return 0, fmt.Errorf("renew kubeconfig in Secret %q: %w", key, err)
		}
	}
	return r.renewal(secret.Data[kubeconfig.Key])
}

func (r *Reconciler) newKubeconfig(cluster, server string, ca pki.KeyPair) ([]byte, error) {
	// The user and group of kubeadm's admin.conf of old: bound to cluster-admin without any binding.
	pair, err := pki.NewClientCert(ca, "kubernetes-admin", []string{"system:masters"}, pki.Options{Now: r.Now})
	if err != nil {
		return nil, fmt.Errorf("make kubeconfig: %w: where the authority's key is kept elsewhere, provide Secret %s-kubeconfig yourself", err, cluster)
	}
	return pki.Kubeconfig(cluster, server, ca.Cert, pair)
}

func (r *Reconciler) renewal(data []byte) (time.Duration, error) {
	at, err := pki.KubeconfigRenewal(data)
	if err != nil {
		return 0, err
	}
	return max(at.Sub(r.Now()), time.Second), nil
}
