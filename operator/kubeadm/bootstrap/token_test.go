package bootstrap

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	token = "abcdef.0123456789abcdef"
	ttl   = 15 * time.Minute
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestTokenIsExtendedWhileThereIsTimeForASecondTry(t *testing.T) {
	tests := map[string]struct {
		exists  bool
		expires time.Time
		want    tokenMove
	}{
		"just made":                        {true, noon.Add(ttl), leaveToken},
		"a sixth of its life is over":      {true, noon.Add(ttl*5/6 - time.Second), extendToken},
		"it has expired":                   {true, noon.Add(-time.Minute), extendToken},
		"its expiry cannot be read":        {true, time.Time{}, extendToken},
		"the cleaner has removed it":       {false, time.Time{}, restoreToken},
		"longer than we would let it live": {true, noon.Add(24 * time.Hour), leaveToken},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, again := planToken(noon, tc.exists, tc.expires, ttl)
			if got != tc.want {
				t.Errorf("planToken = %q, want %q", got, tc.want)
			}
			if again <= 0 || again > ttl/2 {
				t.Errorf("looked at again after %s: too late for a second try", again)
			}
		})
	}
}

func tokenOf(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestTokenLivesOnUnderItsValue(t *testing.T) {
	ctx, c := context.Background(), newClient(t)
	ensure := func(now time.Time) {
		t.Helper()
		if _, err := ensureToken(ctx, c, token, now, ttl); err != nil {
			t.Fatal(err)
		}
	}
	wantExpiry := func(want time.Time) {
		t.Helper()
		secret := tokenOf(t, c)
		if got := string(secret.Data["expiration"]); got != want.Format(time.RFC3339) {
			t.Errorf("expires at %s, want %s", got, want.Format(time.RFC3339))
		}
		if string(secret.Data["token-secret"]) != "0123456789abcdef" || secret.Type != "bootstrap.kubernetes.io/token" {
			t.Errorf("the token is not the machine's: %v", secret)
		}
	}

	ensure(noon)
	wantExpiry(noon.Add(ttl))
	ensure(noon.Add(time.Minute))
	wantExpiry(noon.Add(ttl))
	ensure(noon.Add(5 * time.Minute))
	wantExpiry(noon.Add(20 * time.Minute))

	if err := c.Delete(ctx, tokenOf(t, c)); err != nil {
		t.Fatal(err)
	}
	ensure(noon.Add(time.Hour))
	wantExpiry(noon.Add(time.Hour + ttl))
}

func TestMalformedTokenIsRefused(t *testing.T) {
	if _, err := ensureToken(context.Background(), newClient(t), "secret", noon, ttl); err == nil {
		t.Error("no error")
	}
}

func TestTheTokenOfAConfigThatIsGoneIsForgotten(t *testing.T) {
	r := &Reconciler{Client: newClient(t)}
	key := client.ObjectKey{Namespace: "fleet", Name: "gone"}
	r.tokens.set(key, noon)
	if _, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	if len(r.tokens.at) != 0 {
		t.Errorf("left are %v", r.tokens.at)
	}
}
