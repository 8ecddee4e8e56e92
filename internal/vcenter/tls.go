package vcenter

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/vmware/govmomi/vim25/soap"
)

// tlsConfig verifies the server by the pinned thumbprint when there is one, else by the system's roots. govmomi's own
// SetThumbprint accepts any certificate that the roots trust whatever the thumbprint says; a pin must not.
func tlsConfig(e Endpoint, host string) *tls.Config {
	return &tls.Config{
		ServerName: serverName(host),
		MinVersion: tls.VersionTLS12,
		// Verification is done below, so that a failure can tell the thumbprint that the server presented.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			if e.Thumbprint != "" {
				return verifyPin(e, state.PeerCertificates[0])
			}
			return verifyChain(state)
		},
	}
}

func verifyPin(e Endpoint, cert *x509.Certificate) error {
	want := normalThumbprint(e.Thumbprint)
	sha1, sha256 := soap.ThumbprintSHA1(cert), thumbprint256(cert)
	if want == normalThumbprint(sha1) || want == normalThumbprint(sha256) {
		return nil
	}
	// Answer in the form of the pin: a SHA-1 sum has 40 hexadecimal digits.
	got := sha256
	if len(want) == 40 {
		got = sha1
	}
	return &ThumbprintError{Server: e.Server, Want: e.Thumbprint, Got: got}
}

func verifyChain(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server presented no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{DNSName: state.ServerName, Intermediates: intermediates})
	if err != nil {
		return &untrustedError{thumbprint: thumbprint256(state.PeerCertificates[0]), err: err}
	}
	return nil
}

// normalThumbprint makes equal what people write in different ways.
func normalThumbprint(s string) string {
	return strings.ToUpper(strings.NewReplacer(":", "", " ", "").Replace(s))
}

func serverName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}
