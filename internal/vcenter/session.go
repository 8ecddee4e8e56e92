package vcenter

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const (
	// loginTimeout bounds a login; firstLogin is how much of the first one somebody waits for who wants the session.
	loginTimeout, firstLogin = 30 * time.Second, 5 * time.Second
	// retryAfterLoss and its cap pace reconnection to a vCenter that does not answer.
	retryAfterLoss, maxRetryAfterLoss = time.Second, 10 * time.Second
	// A refused password is tried again seldom: vCenter locks an account after a few failures. A changed Secret does
	// not wait for this, it makes another session.
	retryAfterRefusal = time.Minute
)

// Session is a login at one vCenter, shared by everybody with the same credentials. It logs in again by itself when
// vCenter ended the session.
type Session struct {
	pool     *Pool
	endpoint Endpoint
	watch    *watcher
	tasks    *tasks

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	// tried is closed when the first login succeeded or failed.
	tried chan struct{}

	// logins lets one goroutine log in at a time.
	logins chan struct{}

	mu     sync.Mutex
	client *vim25.Client
	soap   *soap.Client
	// login counts logins, to tell whether somebody else has already logged in again.
	login int
	// err is why the session is not usable; nil when it is. nextTry is when it may be tried again.
	err      error
	failures int
	nextTry  time.Time
}

var errNotYet = errors.New("not yet logged in")

func newSession(p *Pool, e Endpoint) *Session {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Session{
		pool: p, endpoint: e, ctx: ctx, cancel: cancel,
		done: make(chan struct{}), tried: make(chan struct{}), logins: make(chan struct{}, 1), err: errNotYet,
	}
	s.watch = newWatcher(s)
	s.tasks = newTasks(p.opts.MaxClones)
	go s.run()
	return s
}

// run keeps the session connected and follows what it watches, until close.
func (s *Session) run() {
	defer close(s.done)
	short := 0
	for first := true; s.ctx.Err() == nil; first = false {
		err := s.connect(s.ctx)
		if first {
			close(s.tried)
		}
		if err == nil {
			began := time.Now()
			err = s.watch.follow(s.ctx)
			s.lost(err)
			short++
			if time.Since(began) > maxRetryAfterLoss {
				short = 0
			}
		}
		if s.ctx.Err() != nil {
			return
		}
		s.pool.opts.Log.V(1).Info("The watch of vCenter ended and will be taken up again", "vCenter", s.endpoint.Server, "reason", err.Error())
		timer := time.NewTimer(s.pause(short))
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			timer.Stop()
		}
	}
}

// pause is the time until the next try may be made, longer after several watches that ended soon.
func (s *Session) pause(short int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(time.Until(s.nextTry), min(50*time.Millisecond<<min(short, 8), maxRetryAfterLoss))
}

// usable is nil when the session can be used. It waits for the first try to log in, for a moment, and never for another
// one: run makes those, and tells when one succeeded. A vCenter that hangs holds nobody up who has business elsewhere.
func (s *Session) usable(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, firstLogin)
	defer cancel()
	select {
	case <-s.tried:
		return s.state()
	case <-s.ctx.Done():
		return ErrClosed
	case <-patience.Done():
		return &UnreachableError{Server: s.endpoint.Server, Err: errNotYet}
	}
}

// connect logs in unless that is done.
func (s *Session) connect(ctx context.Context) error {
	s.logins <- struct{}{}
	defer func() { <-s.logins }()
	if s.state() == nil {
		return nil
	}
	return s.logIn(ctx)
}

