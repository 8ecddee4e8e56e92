package bootstrap

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	bootstraputil "k8s.io/cluster-bootstrap/token/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// defaultTokenTTL is upstream's.
	defaultTokenTTL = 15 * time.Minute
	// nodeTokenGroup is the group whose members kubeadm init allows to join.
	nodeTokenGroup = "system:bootstrappers:kubeadm:default-node-token"
)

// tokenMove is what to do about a bootstrap token in the workload cluster.
type tokenMove string

const (
	leaveToken  tokenMove = "leave"
	extendToken tokenMove = "extend"
	// restoreToken makes a token anew under its old value, which the machine's user data holds: the
	// token cleaner removed it while nobody extended it.
	restoreToken tokenMove = "restore"
)

// planToken decides on a token that expires at the given time (zero: never said), and when to look
// again. A token is extended from one sixth of its life on, and looked at three times a life: one
// failure of the workload cluster in between does no harm.
func planToken(now time.Time, exists bool, expires time.Time, ttl time.Duration) (tokenMove, time.Duration) {
	again := ttl / 3
	switch {
	case !exists:
		return restoreToken, again
	case expires.Sub(now) < ttl*5/6:
		return extendToken, again
	default:
		return leaveToken, again
	}
}

// ensureToken sees to it that token can be used for at least the time until the next look, which is
// returned.
func ensureToken(ctx context.Context, workload client.Client, token string, now time.Time, ttl time.Duration) (time.Duration, error) {
	made, err := tokenSecret(token, now.Add(ttl))
	if err != nil {
		return 0, err
	}
	secret := &corev1.Secret{}
	err = workload.Get(ctx, client.ObjectKeyFromObject(made), secret)
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read bootstrap token in the workload cluster: %w", err)
	}
	// An unreadable time is as good as none: the token is extended.
	expires, _ := time.Parse(time.RFC3339, string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey]))

	move, again := planToken(now, err == nil, expires, ttl)
	switch move {
	case restoreToken:
		return again, createToken(ctx, workload, token, now.Add(ttl))
	case extendToken:
		before := secret.DeepCopy()
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		secret.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(now.Add(ttl))
		if err := workload.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
			return 0, fmt.Errorf("extend bootstrap token in the workload cluster: %w", err)
		}
	}
	return again, nil
}

// createToken makes a token. One that is there was made a moment ago, by a try that was cut short.
func createToken(ctx context.Context, workload client.Client, token string, expires time.Time) error {
	secret, err := tokenSecret(token, expires)
	if err != nil {
		return err
	}
	if err := workload.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create bootstrap token in the workload cluster: %w", err)
	}
	return nil
}

func tokenSecret(token string, expires time.Time) (*corev1.Secret, error) {
	parts := bootstraputil.BootstrapTokenRegexp.FindStringSubmatch(token)
	if len(parts) != 3 {
		return nil, badInput("spec.joinConfiguration.discovery.bootstrapToken.token is not of the form %s: mend or remove it", bootstrapapi.BootstrapTokenPattern)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: bootstraputil.BootstrapTokenSecretName(parts[1])},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			bootstrapapi.BootstrapTokenIDKey:               []byte(parts[1]),
			bootstrapapi.BootstrapTokenSecretKey:           []byte(parts[2]),
			bootstrapapi.BootstrapTokenExpirationKey:       expiration(expires),
			bootstrapapi.BootstrapTokenUsageSigningKey:     []byte("true"),
			bootstrapapi.BootstrapTokenUsageAuthentication: []byte("true"),
			bootstrapapi.BootstrapTokenExtraGroupsKey:      []byte(nodeTokenGroup),
			bootstrapapi.BootstrapTokenDescriptionKey:      []byte("Lets one machine join; made by Millwright"),
		},
	}, nil
}

func expiration(at time.Time) []byte {
	return []byte(at.UTC().Format(time.RFC3339))
}
