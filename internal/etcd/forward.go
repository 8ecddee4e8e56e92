package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forwarder opens connections to one port of one pod through a cluster's API server. All of them
// share one request, which Close ends.
type Forwarder struct {
	dialer httpstream.Dialer
	target string
	port   int

	mu         sync.Mutex
	connection httpstream.Connection
	requests   int
	closed     bool
}

// NewForwarder prepares a port-forward to a pod; nothing is sent before the first Dial.
func NewForwarder(config *rest.Config, clientset kubernetes.Interface, namespace, pod string, port int) (*Forwarder, error) {
	target := fmt.Sprintf("pod %s/%s port %d", namespace, pod, port)
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward to %s: %w", target, err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward to %s: %w", target, err)
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	// As kubectl does: API servers before v1.31 know port-forward over SPDY only.
	dialer := portforward.NewFallbackDialerForStreaming(webSocket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	return &Forwarder{dialer: dialer, target: target, port: port}, nil
}

// Dial opens a connection to the port. It is a DialFunc; address is ignored.
func (f *Forwarder) Dial(ctx context.Context, _ string) (net.Conn, error) {
	connection, request, err := f.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("port-forward to %s: %w", f.target, err)
	}
	conn, err := openStreams(connection, request, f.port)
	if err != nil {
		return nil, fmt.Errorf("port-forward to %s: %w", f.target, err)
	}
	return conn, nil
}

// Close ends all connections.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.connection != nil {
		_ = f.connection.Close()
	}
}

// connect returns the shared connection and a number for the next pair of streams on it.
func (f *Forwarder) connect(ctx context.Context) (httpstream.Connection, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, 0, errors.New("already closed")
	}
	if f.connection == nil {
		connection, err := f.upgrade(ctx)
		if err != nil {
			return nil, 0, err
		}
		f.connection = connection
	}
	f.requests++
	return f.connection, f.requests, nil
}

// upgrade asks the API server for the port-forward. The library's dialer knows no context, so that a
// server that does not answer is left to a goroutine that hangs up when it does.
func (f *Forwarder) upgrade(ctx context.Context) (httpstream.Connection, error) {
	type result struct {
		connection httpstream.Connection
		err        error
	}
	results := make(chan result, 1)
	go func() {
		connection, _, err := f.dialer.Dial(portforward.PortForwardProtocolV1Name)
		results <- result{connection, err}
	}()
	select {
	case r := <-results:
		return r.connection, r.err
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				_ = r.connection.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// openStreams opens the error and the data stream of one connection (protocol portforward.k8s.io).
func openStreams(connection httpstream.Connection, request, port int) (*streamConn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(request))
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open error stream: %w", err)
	}
	// We never write to it.
	_ = failures.Close()

	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		connection.RemoveStreams(failures)
		return nil, fmt.Errorf("open data stream: %w", err)
	}
	conn := &streamConn{Stream: data, remove: func() { connection.RemoveStreams(data, failures) }, complained: make(chan struct{})}
	go conn.watch(failures)
	return conn, nil
}

// streamConn makes a net.Conn of a data stream.
type streamConn struct {
	httpstream.Stream
	remove func()

	once       sync.Once
	cause      error
	complained chan struct{} // closed when cause is final
}

// complaintGrace is how long the end of the data may precede the reason for it.
const complaintGrace = time.Second

// watch waits for the far side's complaint, such as a refused connection, to pass it on to readers,
// who would only see the end of the data.
func (c *streamConn) watch(failures io.Reader) {
	defer close(c.complained)
	message, err := io.ReadAll(failures)
	if err != nil || len(message) == 0 {
		return
	}
	c.cause = errors.New(strings.TrimSpace(string(message)))
	_ = c.Stream.Reset()
}

func (c *streamConn) Read(p []byte) (int, error) {
	n, err := c.Stream.Read(p)
	if err == nil {
		return n, nil
	}
	select {
	case <-c.complained:
		if c.cause != nil {
			err = c.cause
		}
	case <-time.After(complaintGrace):
	}
	return n, err
}

// Close ends both directions.
func (c *streamConn) Close() error {
	c.once.Do(func() {
		_ = c.Stream.Reset()
		c.remove()
	})
	return nil
}

// LocalAddr and RemoteAddr have nothing to tell: the connection is a stream in another one.
func (c *streamConn) LocalAddr() net.Addr  { return streamAddr{} }
func (c *streamConn) RemoteAddr() net.Addr { return streamAddr{} }

// Deadlines are not supported by streams. gRPC bounds its requests by context instead, and Close
// unblocks readers.
func (c *streamConn) SetDeadline(time.Time) error      { return nil }
func (c *streamConn) SetReadDeadline(time.Time) error  { return nil }
func (c *streamConn) SetWriteDeadline(time.Time) error { return nil }

type streamAddr struct{}

func (streamAddr) Network() string { return "port-forward" }
func (streamAddr) String() string  { return "port-forward" }
