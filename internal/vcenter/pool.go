package vcenter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Endpoint is a vCenter and who logs in there.
type Endpoint struct {
	// Server is a host name or address with an optional port.
	Server string
	// Thumbprint pins the certificate: its SHA-1 or SHA-256 sum in hexadecimal. Empty: the system's roots decide.
	Thumbprint         string
	Username, Password string
}

// key identifies a session. The password is hashed so that it is in no dump of the map.
func (e Endpoint) key() string {
	sum := sha256.Sum256([]byte(e.Username + "\x00" + e.Password))
	return fmt.Sprintf("%s\x00%s\x00%x", strings.ToLower(e.Server), normalThumbprint(e.Thumbprint), sum)
}

// Options tune a Pool. The zero value is good for production.
type Options struct {
	Log logr.Logger
	// MaxClones is how many clone tasks run at once in one vCenter; 16 when zero. vCenter queues what is above its own
	// limits, so a larger number gains little and delays everybody else's tasks.
	MaxClones int
	// CallTimeout bounds one call; a minute when zero.
	CallTimeout time.Duration
	// Metrics counts logins and calls; nil for none.
	Metrics *Metrics

	// watchWait is how long vCenter holds a wait for updates without news; a minute when zero. vCenter drops a session
	// that is idle for half an hour: this call keeps ours alive, and tells that the server is gone.
	watchWait time.Duration
}

// Pool shares sessions. It is safe for concurrent use.
type Pool struct {
	opts Options

	mu       sync.Mutex
	sessions map[string]*Session
	// uses maps a user and a server to the key of the session in use there.
	uses      map[use]string
	listeners []func(owner string)
	onState   []func(user string)
	closed    bool
}

type use struct{ user, server string }

// NewPool returns an empty pool. Run Start, or call Close in the end, so that its sessions are logged out.
func NewPool(opts Options) *Pool {
	if opts.MaxClones == 0 {
		opts.MaxClones = 16
	}
	if opts.CallTimeout == 0 {
		opts.CallTimeout = time.Minute
	}
	if opts.watchWait == 0 {
		opts.watchWait = time.Minute
	}
	return &Pool{opts: opts, sessions: map[string]*Session{}, uses: map[use]string{}}
}

// Start waits for the end of ctx and logs all sessions out.
func (p *Pool) Start(ctx context.Context) error {
	<-ctx.Done()
	p.Close()
	return nil
}

// Close logs all sessions out. The pool gives no more.
func (p *Pool) Close() {
	p.mu.Lock()
	sessions := p.sessions
	p.sessions, p.uses, p.closed = map[string]*Session{}, map[use]string{}, true
	p.mu.Unlock()
	for _, s := range sessions {
		s.close()
	}
}

// OnChange registers f to be called with the owner of a virtual machine or task that changed. f must not block.
func (p *Pool) OnChange(f func(owner string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listeners = append(p.listeners, f)
}

// OnState registers f to be called with every user of a session whose connection was lost or found. f must not block.
func (p *Pool) OnState(f func(user string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onState = append(p.onState, f)
}

// Session returns the session of user with a vCenter, logged in. When the endpoint differs from what user had with that
// server before, as after a change of the password, the old session is given up, and logged out once nobody uses it.
func (p *Pool) Session(ctx context.Context, user string, e Endpoint) (*Session, error) {
	s, unused, err := p.acquire(user, e)
	if err != nil {
		return nil, err
	}
	if unused != nil {
		go unused.close()
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (p *Pool) acquire(user string, e Endpoint) (s, unused *Session, err error) {
	key := e.key()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	u := use{user, strings.ToLower(e.Server)}
	if before, ok := p.uses[u]; ok && before != key {
		unused = p.release(u)
	}
	p.uses[u] = key
	s, ok := p.sessions[key]
	if !ok {
		s = newSession(p, e)
		p.sessions[key] = s
	}
	return s, unused, nil
}

// Release gives up all sessions of user.
func (p *Pool) Release(user string) {
	p.mu.Lock()
	var unused []*Session
	for u := range p.uses {
		if u.user == user {
			if s := p.release(u); s != nil {
				unused = append(unused, s)
			}
		}
	}
	p.mu.Unlock()
	for _, s := range unused {
		go s.close()
	}
}

// release drops one use and returns its session when it was the last. The caller holds the lock.
func (p *Pool) release(u use) *Session {
	key := p.uses[u]
	delete(p.uses, u)
	for _, other := range p.uses {
		if other == key {
			return nil
		}
	}
	s := p.sessions[key]
	delete(p.sessions, key)
	return s
}

// Sessions is the number of sessions in use.
func (p *Pool) Sessions() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

func (p *Pool) notify(owner string) {
	p.mu.Lock()
	listeners := p.listeners
	p.mu.Unlock()
	for _, f := range listeners {
		f(owner)
	}
}

// notifyState tells the users of a session that its connection was lost or found.
func (p *Pool) notifyState(s *Session) {
	key := s.endpoint.key()
	p.mu.Lock()
	var users []string
	for u, k := range p.uses {
		if k == key {
			users = append(users, u.user)
		}
	}
	listeners := p.onState
	p.mu.Unlock()
	for _, f := range listeners {
		for _, user := range users {
			f(user)
		}
	}
}
