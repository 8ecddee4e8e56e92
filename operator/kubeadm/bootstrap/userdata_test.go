package bootstrap

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestUserDataNeverOverwritesAStrangersSecret(t *testing.T) {
	owned := func(kind string, uid types.UID) *corev1.Secret {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-md-1", UID: "before"},
			Type:       clusterv1.ClusterSecretType,
			Data:       map[string][]byte{"value": []byte("old")},
		}
		if kind != "" {
			secret.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "prod-md-1", UID: uid, Controller: ptr.To(true)}}
		}
		return secret
	}
	tests := map[string]struct {
		existing *corev1.Secret
		refused  bool
	}{
		"none is there":                        {nil, false},
		"one of a try that was cut short":      {owned("KubeadmConfig", "ours"), false},
		"one of an earlier config of the name": {owned("KubeadmConfig", "earlier"), false},
		"one that nobody owns":                 {owned("", ""), true},
		"one of another controller":            {owned("Certificate", "x"), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := newClient(t)
			if tc.existing != nil {
				c = newClient(t, tc.existing)
			}
			r := &Reconciler{Client: c, Live: c}
			s := worker(func(s *snapshot) { s.config.UID = "ours" })
			err := r.store(context.Background(), s, []byte("new"))
			var bad *inputError
			if refused := errors.As(err, &bad); refused != tc.refused || (err != nil && !refused) {
				t.Fatalf("error %v, want refusal: %t", err, tc.refused)
			}
			got := &corev1.Secret{}
			if err := c.Get(context.Background(), client.ObjectKey{Namespace: "fleet", Name: "prod-md-1"}, got); err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "old", false: "new"}[tc.refused]
			if string(got.Data["value"]) != want {
				t.Errorf("the Secret holds %q, want %q", got.Data["value"], want)
			}
			if !tc.refused && !metav1.IsControlledBy(got, s.config) {
				t.Errorf("the Secret is owned by %v", got.OwnerReferences)
			}
		})
	}
}
