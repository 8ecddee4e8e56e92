package main

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/kubeconfig"
	"github.com/millwright-dev/millwright/internal/pki"
)

// certsNow is the time of these tests, in whole seconds as certificates have them.
var certsNow = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// keptFor returns all Secrets of a cluster, whose authorities live for ten years and whose kubeconfig does for days.
func keptFor(t *testing.T, days int) keptSecrets {
	t.Helper()
	options := pki.Options{Algorithm: pki.ECDSAP256, Now: func() time.Time { return certsNow }}
	must := func(pair pki.KeyPair, err error) pki.KeyPair {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	secret := func(pair pki.KeyPair) *corev1.Secret {
		return &corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: pair.Cert, corev1.TLSPrivateKeyKey: pair.Key}}
	}
	ca := must(pki.NewCA("kubernetes", options))
	kept := keptSecrets{cluster: "prod", required: true, secrets: map[string]*corev1.Secret{
		"ca":    secret(ca),
		"etcd":  secret(must(pki.NewCA("etcd-ca", options))),
		"proxy": secret(must(pki.NewCA("front-proxy-ca", options))),
		"sa":    secret(must(pki.NewServiceAccountKey(pki.ECDSAP256))),
	}}
	options.Validity = time.Duration(days) * 24 * time.Hour
	text, err := pki.Kubeconfig("prod", "https://10.0.0.10:6443", ca.Cert, must(pki.NewClientCert(ca, "kubernetes-admin", nil, options)))
	if err != nil {
		t.Fatal(err)
	}
	kept.secrets["kubeconfig"] = &corev1.Secret{Data: map[string][]byte{kubeconfig.Key: text}}
	return kept
}

// problems are those of the certificates that have one.
func problems(certificates []certificate) map[string]string {
	out := map[string]string{}
	for _, c := range certificates {
		if c.problem != "" {
			out[c.name+c.machine] = c.problem
		}
	}
	return out
}