// relogin logs in again, unless somebody did so, or failed at it, since the given login.
func (s *Session) relogin(ctx context.Context, login int) error {
	select {
	case s.logins <- struct{}{}:
		defer func() { <-s.logins }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	current, err := s.login, s.err
	s.mu.Unlock()
	if current != login || err != nil {
		return err
	}
	return s.logIn(ctx)
}

// logIn makes a new login. The caller holds the token of logins.
func (s *Session) logIn(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	if s.revive(ctx) {
		return nil
	}
	raw, content, err := dial(ctx, s.endpoint)
	s.pool.opts.Metrics.login(s.endpoint.Server, err)

	s.mu.Lock()
	if s.ctx.Err() != nil {
		// Given up meanwhile: close does not know of this login.
		s.mu.Unlock()
		if err == nil {
			logOut(raw, content.ServiceContent)
		}
		return ErrClosed
	}
	wasUsable, old := s.err == nil, s.soap
	s.err = err
	if err != nil {
		s.failures++
		s.nextTry = time.Now().Add(retryPause(err, s.failures))
	} else {
		s.failures, s.nextTry = 0, time.Time{}
		s.login++
		s.soap = raw
		if s.client == nil {
			s.client = &vim25.Client{Client: raw, ServiceContent: content.ServiceContent, RoundTripper: roundTripper{s}}
		}
	}
	s.mu.Unlock()
	if err == nil {
		s.pool.opts.Log.Info("Logged in at vCenter", "vCenter", s.endpoint.Server, "user", s.endpoint.Username)
	}
	if old != nil && err == nil {
		old.CloseIdleConnections()
		s.watch.restart()
	}
	if wasUsable != (err == nil) {
		s.pool.notifyState(s)
	}
	return err
}

// revive finds out whether the session outlived a loss of the connection. A new login in its place would leave it behind
// in vCenter, where the number of sessions is limited.
func (s *Session) revive(ctx context.Context) bool {
	s.mu.Lock()
	lost, raw, client := s.err != nil, s.soap, s.client
	s.mu.Unlock()
	if !lost || raw == nil {
		return false
	}
	direct := &vim25.Client{Client: raw, ServiceContent: client.ServiceContent, RoundTripper: raw}
	current, err := session.NewManager(direct).UserSession(ctx)
	if err != nil || current == nil {
		return false
	}
	s.mu.Lock()
	s.err, s.failures, s.nextTry = nil, 0, time.Time{}
	s.mu.Unlock()
	s.pool.notifyState(s)
	return true
}

func retryPause(err error, failures int) time.Duration {
	var refused *LoginError
	if errors.As(err, &refused) {
		return retryAfterRefusal
	}
	return min(retryAfterLoss<<min(failures-1, 8), maxRetryAfterLoss)
}

// dial connects and logs in.
func dial(ctx context.Context, e Endpoint) (*soap.Client, *vim25.Client, error) {
	u, err := soap.ParseURL(e.Server)
	if err != nil || u == nil || u.Host == "" || u.Scheme != "https" {
		return nil, nil, &InvalidError{Field: "server", Message: fmt.Sprintf("%q is no host name or address of a vCenter: correct it", e.Server)}
	}
	u.User = nil
	raw := soap.NewClient(u, false)
	transport := raw.DefaultTransport()
	// govmomi dials TLS by itself, which would leave our verification out.
	transport.DialTLSContext = nil
	transport.TLSClientConfig = tlsConfig(e, u.Host)
	client, err := vim25.NewClient(ctx, raw)
	if err != nil {
		return nil, nil, connectionError(e, err)
	}
	if err := session.NewManager(client).Login(ctx, url.UserPassword(e.Username, e.Password)); err != nil {
		raw.CloseIdleConnections()
		return nil, nil, connectionError(e, err)
	}
	return raw, client, nil
}

// lost marks the session as not usable when err says that vCenter does not answer. Other errors, such as those of a
// collector that went with its session, need no more than the next round of run.
func (s *Session) lost(err error) {
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) {
		return
	}
	s.mu.Lock()
	before := s.err
	s.err = err
	s.failures++
	s.nextTry = time.Now().Add(retryPause(err, s.failures))
	s.mu.Unlock()
	if before == nil {
		s.pool.opts.Log.Info("Lost the connection with vCenter", "vCenter", s.endpoint.Server, "reason", err.Error())
		s.pool.notifyState(s)
	}
}

// close logs out and ends the session for good. Owners that wait for news from it are told, so that they ask its successor.
func (s *Session) close() {
	defer func() {
		s.watch.tell(s.watch.owners())
		s.watch.tell(s.tasks.queue())
	}()
	s.cancel()
	<-s.done
	s.mu.Lock()
	raw, client := s.soap, s.client
	usable := s.err == nil
	s.err = ErrClosed
	s.mu.Unlock()
	if raw == nil {
		return
	}
	if usable {
		logOut(raw, client.ServiceContent)
	}
	raw.CloseIdleConnections()
}

// logOut ends a session in vCenter. One that cannot be told so forgets the session by itself, after its idle time.
func logOut(raw *soap.Client, content types.ServiceContent) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*farewell)
	defer cancel()
	client := &vim25.Client{Client: raw, ServiceContent: content, RoundTripper: raw}
	_ = session.NewManager(client).Logout(ctx)
	raw.CloseIdleConnections()
}

// state is nil while the session is usable.
func (s *Session) state() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Session) raw() (*soap.Client, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.soap, s.login
}

// vim is the client for calls; there is one once Pool.Session gave the session out.
func (s *Session) vim() *vim25.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// Version is what vCenter says of itself, such as "8.0.3".
func (s *Session) Version() string { return s.vim().ServiceContent.About.Version }

// Server is the host that the session is with.
func (s *Session) Server() string { return s.endpoint.Server }
