package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// Algorithm names a kind of private key as kubeadm's ClusterConfiguration.encryptionAlgorithm does.
type Algorithm string

// The algorithms that kubeadm v1beta4 knows. The empty Algorithm means RSA2048, kubeadm's default.
const (
	RSA2048   Algorithm = "RSA-2048"
	RSA3072   Algorithm = "RSA-3072"
	RSA4096   Algorithm = "RSA-4096"
	ECDSAP256 Algorithm = "ECDSA-P256"
	ECDSAP384 Algorithm = "ECDSA-P384"
)

// PEM block types, as openssl and kubeadm write them.
const (
	blockCertificate = "CERTIFICATE"
	blockPublicKey   = "PUBLIC KEY"
	blockPKCS8       = "PRIVATE KEY"
	blockRSA         = "RSA PRIVATE KEY"
	blockEC          = "EC PRIVATE KEY"
)

// KeyPair is a certificate (for service accounts: a public key) and its private key, in PEM.
type KeyPair struct {
	Cert []byte
	Key  []byte
}

// NewServiceAccountKey returns the key pair that signs and verifies service account tokens:
// Cert holds the bare public key, since no certificate is involved.
func NewServiceAccountKey(algorithm Algorithm) (KeyPair, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return KeyPair{}, fmt.Errorf("generate service account key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode service account public key: %w", err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode service account key: %w", err)
	}
	return KeyPair{Cert: pem.EncodeToMemory(&pem.Block{Type: blockPublicKey, Bytes: public}), Key: private}, nil
}

func newKey(algorithm Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case "", RSA2048:
		return rsa.GenerateKey(rand.Reader, 2048)
	case RSA3072:
		return rsa.GenerateKey(rand.Reader, 3072)
	case RSA4096:
		return rsa.GenerateKey(rand.Reader, 4096)
	case ECDSAP256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case ECDSAP384:
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	default:
		return nil, fmt.Errorf("unknown key algorithm %q: use one of %s, %s, %s, %s, %s",
			algorithm, RSA2048, RSA3072, RSA4096, ECDSAP256, ECDSAP384)
	}
}

// encodeKey uses the traditional block types, which every Kubernetes component and openssl read.
func encodeKey(key crypto.Signer) ([]byte, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return pem.EncodeToMemory(&pem.Block{Type: blockRSA, Bytes: x509.MarshalPKCS1PrivateKey(k)}), nil
	case *ecdsa.PrivateKey:
		der, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			return nil, err
		}
		return pem.EncodeToMemory(&pem.Block{Type: blockEC, Bytes: der}), nil
	default:
		return nil, fmt.Errorf("private key of type %T is not supported", key)
	}
}

func decodeKey(data []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case blockRSA:
			return x509.ParsePKCS1PrivateKey(block.Bytes)
		case blockEC:
			return x509.ParseECPrivateKey(block.Bytes)
		case blockPKCS8:
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, err
			}
			signer, ok := key.(crypto.Signer)
			if !ok {
				return nil, fmt.Errorf("private key of type %T cannot sign", key)
			}
			return signer, nil
		}
	}
	return nil, errors.New("no private key in PEM form")
}
