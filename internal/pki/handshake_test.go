package pki

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestAServerShowsItsCertificateThoughNobodyTrustsIt(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	chain, err := ServedChain(t.Context(), "localhost", func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	if err != nil || len(chain) == 0 || !chain[0].Equal(server.Certificate()) {
		t.Errorf("chain of %d, %v", len(chain), err)
	}
}

func TestAHandshakeEndsWithItsContext(t *testing.T) {
	ours, theirs := net.Pipe() // knows deadlines, and says nothing
	t.Cleanup(func() { _ = theirs.Close() })
	go func() { _, _ = theirs.Read(make([]byte, 1<<12)) }()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := ServedChain(ctx, "localhost", func(context.Context) (net.Conn, error) { return ours, nil }); err == nil {
		t.Error("no error")
	}
	refused := errors.New("refused")
	if _, err := ServedChain(t.Context(), "localhost", func(context.Context) (net.Conn, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
}
