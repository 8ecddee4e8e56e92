package endpoint

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// dialTimeout bounds how long a connection waits for one backend; at loopback
// an answer comes at once or never.
const dialTimeout = time.Second

// Forwarder listens at virtual addresses while somebody holds them.
type Forwarder struct {
	// Changed is told the backends of an address after each change.
	Changed func(address string, backends []string)

	mu    sync.Mutex
	addrs map[string]*listener
}

// listener is one virtual address, host:port.
type listener struct {
	net.Listener
	mu sync.Mutex
	// backends in the order in which they came up: the first is the leader.
	backends []string
	conns    map[net.Conn]string // the client's side, by backend
}

// Up says that backend holds address. It fails where the address cannot be
// listened at.
func (f *Forwarder) Up(address, backend string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.addrs[address]
	if l == nil {
		inner, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("virtual address %s: %w: take one that `sandbox address` gives", address, err)
		}
		l = &listener{Listener: inner, conns: map[net.Conn]string{}}
		if f.addrs == nil {
			f.addrs = map[string]*listener{}
		}
		f.addrs[address] = l
		go l.serve()
	}
	l.mu.Lock()
	if !slices.Contains(l.backends, backend) {
		l.backends = append(l.backends, backend)
	}
	backends := slices.Clone(l.backends)
	l.mu.Unlock()
	f.changed(address, backends)
	return nil
}

// Down says that backend holds address no more. Its connections are cut, as
// they are when an address moves to another machine; without a backend the
// address falls silent.
func (f *Forwarder) Down(address, backend string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.addrs[address]
	if l == nil {
		return
	}
	l.mu.Lock()
	l.backends = slices.DeleteFunc(l.backends, func(b string) bool { return b == backend })
	backends := slices.Clone(l.backends)
	for conn, b := range l.conns {
		if b == backend {
			conn.Close()
		}
	}
	l.mu.Unlock()
	if len(backends) == 0 {
		l.Close()
		delete(f.addrs, address)
	}
	f.changed(address, backends)
}

func (f *Forwarder) changed(address string, backends []string) {
	if f.Changed != nil {
		f.Changed(address, backends)
	}
}

// serve accepts until the listener is closed.
func (l *listener) serve() {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go l.forward(conn)
	}
}

// forward connects a client with the first backend that answers.
func (l *listener) forward(client net.Conn) {
	defer client.Close()
	l.mu.Lock()
	backends := slices.Clone(l.backends)
	l.mu.Unlock()
	for _, backend := range backends {
		server, err := net.DialTimeout("tcp", backend, dialTimeout)
		if err != nil {
			continue
		}
		defer server.Close()
		if !l.track(client, backend) {
			return
		}
		defer l.untrack(client)
		pipe(client, server)
		return
	}
}

// track remembers a connection; false if its backend went down meanwhile.
func (l *listener) track(client net.Conn, backend string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.backends, backend) {
		return false
	}
	l.conns[client] = backend
	return true
}

func (l *listener) untrack(client net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, client)
}

// pipe copies both ways. The end of one direction is passed on; the end of
// both ends the connection.
func pipe(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(way[1], way[0])
			if half, ok := way[1].(*net.TCPConn); ok && err == nil {
				_ = half.CloseWrite()
				return
			}
			way[0].Close()
			way[1].Close()
		})
	}
	both.Wait()
}
