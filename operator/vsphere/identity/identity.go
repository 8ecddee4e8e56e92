package identity

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/millwright-dev/millwright/api/infrastructure/v1beta2"
	"github.com/millwright-dev/millwright/internal/vcenter"
)

// +kubebuilder:rbac:groups="",resources=secrets;namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=infrastructure.cluster.x-k8s.io,resources=vsphereclusteridentities,verbs=get;list;watch

// Keys of a Secret with credentials.
const (
	usernameKey = "username"
	passwordKey = "password"
)

// Error means that the credentials cannot be had. It heals when the object that it names is mended.
type Error struct{ message string }

func (e *Error) Error() string { return e.message }

func problem(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Resolver reads credentials.
type Resolver struct {
	Client client.Client
	// Live reads Secrets that the cache does not hold: it has those of clusters only.
	Live client.Reader
	// Namespace is the operator's, where the Secrets of VSphereClusterIdentities are.
	Namespace string
}

// Endpoint returns how to log in for a cluster. The error is of type Error when something is missing or not allowed.
func (r *Resolver) Endpoint(ctx context.Context, cluster *infrav1.VSphereCluster) (vcenter.Endpoint, error) {
	secret, err := r.Secret(ctx, cluster)
	if err != nil {
		return vcenter.Endpoint{}, err
	}
	return From(cluster, secret)
}

// From makes the endpoint of a cluster from the Secret that holds its credentials.
func From(cluster *infrav1.VSphereCluster, secret *corev1.Secret) (vcenter.Endpoint, error) {
	username, password := string(secret.Data[usernameKey]), string(secret.Data[passwordKey])
	if username == "" || password == "" {
		return vcenter.Endpoint{}, problem("Secret %q has no value for %s or %s: add both", client.ObjectKeyFromObject(secret), usernameKey, passwordKey)
	}
	return vcenter.Endpoint{
		Server: cluster.Spec.Server, Thumbprint: cluster.Spec.Thumbprint, Username: username, Password: password,
	}, nil
}

// Secret returns the Secret that holds the credentials of a cluster.
func (r *Resolver) Secret(ctx context.Context, cluster *infrav1.VSphereCluster) (*corev1.Secret, error) {
	ref := cluster.Spec.IdentityRef
	switch ref.Kind {
	case infrav1.SecretKind:
		return r.secret(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: ref.Name}, "identityRef")
	case infrav1.VSphereClusterIdentityKind:
		return r.shared(ctx, cluster, ref.Name)
	default:
		return nil, problem("VSphereCluster %q has no identityRef: name a Secret with %s and %s, or a VSphereClusterIdentity",
			client.ObjectKeyFromObject(cluster), usernameKey, passwordKey)
	}
}

func (r *Resolver) secret(ctx context.Context, key client.ObjectKey, named string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := r.Client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, secret)
	}
	if apierrors.IsNotFound(err) {
		return nil, problem("Secret %q, which %s names, does not exist: create it with the keys %s and %s", key, named, usernameKey, passwordKey)
	}
	if err != nil {
		return nil, fmt.Errorf("get Secret %q: %w", key, err)
	}
	return secret, nil
}

func (r *Resolver) shared(ctx context.Context, cluster *infrav1.VSphereCluster, name string) (*corev1.Secret, error) {
	identity := &infrav1.VSphereClusterIdentity{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, identity); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, problem("VSphereClusterIdentity %q, which identityRef names, does not exist: create it", name)
		}
		return nil, fmt.Errorf("get VSphereClusterIdentity %q: %w", name, err)
	}
	allowed, err := r.allows(ctx, identity, cluster.Namespace)
	if err != nil {
		return nil, err
	}
	if !allowed {
		return nil, problem("VSphereClusterIdentity %q does not allow namespace %q: label the namespace, or widen allowedNamespaces",
			name, cluster.Namespace)
	}
	return r.secret(ctx, client.ObjectKey{Namespace: r.Namespace, Name: identity.Spec.SecretName}, fmt.Sprintf("VSphereClusterIdentity %q", name))
}

func (r *Resolver) allows(ctx context.Context, identity *infrav1.VSphereClusterIdentity, namespace string) (bool, error) {
	if identity.Spec.AllowedNamespaces == nil {
		return false, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&identity.Spec.AllowedNamespaces.Selector)
	if err != nil {
		return false, problem("VSphereClusterIdentity %q: allowedNamespaces.selector is invalid: %v", identity.Name, err)
	}
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Live.Get(ctx, client.ObjectKey{Name: namespace}, ns); err != nil {
		return false, fmt.Errorf("get Namespace %q: %w", namespace, err)
	}
	return selector.Matches(labels.Set(ns.Labels)), nil
}
