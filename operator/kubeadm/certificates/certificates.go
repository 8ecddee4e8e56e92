package certificates

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"

	"github.com/millwright-dev/millwright/internal/pki"
)

// Purpose of a certificate; it also is the end of its Secret's name (contract page, "Secrets").
type Purpose string

// The certificates of a kubeadm cluster.
const (
	ClusterCA           Purpose = "ca"
	EtcdCA              Purpose = "etcd"
	FrontProxyCA        Purpose = "proxy"
	ServiceAccount      Purpose = "sa"
	APIServerEtcdClient Purpose = "apiserver-etcd-client"
)

// Keys of the Secrets.
const (
	certKey = "tls.crt"
	keyKey  = "tls.key"
)

// defaultDir is where kubeadm looks for certificates when nothing else is configured.
const defaultDir = "/etc/kubernetes/pki"

// Set holds the certificates that exist.
type Set map[Purpose]pki.KeyPair

// Needed returns the certificates without which a control plane of this configuration cannot start.
func Needed(config bootstrapv1.ClusterConfiguration) []Purpose {
	needed := []Purpose{ClusterCA, EtcdCA, FrontProxyCA, ServiceAccount}
	if config.Etcd.External.IsDefined() {
		needed = append(needed, APIServerEtcdClient)
	}
	return needed
}

// SecretName returns the name of the Secret of a cluster's certificate.
func SecretName(cluster string, purpose Purpose) string {
	return cluster + "-" + string(purpose)
}

// Missing returns those of needed that are not in the set.
func (s Set) Missing(needed []Purpose) []Purpose {
	var missing []Purpose
	for _, purpose := range needed {
		if _, ok := s[purpose]; !ok {
			missing = append(missing, purpose)
		}
	}
	return missing
}

// Files returns the files that give the set to kubeadm on a control plane machine, in a fixed order.
func (s Set) Files(config bootstrapv1.ClusterConfiguration) []bootstrapv1.File {
	var files []bootstrapv1.File
	for _, purpose := range Needed(config) {
		pair, ok := s[purpose]
		if !ok {
			continue
		}
		cert, key := paths(purpose, config)
		files = append(files, file(cert, "0640", pair.Cert))
		if len(pair.Key) > 0 && key != "" {
			files = append(files, file(key, "0600", pair.Key))
		}
	}
	return files
}

func file(path, permissions string, content []byte) bootstrapv1.File {
	return bootstrapv1.File{Path: path, Owner: "root:root", Permissions: permissions, Content: string(content)}
}

// paths returns where kubeadm looks for a certificate and its key (kubernetes.io, "PKI certificates
// and requirements"). An external etcd's lie where the configuration says, and its authority's key
// is nobody's business but the etcd's.
func paths(purpose Purpose, config bootstrapv1.ClusterConfiguration) (cert, key string) {
	dir := config.CertificatesDir
	if dir == "" {
		dir = defaultDir
	}
	external := config.Etcd.External
	switch purpose {
	case EtcdCA:
		if external.IsDefined() {
			return external.CAFile, ""
		}
		return path.Join(dir, "etcd/ca.crt"), path.Join(dir, "etcd/ca.key")
	case APIServerEtcdClient:
		return external.CertFile, external.KeyFile
	case FrontProxyCA:
		return path.Join(dir, "front-proxy-ca.crt"), path.Join(dir, "front-proxy-ca.key")
	case ServiceAccount:
		return path.Join(dir, "sa.pub"), path.Join(dir, "sa.key")
	default:
		return path.Join(dir, "ca.crt"), path.Join(dir, "ca.key")
	}
}

// generate makes a new certificate of a purpose that has no outside owner.
func generate(purpose Purpose, config bootstrapv1.ClusterConfiguration, now func() time.Time) (pki.KeyPair, error) {
	options := pki.Options{
		Algorithm: pki.Algorithm(config.EncryptionAlgorithm),
		Validity:  time.Duration(config.CACertificateValidityPeriodDays) * 24 * time.Hour,
		Now:       now,
	}
	switch purpose {
	case ServiceAccount:
		return pki.NewServiceAccountKey(options.Algorithm)
	case EtcdCA:
		return pki.NewCA("etcd-ca", options)
	case FrontProxyCA:
		return pki.NewCA("front-proxy-ca", options)
	default:
		return pki.NewCA("kubernetes", options)
	}
}

// generated tells whether certificates of this purpose are ours to make.
func generated(purpose Purpose, config bootstrapv1.ClusterConfiguration) bool {
	external := []Purpose{EtcdCA, APIServerEtcdClient}
	return !config.Etcd.External.IsDefined() || !slices.Contains(external, purpose)
}

// check tells why a pair cannot do what it is for, if so, and by which key of its Secret.
func check(purpose Purpose, pair pki.KeyPair, now time.Time) (key string, err error) {
	switch purpose {
	case ServiceAccount:
		return certKey + " and " + keyKey, pki.CheckServiceAccountKey(pair)
	case APIServerEtcdClient:
		if err := pki.CheckClientCert(pki.KeyPair{Cert: pair.Cert}, now); err != nil {
			return certKey, err
		}
		if len(pair.Key) == 0 {
			return keyKey, errors.New("there is no private key")
		}
		return keyKey, pki.CheckClientCert(pair, now)
	default:
		if err := pki.CheckAuthority(pki.KeyPair{Cert: pair.Cert}, now); err != nil {
			return certKey, err
		}
		return keyKey, pki.CheckAuthority(pair, now)
	}
}

func join(purposes []Purpose, cluster string) string {
	names := make([]string, 0, len(purposes))
	for _, purpose := range purposes {
		names = append(names, fmt.Sprintf("%q", SecretName(cluster, purpose)))
	}
	return strings.Join(names, ", ")
}
