package certificates

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/millwright-dev/millwright/internal/pki"
)

var (
	prod   = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}}
	owner  = metav1.OwnerReference{APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Name: "prod", UID: "1", Controller: ptr.To(true)}
	config = bootstrapv1.ClusterConfiguration{EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP256}
)

func external() bootstrapv1.ClusterConfiguration {
	return bootstrapv1.ClusterConfiguration{
		EncryptionAlgorithm: bootstrapv1.EncryptionAlgorithmECDSAP256,
		Etcd: bootstrapv1.Etcd{External: bootstrapv1.ExternalEtcd{
			Endpoints: []string{"https://10.0.0.9:2379"}, CAFile: "/etc/etcd/ca.crt", CertFile: "/etc/etcd/client.crt", KeyFile: "/etc/etcd/client.key",
		}},
	}
}

func store(objects ...client.Object) *Store {
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	return &Store{Client: c, Live: c, Now: time.Now}
}

func userSecret(t *testing.T, purpose Purpose, cert, key []byte) *corev1.Secret {
	t.Helper()
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: SecretName("prod", purpose)},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{certKey: cert, keyKey: key},
	}
}

func authority(t *testing.T) pki.KeyPair {
	t.Helper()
	ca, err := pki.NewCA("corporate", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestFilesLieWhereKubeadmLooks(t *testing.T) {
	all := Set{}
	for _, purpose := range Needed(external()) {
		all[purpose] = pki.KeyPair{Cert: []byte("cert"), Key: []byte("key")}
	}
	tests := map[string]struct {
		config bootstrapv1.ClusterConfiguration
		want   []string
	}{
		"stacked etcd": {config, []string{
			"/etc/kubernetes/pki/ca.crt 0640", "/etc/kubernetes/pki/ca.key 0600",
			"/etc/kubernetes/pki/etcd/ca.crt 0640", "/etc/kubernetes/pki/etcd/ca.key 0600",
			"/etc/kubernetes/pki/front-proxy-ca.crt 0640", "/etc/kubernetes/pki/front-proxy-ca.key 0600",
			"/etc/kubernetes/pki/sa.pub 0640", "/etc/kubernetes/pki/sa.key 0600",
		}},
		"external etcd keeps its authority's key": {external(), []string{
			"/etc/kubernetes/pki/ca.crt 0640", "/etc/kubernetes/pki/ca.key 0600",
			"/etc/etcd/ca.crt 0640",
			"/etc/kubernetes/pki/front-proxy-ca.crt 0640", "/etc/kubernetes/pki/front-proxy-ca.key 0600",
			"/etc/kubernetes/pki/sa.pub 0640", "/etc/kubernetes/pki/sa.key 0600",
			"/etc/etcd/client.crt 0640", "/etc/etcd/client.key 0600",
		}},
		"a folder of one's own": {bootstrapv1.ClusterConfiguration{CertificatesDir: "/pki"}, []string{
			"/pki/ca.crt 0640", "/pki/ca.key 0600", "/pki/etcd/ca.crt 0640", "/pki/etcd/ca.key 0600",
			"/pki/front-proxy-ca.crt 0640", "/pki/front-proxy-ca.key 0600", "/pki/sa.pub 0640", "/pki/sa.key 0600",
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, file := range all.Files(tc.config) {
				got = append(got, file.Path+" "+file.Permissions)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMissingCertificatesAreMadeOnceAndOwned(t *testing.T) {
	s := store()
	first, err := s.Ensure(context.Background(), prod, config, owner)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Ensure(context.Background(), prod, config, owner)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second call made others (-first +second):\n%s", diff)
	}
	for _, purpose := range Needed(config) {
		secret := &corev1.Secret{}
		if err := s.Client.Get(context.Background(), client.ObjectKey{Namespace: "fleet", Name: SecretName("prod", purpose)}, secret); err != nil {
			t.Fatal(err)
		}
		if secret.Type != clusterv1.ClusterSecretType || secret.Labels[clusterv1.ClusterNameLabel] != "prod" || !metav1.IsControlledBy(secret, &metav1.ObjectMeta{UID: "1"}) {
			t.Errorf("Secret %q has type %q, labels %v, owners %v", secret.Name, secret.Type, secret.Labels, secret.OwnerReferences)
		}
	}
}

func TestUsersSecretIsUsedAndNeverWritten(t *testing.T) {
	ca := authority(t)
	s := store(userSecret(t, ClusterCA, ca.Cert, ca.Key))
	set, err := s.Ensure(context.Background(), prod, config, owner)
	if err != nil {
		t.Fatal(err)
	}
	if string(set[ClusterCA].Cert) != string(ca.Cert) {
		t.Error("the user's authority is not used")
	}
	secret := &corev1.Secret{}
	if err := s.Client.Get(context.Background(), client.ObjectKey{Namespace: "fleet", Name: "prod-ca"}, secret); err != nil {
		t.Fatal(err)
	}
	if len(secret.OwnerReferences) != 0 || len(secret.Labels) != 0 {
		t.Errorf("the user's Secret was changed: owners %v, labels %v", secret.OwnerReferences, secret.Labels)
	}
}

func TestLostOwnerIsPutBack(t *testing.T) {
	ca := authority(t)
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   []metav1.OwnerReference
	}{
		"no owner at all":             {nil, []metav1.OwnerReference{owner}},
		"the owner from before":       {[]metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, UID: "0", Controller: ptr.To(true)}}, []metav1.OwnerReference{owner}},
		"another controller keeps it": {[]metav1.OwnerReference{{Kind: "KubeadmConfig", Name: "x", UID: "7", Controller: ptr.To(true)}}, []metav1.OwnerReference{{Kind: "KubeadmConfig", Name: "x", UID: "7", Controller: ptr.To(true)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			secret := userSecret(t, ClusterCA, ca.Cert, ca.Key)
			secret.Type, secret.OwnerReferences = clusterv1.ClusterSecretType, tc.owners
			s := store(secret)
			if _, err := s.Ensure(context.Background(), prod, config, owner); err != nil {
				t.Fatal(err)
			}
			got := &corev1.Secret{}
			if err := s.Client.Get(context.Background(), client.ObjectKeyFromObject(secret), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.OwnerReferences); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotServeIsRefusedBySecretAndKey(t *testing.T) {
	ca, other := authority(t), authority(t)
	client, err := pki.NewClientCert(ca, "etcd-client", nil, pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	yesterday := func() time.Time { return time.Now().Add(-24 * time.Hour) }
	expired, err := pki.NewCA("corporate", pki.Options{Algorithm: pki.ECDSAP256, Validity: time.Hour, Now: yesterday})
	if err != nil {
		t.Fatal(err)
	}
	oldClient, err := pki.NewClientCert(ca, "etcd-client", nil, pki.Options{Algorithm: pki.ECDSAP256, Validity: time.Hour, Now: yesterday})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		purpose   Purpose
		cert, key []byte
		want      string
	}{
		"a key of another":                {ClusterCA, ca.Cert, other.Key, "tls.key: private key does not belong to certificate \"corporate\""},
		"an expired authority":            {FrontProxyCA, expired.Cert, expired.Key, "tls.crt: certificate authority \"corporate\" expired on"},
		"no authority":                    {EtcdCA, client.Cert, client.Key, "tls.crt: certificate \"etcd-client\" is not a certificate authority"},
		"no certificate":                  {ClusterCA, nil, ca.Key, "tls.crt: no certificate in PEM form"},
		"no key in the key":               {ClusterCA, ca.Cert, []byte("x"), "tls.key: read authority's private key: no private key"},
		"halves of two service accounts'": {ServiceAccount, ca.Cert, other.Key, "tls.crt and tls.key: the private key does not belong"},
		"an expired client":               {APIServerEtcdClient, oldClient.Cert, oldClient.Key, "tls.crt: certificate \"etcd-client\" expired on"},
		"a client without a key":          {APIServerEtcdClient, client.Cert, nil, "tls.key: there is no private key"},
		"a client with another's key":     {APIServerEtcdClient, client.Cert, other.Key, "tls.key: private key does not belong"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			secret := userSecret(t, tc.purpose, tc.cert, tc.key)
			s := store(secret)
			_, err := s.Load(context.Background(), prod, []Purpose{tc.purpose})
			if !ForTheUser(err) || !strings.Contains(err.Error(), `Secret "fleet/`+secret.Name+`" cannot serve: `+tc.want) || !strings.Contains(err.Error(), "replace its tls.crt and tls.key") {
				t.Errorf("error %v does not tell Secret, key, fault and remedy: %s", err, tc.want)
			}
		})
	}
}

func TestWhatOnlyTheUserCanGiveIsAskedFor(t *testing.T) {
	var missing *MissingError
	_, err := store().Ensure(context.Background(), prod, external(), owner)
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), `"prod-etcd", "prod-apiserver-etcd-client"`) {
		t.Errorf("error %v, want the Secrets of the external etcd", err)
	}
	if _, err = store().Require(context.Background(), prod, Needed(config)); !errors.As(err, &missing) || !strings.Contains(err.Error(), `"prod-ca"`) {
		t.Errorf("error %v, want the missing Secrets", err)
	}
}
