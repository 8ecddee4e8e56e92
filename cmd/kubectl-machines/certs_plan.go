package main

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/cli"
	"github.com/millwright-dev/millwright/internal/kubeconfig"
	"github.com/millwright-dev/millwright/internal/pki"
)

// certificate is what is known of one certificate, or of a key that does not expire.
type certificate struct {
	// name is what kubeadm calls it, machine whose it is if it is one machine's.
	name, machine string
	// subject and authority are common names.
	subject, authority string
	// expires is zero for what does not expire, and for what is not known.
	expires time.Time
	// daysLeft are whole days; negative ones have passed.
	daysLeft int
	// source is where it was seen.
	source string
	// problem is what is wrong with it.
	problem string
}

// keptSecrets are the Secrets of a cluster by what follows its name in theirs; nil is one that does not exist.
type keptSecrets struct {
	cluster string
	secrets map[string]*corev1.Secret
	// required are those that a control plane of kubeadm cannot be without.
	required bool
}

// The Secrets with certificates, and what kubeadm calls their content (Cluster API: certificate management).
var keptNames = []struct{ suffix, name string }{
	{"ca", "ca"}, {"etcd", "etcd-ca"}, {"proxy", "front-proxy-ca"}, {"sa", "sa"},
	{"apiserver-etcd-client", "apiserver-etcd-client"}, {"kubeconfig", "kubeconfig"},
}

// authorities are the certificates that vouch for what the control plane serves with, by the names of keptNames.
func (k keptSecrets) authorities() map[string][]*x509.Certificate {
	out := map[string][]*x509.Certificate{}
	for _, kept := range keptNames {
		if secret := k.secrets[kept.suffix]; secret != nil {
			out[kept.name] = parseChain(secret.Data[corev1.TLSCertKey])
		}
	}
	return out
}

// keptCertificates reads what the Secrets of a cluster hold.
func keptCertificates(kept keptSecrets, now time.Time) []certificate {
	authorities := kept.authorities()
	var out []certificate
	for _, k := range keptNames {
		secret := kept.secrets[k.suffix]
		c := certificate{name: k.name, source: "Secret " + kept.cluster + "-" + k.suffix}
		switch {
		case secret == nil && k.suffix == "apiserver-etcd-client", secret == nil && !kept.required:
			continue
		case secret == nil:
			c.problem = "the Secret does not exist"
		case k.suffix == "sa":
			c.problem = problemOf(pki.CheckServiceAccountKey(keyPair(secret)))
		case k.suffix == "kubeconfig":
			c = clientOf(c, secret.Data[kubeconfig.Key], authorities["ca"])
		case k.suffix == "apiserver-etcd-client":
			c = c.of(parseChain(secret.Data[corev1.TLSCertKey]), authorities["etcd-ca"])
		default:
			c = c.of(authorities[k.name], nil)
			if len(authorities[k.name]) > 0 {
				// That it has expired is said of every certificate in the same words.
				c.problem = problemOf(pki.CheckAuthority(keyPair(secret), earlier(now, c.expires)))
			}
		}
		out = append(out, c)
	}
	return out
}

// clientOf reads the client certificate of a kubeconfig. One with a token has none, which is no problem.
func clientOf(c certificate, text []byte, authority []*x509.Certificate) certificate {
	config, err := clientcmd.Load(text)
	if err != nil {
		c.problem = problemOf(err)
		return c
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.AuthInfos[current.AuthInfo] == nil {
		c.problem = "it has no current context with a user"
		return c
	}
	user := config.AuthInfos[current.AuthInfo]
	if len(user.ClientCertificateData) == 0 {
		c.subject = current.AuthInfo
		return c
	}
	return c.of(parseChain(user.ClientCertificateData), authority)
}

// of describes the first of a chain, which one of the authority's certificates has signed, if any are known.
func (c certificate) of(chain, authority []*x509.Certificate) certificate {
	if len(chain) == 0 {
		c.problem = "there is no certificate in PEM form"
		return c
	}
	leaf := chain[0]
	c.subject, c.authority, c.expires = leaf.Subject.CommonName, leaf.Issuer.CommonName, leaf.NotAfter
	if len(authority) > 0 && !signedBy(chain, authority) {
		c.problem = fmt.Sprintf("it is not signed by the cluster's authority %q", authority[0].Subject.CommonName)
	}
	return c
}

// signedBy tells whether a chain leads to one of the authorities.
func signedBy(chain, authorities []*x509.Certificate) bool {
	for i := range chain {
		if slices.ContainsFunc(authorities, func(a *x509.Certificate) bool { return a.Equal(chain[i]) || chain[i].CheckSignatureFrom(a) == nil }) {
			return true
		}
		if i+1 == len(chain) || chain[i].CheckSignatureFrom(chain[i+1]) != nil {
			return false
		}
	}
	return false
}

func parseChain(text []byte) []*x509.Certificate {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if parsed, err := x509.ParseCertificate(block.Bytes); err == nil {
			chain = append(chain, parsed)
		}
	}
	return chain
}

