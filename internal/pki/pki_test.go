package pki

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func mustCA(t *testing.T, name string) KeyPair {
	t.Helper()
	ca, err := NewCA(name, Options{Algorithm: ECDSAP256, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func TestCAFollowsItsOptions(t *testing.T) {
	tests := map[string]struct {
		options      Options
		wantNotAfter time.Time
		wantBits     int
	}{
		"kubeadm's defaults":          {Options{}, noon.Add(DefaultCAValidity), 2048},
		"a chosen validity":           {Options{Validity: 48 * time.Hour}, noon.Add(48 * time.Hour), 2048},
		"a chosen elliptic algorithm": {Options{Algorithm: ECDSAP384}, noon.Add(DefaultCAValidity), 384},
		"a chosen RSA size":           {Options{Algorithm: RSA3072}, noon.Add(DefaultCAValidity), 3072},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.options.Now = at(noon)
			ca, err := NewCA("kubernetes", tc.options)
			if err != nil {
				t.Fatal(err)
			}
			certificate, err := ParseCertificate(ca.Cert)
			if err != nil {
				t.Fatal(err)
			}
			if !certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign == 0 {
				t.Error("the certificate cannot sign others")
			}
			if !certificate.NotAfter.Equal(tc.wantNotAfter) {
				t.Errorf("NotAfter = %s, want %s", certificate.NotAfter, tc.wantNotAfter)
			}
			if bits := keyBits(t, certificate); bits != tc.wantBits {
				t.Errorf("key has %d bits, want %d", bits, tc.wantBits)
			}
			if err := CheckAuthority(ca, noon); err != nil {
				t.Errorf("CheckAuthority: %v", err)
			}
		})
	}
}

func keyBits(t *testing.T, certificate *x509.Certificate) int {
	t.Helper()
	switch key := certificate.PublicKey.(type) {
	case *rsa.PublicKey:
		return key.N.BitLen()
	case *ecdsa.PublicKey:
		return key.Curve.Params().BitSize
	}
	t.Fatalf("unexpected key type %T", certificate.PublicKey)
	return 0
}

func TestClientCertIsTrustedThroughItsCA(t *testing.T) {
	ca := mustCA(t, "kubernetes")
	client, err := NewClientCert(ca, "kubernetes-admin", []string{"system:masters"}, Options{Algorithm: ECDSAP256, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(client.Cert, client.Key); err != nil {
		t.Fatalf("certificate and key do not match: %v", err)
	}
	certificate, err := ParseCertificate(client.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"system:masters"}, certificate.Subject.Organization); diff != "" {
		t.Errorf("organizations (-want +got):\n%s", diff)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Cert)
	verify := x509.VerifyOptions{Roots: roots, CurrentTime: noon, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := certificate.Verify(verify); err != nil {
		t.Errorf("Verify: %v", err)
	}
	verify.Roots = x509.NewCertPool()
	verify.Roots.AppendCertsFromPEM(mustCA(t, "kubernetes").Cert)
	if _, err := certificate.Verify(verify); err == nil {
		t.Error("another authority of the same name is trusted too")
	}
}

func TestClientCertNeverOutlivesItsCA(t *testing.T) {
	ca, err := NewCA("kubernetes", Options{Algorithm: ECDSAP256, Validity: time.Hour, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClientCert(ca, "admin", nil, Options{Algorithm: ECDSAP256, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ParseCertificate(client.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if want := noon.Add(time.Hour); !certificate.NotAfter.Equal(want) {
		t.Errorf("NotAfter = %s, want %s", certificate.NotAfter, want)
	}
}

func TestAuthorityThatCannotSignIsRefusedWithTheReason(t *testing.T) {
	ca, other := mustCA(t, "kubernetes"), mustCA(t, "kubernetes")
	client, err := NewClientCert(ca, "admin", nil, Options{Algorithm: ECDSAP256, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		pair KeyPair
		now  time.Time
		want string
	}{
		"a key of another authority": {KeyPair{Cert: ca.Cert, Key: other.Key}, noon, "does not belong"},
		"an authority of tomorrow":   {ca, noon.Add(-24 * time.Hour), "not valid before 2026-"},
		"an expired authority":       {ca, noon.Add(DefaultCAValidity + time.Hour), "expired on 2036-"},
		"a client certificate":       {client, noon, "not a certificate authority"},
		"no certificate at all":      {KeyPair{Cert: []byte("hello"), Key: ca.Key}, noon, "no certificate"},
		"no key in the key":          {KeyPair{Cert: ca.Cert, Key: []byte("hello")}, noon, "no private key"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := CheckAuthority(tc.pair, tc.now)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("CheckAuthority = %v, want an error with %q", err, tc.want)
			}
		})
	}
	if err := CheckAuthority(KeyPair{Cert: ca.Cert}, noon); err != nil {
		t.Errorf("a CA whose key is kept elsewhere is refused: %v", err)
	}
}

func TestServiceAccountKeyPairMatches(t *testing.T) {
	first, err := NewServiceAccountKey(ECDSAP256)
	if err != nil {
		t.Fatal(err)
	}
	second, err := NewServiceAccountKey("")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string]KeyPair{"elliptic": first, "default": second} {
		if err := CheckServiceAccountKey(pair); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckServiceAccountKey(KeyPair{Cert: first.Cert, Key: second.Key}); err == nil {
		t.Error("a foreign private key is accepted")
	}
}

// The pin of a fixed certificate was computed with openssl (x509 -pubkey | pkey -pubin -outform der | dgst -sha256).
func TestCertHashIsThePublicKeyPinOfOpenSSL(t *testing.T) {
	const certificate = `-----BEGIN CERTIFICATE-----
MIIBczCCARmgAwIBAgIUcMPOecTjEmcdt9LPa20tVStAtQcwCgYIKoZIzj0EAwIw
DjEMMAoGA1UEAwwDcGluMCAXDTI2MTEzMDIxMjUxMloYDzIxMjYxMTA2MjEyNTEy
WjAOMQwwCgYDVQQDDANwaW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATo3cXV
CPap1iQFQbQYf+y0JL/drJzKrbrhwu9/NRxk15FSc7HoFcj+zNaalQ41y8WzAf8S
LhxxNmNNAoE3Nqs3o1MwUTAdBgNVHQ4EFgQUnwehq29qCf2SanynATvxpW4dDjww
HwYDVR0jBBgwFoAUnwehq29qCf2SanynATvxpW4dDjwwDwYDVR0TAQH/BAUwAwEB
/zAKBggqhkjOPQQDAgNIADBFAiEApY7I6AFtJG1eZ3PbFkWj6+8ekZ887eIiENpO
t/keMOoCID6YX2pWdZ0CQguCDEZFIlNh3+kZ5VehAaTFjw/X/YQw
-----END CERTIFICATE-----
`
	got, err := CertHashes([]byte(certificate))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sha256:1d0736cbe526e1faabae93223adb39c5ad28938ed16d2c019f516a211984941e"}, got); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	bundle := append(append([]byte{}, []byte(certificate)...), mustCA(t, "next").Cert...)
	if got, err = CertHashes(bundle); err != nil || len(got) != 2 {
		t.Errorf("a bundle of two gives %v, %v", got, err)
	}
	if _, err = CertHashes(nil); err == nil {
		t.Error("no certificate gives no error")
	}
}

func TestKubeconfigIsRenewedWhenItNoLongerFits(t *testing.T) {
	const server = "https://10.0.0.1:6443"
	ca := mustCA(t, "kubernetes")
	client, err := NewClientCert(ca, "kubernetes-admin", []string{"system:masters"}, Options{Algorithm: ECDSAP256, Now: at(noon)})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := Kubeconfig("prod", server, ca.Cert, client)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig); err != nil || config.Host != server {
		t.Fatalf("kubeconfig is not usable: %v", err)
	}
	tests := map[string]struct {
		server string
		ca     []byte
		now    time.Time
		want   bool
	}{
		"it is fresh":               {server, ca.Cert, noon.Add(time.Hour), false},
		"it is short of half life":  {server, ca.Cert, noon.Add(DefaultClientValidity/2 - time.Hour), false},
		"half its life is over":     {server, ca.Cert, noon.Add(DefaultClientValidity / 2), true},
		"the endpoint has moved":    {"https://10.0.0.2:6443", ca.Cert, noon, true},
		"the authority has changed": {server, mustCA(t, "kubernetes").Cert, noon, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := KubeconfigStale(kubeconfig, tc.server, tc.ca, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("KubeconfigStale = %t, want %t", got, tc.want)
			}
		})
	}
	renewal, err := KubeconfigRenewal(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if stale, _ := KubeconfigStale(kubeconfig, server, ca.Cert, renewal); !stale {
		t.Error("not stale at the time of its renewal")
	}
	if _, err := KubeconfigStale([]byte("{"), server, ca.Cert, noon); err == nil {
		t.Error("garbage is taken for a kubeconfig")
	}
}