func TestEveryKeptCertificateIsListedWithItsAuthority(t *testing.T) {
	got := judgeCertificates(keptCertificates(keptFor(t, 365), certsNow), certsNow, 30)
	type row struct {
		Name, Subject, Authority, Source string
		Days                             int
	}
	var rows []row
	for _, c := range got {
		rows = append(rows, row{c.name, c.subject, c.authority, c.source, c.daysLeft})
	}
	if diff := cmp.Diff([]row{
		{"ca", "kubernetes", "kubernetes", "Secret prod-ca", 3650},
		{"etcd-ca", "etcd-ca", "etcd-ca", "Secret prod-etcd", 3650},
		{"front-proxy-ca", "front-proxy-ca", "front-proxy-ca", "Secret prod-proxy", 3650},
		{"sa", "", "", "Secret prod-sa", 0},
		{"kubeconfig", "kubernetes-admin", "kubernetes", "Secret prod-kubeconfig", 365},
	}, rows); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{}, problems(got)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestWhatIsWrongWithACertificateIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		days   int
		change func(keptSecrets)
		at     time.Time
		want   map[string]string
	}{
		"fewer days than asked for":   {days: 29, want: map[string]string{"kubeconfig": "expires in fewer than 30 days"}},
		"exactly as many":             {days: 30, want: map[string]string{}},
		"expired":                     {days: 10, at: certsNow.AddDate(0, 0, 10), want: map[string]string{"kubeconfig": "expired"}},
		"authorities expired as well": {days: 10, at: certsNow.AddDate(11, 0, 0), want: map[string]string{"ca": "expired", "etcd-ca": "expired", "front-proxy-ca": "expired", "kubeconfig": "expired"}},
		"a missing Secret": {
			days: 365, change: func(k keptSecrets) { delete(k.secrets, "proxy") },
			want: map[string]string{"front-proxy-ca": "the Secret does not exist"},
		},
		"a key of another authority": {
			days: 365, change: func(k keptSecrets) {
				k.secrets["etcd"].Data[corev1.TLSPrivateKeyKey] = k.secrets["proxy"].Data[corev1.TLSPrivateKeyKey]
			},
			want: map[string]string{"etcd-ca": `private key does not belong to certificate "etcd-ca"`},
		},
		"a kubeconfig of another authority": {
			days: 365, change: func(k keptSecrets) { k.secrets["ca"] = k.secrets["proxy"] },
			want: map[string]string{"kubeconfig": `it is not signed by the cluster's authority "front-proxy-ca"`},
		},
		"no certificate": {
			days: 365, change: func(k keptSecrets) { k.secrets["ca"].Data[corev1.TLSCertKey] = []byte("?") },
			want: map[string]string{"ca": "there is no certificate in PEM form"},
		},
		"a cluster that others look after": {
			days: 365, change: func(k keptSecrets) { delete(k.secrets, "ca"); delete(k.secrets, "sa") },
			want: map[string]string{"ca": "the Secret does not exist", "sa": "the Secret does not exist"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kept, at := keptFor(t, tc.days), certsNow
			if tc.change != nil {
				tc.change(kept)
			}
			if !tc.at.IsZero() {
				at = tc.at
			}
			if diff := cmp.Diff(tc.want, problems(judgeCertificates(keptCertificates(kept, at), at, 30))); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsThatNobodyNeedsAreNotMissed(t *testing.T) {
	kept := keptFor(t, 365)
	kept.required = false
	for _, suffix := range []string{"ca", "etcd", "proxy", "sa"} {
		delete(kept.secrets, suffix)
	}
	got := keptCertificates(kept, certsNow)
	if len(got) != 1 || got[0].name != "kubeconfig" || got[0].problem != "" {
		t.Errorf("certificates = %+v, want the kubeconfig's alone", got)
	}
}

func TestAnIntermediateAuthorityIsFollowed(t *testing.T) {
	kept := keptFor(t, 365)
	root := parseChain(kept.secrets["ca"].Data[corev1.TLSCertKey])
	other := parseChain(kept.secrets["etcd"].Data[corev1.TLSCertKey])
	leaf := clientOf(certificate{}, kept.secrets["kubeconfig"].Data[kubeconfig.Key], root)
	if leaf.problem != "" {
		t.Fatal(leaf.problem)
	}
	if signedBy(other, root) {
		t.Error("another authority passes for one that was signed")
	}
	if !signedBy(root, root) {
		t.Error("an authority is not its own")
	}
	bundle := append([]*x509.Certificate{}, other...)
	if bundle = append(bundle, root...); !signedBy(root, bundle) {
		t.Error("the second of a bundle does not vouch")
	}
	if got := parseChain(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("?")})); len(got) != 0 {
		t.Errorf("parseChain of rubbish = %v", got)
	}
}

func TestARecordedExpiryStandsInForAMachineThatDoesNotAnswer(t *testing.T) {
	annotated := certMachine("annotated")
	annotated.Annotations = map[string]string{clusterv1.MachineCertificatesExpiryDateAnnotation: "2026-06-11T12:00:00Z"}
	told := certMachine("told")
	told.Status.CertificatesExpiryDate = metav1.NewTime(certsNow.AddDate(1, 0, 0))
	young := certMachine("young")
	young.Status.NodeRef.Name = ""
	got := judgeCertificates(recordedCertificates([]clusterv1.Machine{annotated, told, young, certMachine("silent")}, errNothing("no route")), certsNow, 30)
	if diff := cmp.Diff(map[string]string{
		"apiserverannotated": "expires in fewer than 30 days",
		"apiserversilent":    "not known: no route",
	}, problems(got)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if len(got) != 3 {
		t.Errorf("%d certificates, want none of the machine that has no node", len(got))
	}
}

func TestAdviceNamesTheNextCommandOnce(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	certificates := []certificate{
		{name: "ca", problem: "expired"}, {name: "etcd-ca"}, {name: "kubeconfig", problem: "expired"},
		{name: "apiserver", machine: "a", problem: "expired"}, {name: "etcd-server", machine: "a", problem: "expired"}, {name: "apiserver", machine: "b", problem: "expired"},
	}
	for name, tc := range map[string]struct {
		managed bool
		want    []string
	}{
		"a control plane that is managed": {managed: true, want: []string{"Secret prod-ca", "delete Secret prod-kubeconfig", "certs rotate prod"}},
		"one that others look after":      {want: []string{"Secret prod-ca", "adopt prod --kubeconfig", "kubeadm certs renew"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
			if tc.managed {
				cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: kindControlPlane.Group, Kind: kindControlPlane.Kind, Name: "prod"}
			}
			got := certificateAdvice(certificates, cluster)
			if len(got) != len(tc.want) {
				t.Fatalf("advice = %q, want %d lines", got, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("line %d = %q, want %q in it", i, got[i], want)
				}
			}
		})
	}
}

// certMachine is a control-plane machine with a node.
func certMachine(name string) clusterv1.Machine {
	m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Status.NodeRef.Name = "node-" + name
	return m
}
