package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
)

// ServedChain returns the certificates that a server shows, its own first. They are looked at and not trusted: an
// expired one is what is looked for. A server that then wants a certificate of ours has shown its own before.
// The handshake ends with ctx.
func ServedChain(ctx context.Context, serverName string, dial func(context.Context) (net.Conn, error)) ([]*x509.Certificate, error) {
	conn, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	// A forwarded connection knows no deadline.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()

	var chain []*x509.Certificate
	shaking := tls.Client(conn, &tls.Config{
		ServerName: serverName, MinVersion: tls.VersionTLS12,
		// Nothing is sent, and the caller compares with the authority.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			chain = state.PeerCertificates
			return nil
		},
	})
	if err := shaking.HandshakeContext(ctx); err != nil && len(chain) == 0 {
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	return chain, nil
}
