package pki

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
)

const (
	// DefaultCAValidity is kubeadm's for certificate authorities: ten years.
	DefaultCAValidity = 10 * 365 * 24 * time.Hour
	// DefaultClientValidity is kubeadm's for everything else: one year.
	DefaultClientValidity = 365 * 24 * time.Hour

	// clockSkew lets a machine whose clock is a little behind ours accept a certificate at once.
	clockSkew = 5 * time.Minute
)

// Options say how a certificate is made. The zero value gives kubeadm's defaults.
type Options struct {
	// Algorithm of the private key; empty means RSA2048.
	Algorithm Algorithm
	// Validity counted from Now; zero means DefaultCAValidity or DefaultClientValidity.
	Validity time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (o Options) period(fallback time.Duration) (notBefore, notAfter time.Time) {
	now := time.Now
	if o.Now != nil {
		now = o.Now
	}
	validity := o.Validity
	if validity == 0 {
		validity = fallback
	}
	start := now().UTC()
	return start.Add(-clockSkew), start.Add(validity)
}

// NewCA returns a self-signed certificate authority.
func NewCA(commonName string, options Options) (KeyPair, error) {
	key, err := newKey(options.Algorithm)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate key of authority %q: %w", commonName, err)
	}
	serial, err := newSerial()
	if err != nil {
		return KeyPair{}, err
	}
	notBefore, notAfter := options.period(DefaultCAValidity)
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName},
		DNSNames:              []string{commonName},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	return sign(template, template, key, key)
}

// NewClientCert returns a client certificate of user commonName in the given organizations (to
// Kubernetes: groups), signed by ca. It never outlives ca.
func NewClientCert(ca KeyPair, commonName string, organizations []string, options Options) (KeyPair, error) {
	issuer, issuerKey, err := ca.authority()
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign client certificate %q: %w", commonName, err)
	}
	key, err := newKey(options.Algorithm)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate key of client %q: %w", commonName, err)
	}
	serial, err := newSerial()
	if err != nil {
		return KeyPair{}, err
	}
	notBefore, notAfter := options.period(DefaultClientValidity)
	if issuer.NotAfter.Before(notAfter) {
		notAfter = issuer.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: commonName, Organization: organizations},
		NotBefore:             notBefore,
		NotAfter:              notAfter,
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	return sign(template, issuer, key, issuerKey)
}

// ParseCertificate returns the first certificate in data.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == blockCertificate {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("no certificate in PEM form")
}

// CertHashes returns the public key pins of all certificates in ca, each in the form in which
// kubeadm takes them: "sha256:<hex of the hashed Subject Public Key Info>" (RFC 7469, section 2.4).
func CertHashes(ca []byte) ([]string, error) {
	var hashes []string
	for block, rest := pem.Decode(ca); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != blockCertificate {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse certificate: %w", err)
		}
		sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		hashes = append(hashes, "sha256:"+hex.EncodeToString(sum[:]))
	}
	if len(hashes) == 0 {
		return nil, errors.New("no certificate in PEM form")
	}
	return hashes, nil
}

// CheckAuthority tells why pair cannot serve as a certificate authority at the time now, if so.
// A pair without a private key passes: its owner may sign elsewhere.
func CheckAuthority(pair KeyPair, now time.Time) error {
	certificate, err := ParseCertificate(pair.Cert)
	switch {
	case err != nil:
		return err
	case !certificate.IsCA:
		return fmt.Errorf("certificate %q is not a certificate authority", certificate.Subject.CommonName)
	case certificate.KeyUsage != 0 && certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("certificate authority %q may not sign certificates: its key usage lacks Certificate Sign", certificate.Subject.CommonName)
	case now.Before(certificate.NotBefore):
		return fmt.Errorf("certificate authority %q is not valid before %s", certificate.Subject.CommonName, certificate.NotBefore.Format(time.RFC3339))
	case now.After(certificate.NotAfter):
		return fmt.Errorf("certificate authority %q expired on %s", certificate.Subject.CommonName, certificate.NotAfter.Format(time.RFC3339))
	case len(pair.Key) == 0:
		return nil
	}
	_, _, err = pair.authority()
	return err
}

// CheckClientCert tells why pair cannot serve as a client's certificate at the time now, if so. A pair without a private
// key passes.
func CheckClientCert(pair KeyPair, now time.Time) error {
	certificate, err := ParseCertificate(pair.Cert)
	switch {
	case err != nil:
		return err
	case now.After(certificate.NotAfter):
		return fmt.Errorf("certificate %q expired on %s", certificate.Subject.CommonName, certificate.NotAfter.Format(time.RFC3339))
	case len(pair.Key) == 0:
		return nil
	}
	key, err := decodeKey(pair.Key)
	if err != nil {
		return err
	}
	if !samePublicKey(certificate.PublicKey, key.Public()) {
		return fmt.Errorf("private key does not belong to certificate %q", certificate.Subject.CommonName)
	}
	return nil
}

// CheckServiceAccountKey tells why pair cannot sign and verify service account tokens, if so.
func CheckServiceAccountKey(pair KeyPair) error {
	block, _ := pem.Decode(pair.Cert)
	if block == nil {
		return errors.New("no public key in PEM form")
	}
	var public crypto.PublicKey
	if block.Type == blockCertificate {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		public = certificate.PublicKey
	} else {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return err
		}
		public = key
	}
	private, err := decodeKey(pair.Key)
	if err != nil {
		return err
	}
	if !samePublicKey(public, private.Public()) {
		return errors.New("the private key does not belong to the public key")
	}
	return nil
}

func (p KeyPair) authority() (*x509.Certificate, crypto.Signer, error) {
	certificate, err := ParseCertificate(p.Cert)
	if err != nil {
		return nil, nil, fmt.Errorf("read authority's certificate: %w", err)
	}
	key, err := decodeKey(p.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("read authority's private key: %w", err)
	}
	if !samePublicKey(certificate.PublicKey, key.Public()) {
		return nil, nil, fmt.Errorf("private key does not belong to certificate %q", certificate.Subject.CommonName)
	}
	return certificate, key, nil
}

func sign(template, issuer *x509.Certificate, key, issuerKey crypto.Signer) (KeyPair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), issuerKey)
	if err != nil {
		return KeyPair{}, fmt.Errorf("sign certificate %q: %w", template.Subject.CommonName, err)
	}
	encoded, err := encodeKey(key)
	if err != nil {
		return KeyPair{}, err
	}
	return KeyPair{Cert: pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der}), Key: encoded}, nil
}

// newSerial returns a positive random number: RFC 5280 forbids zero.
func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64-1))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	return serial.Add(serial, big.NewInt(1)), nil
}

func samePublicKey(a, b crypto.PublicKey) bool {
	left, err := x509.MarshalPKIXPublicKey(a)
	if err != nil {
		return false
	}
	right, err := x509.MarshalPKIXPublicKey(b)
	return err == nil && bytes.Equal(left, right)
}
