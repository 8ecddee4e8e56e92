package management

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate here: longer than any sandbox runs.
const lifetime = 365 * 24 * time.Hour

// serviceIP is the first address of serviceCIDR, under which pods would know
// the API server.
const (
	serviceCIDR = "10.96.0.0/16"
	serviceIP   = "10.96.0.1"
)

// authority signs the certificates of one cluster and writes them into a folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// newAuthority makes a CA and writes ca.crt and ca.key.
func newAuthority(dir, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	a := &authority{dir: dir, cert: template, key: key}
	if a.cert, err = a.sign("ca", template, key); err != nil {
		return nil, err
	}
	return a, nil
}

// client makes a client certificate: <file>.crt and <file>.key.
func (a *authority) client(file, user string, groups ...string) error {
	_, err := a.issue(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	return err
}

// server makes a certificate for an address and names. It is a client
// certificate too: etcd's members and its HTTP gateway are each other's clients.
func (a *authority) server(file string, ip string, names ...string) error {
	_, err := a.issue(file, &x509.Certificate{
		Subject:     pkix.Name{CommonName: file},
		IPAddresses: []net.IP{net.ParseIP(ip), net.ParseIP(serviceIP)},
		DNSNames:    append([]string{"localhost"}, names...),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return err
}

func (a *authority) issue(file string, template *x509.Certificate) (*x509.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	return a.sign(file, template, key)
}

// sign completes the template, signs it and writes certificate and key.
func (a *authority) sign(file string, template *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	// A little in the past, for clocks that are corrected backwards.
	template.NotBefore = time.Now().Add(-time.Minute)
	template.NotAfter = time.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate %q: %w", file, err)
	}
	if err := writePEM(filepath.Join(a.dir, file+".crt"), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	if err := writeKey(filepath.Join(a.dir, file+".key"), key); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// serviceAccountKey makes the key pair that signs service account tokens:
// <file>.key and <file>.pub.
func serviceAccountKey(dir, file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, file+".pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(filepath.Join(dir, file+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