func keyPair(secret *corev1.Secret) pki.KeyPair {
	return pki.KeyPair{Cert: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey]}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func problemOf(err error) string {
	if err == nil {
		return ""
	}
	return oneLine(err.Error())
}

// recordedCertificates are what controllers wrote down of machines; unseen is why that is all there is. A machine without
// a node has no certificate yet.
func recordedCertificates(machines []clusterv1.Machine, unseen error) []certificate {
	var out []certificate
	for i := range machines {
		m := &machines[i]
		c := certificate{name: "apiserver", machine: m.Name, source: "Machine " + m.Name, expires: recordedExpiry(m)}
		switch {
		case !c.expires.IsZero():
		case m.Status.NodeRef.Name == "":
			continue
		default:
			c.problem = "not known: " + problemOf(unseen)
		}
		out = append(out, c)
	}
	return out
}

// recordedExpiry is when the API server's certificate of a machine expires, as its controllers have seen it.
func recordedExpiry(m *clusterv1.Machine) time.Time {
	if at := m.Status.CertificatesExpiryDate; !at.IsZero() {
		return at.Time
	}
	at, err := time.Parse(time.RFC3339, m.Annotations[clusterv1.MachineCertificatesExpiryDateAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}

// judgeCertificates counts the days, and says of those that have too few that they do.
func judgeCertificates(certificates []certificate, now time.Time, warnDays int) []certificate {
	certificates = slices.Clone(certificates)
	for i := range certificates {
		c := &certificates[i]
		if c.expires.IsZero() {
			continue
		}
		left := c.expires.Sub(now)
		c.daysLeft = int(math.Floor(left.Hours() / 24))
		switch {
		case c.problem != "":
		case left <= 0:
			c.problem = "expired"
		case c.daysLeft < warnDays:
			c.problem = fmt.Sprintf("expires in fewer than %d days", warnDays)
		}
	}
	return certificates
}

// certificateAdvice says what to do about what is wrong, one line a kind of certificate; empty when all is well.
func certificateAdvice(certificates []certificate, cluster *clusterv1.Cluster) []string {
	var advice []string
	for _, c := range certificates {
		if c.problem == "" {
			continue
		}
		line := fmt.Sprintf("%s: replace it by hand in Secret %s-%s, with its key: machines that are made afterwards use it", c.name, cluster.Name, secretSuffix(c.name))
		switch {
		case c.machine != "" && cluster.Spec.ControlPlaneRef.IsDefined():
			line = fmt.Sprintf("machines: kubectl machines certs rotate %s makes new ones, with new certificates", cluster.Name)
		case c.machine != "" || c.name == "apiserver":
			line = "apiserver: renew it where the control plane is looked after, on its machines with kubeadm certs renew"
		case c.name == "kubeconfig" && cluster.Spec.ControlPlaneRef.IsDefined():
			line = fmt.Sprintf("kubeconfig: the control plane's controller renews it at half of its life; see that it runs, or delete Secret %s-kubeconfig, and it makes another", cluster.Name)
		case c.name == "kubeconfig":
			line = fmt.Sprintf("kubeconfig: kubectl machines adopt %s --kubeconfig FILE takes another", cluster.Name)
		}
		if !slices.Contains(advice, line) {
			advice = append(advice, line)
		}
	}
	return advice
}

func secretSuffix(name string) string {
	for _, kept := range keptNames {
		if kept.name == name {
			return kept.suffix
		}
	}
	return name
}

var certificateColumns = cli.Columns{
	{Name: "Name"}, {Name: "Machine"}, {Name: "Expires"}, {Name: "Days-Left"}, {Name: "Authority"}, {Name: "Problem"},
	{Name: "Subject", Wide: true}, {Name: "Source", Wide: true},
}

func certificateTable(certificates []certificate) *metav1.Table {
	table := certificateColumns.Table()
	for _, c := range certificates {
		expires, days := "", ""
		if !c.expires.IsZero() {
			expires, days = c.expires.UTC().Format(time.RFC3339), strconv.Itoa(c.daysLeft)
		}
		cli.AddRow(table, &clusterv1.Cluster{}, c.name, c.machine, expires, days, c.authority, c.problem, c.subject, c.source)
	}
	return table
}

// byMachine sorts what was gathered side by side.
func byMachine(a, b certificate) int {
	return cmp.Or(cmp.Compare(a.machine, b.machine), cmp.Compare(a.name, b.name))
}
