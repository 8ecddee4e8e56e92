package vcenter

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/vmware/govmomi/vim25/soap"

	"github.com/millwright-dev/millwright/internal/vcenter/vcentertest"
)

func TestBadEndpointsGiveErrorsOfTheirOwn(t *testing.T) {
	v := vcentertest.Start(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := closed.Addr().String()
	closed.Close()
	other := "AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD"

	for name, tc := range map[string]struct {
		change func(*Endpoint)
		want   func(error) bool
		says   []string
	}{
		"a wrong password is refused": {
			func(e *Endpoint) { e.Password = "wrong" },
			func(err error) bool { var as *LoginError; return errors.As(err, &as) },
			[]string{vcentertest.Username, "correct the credentials"},
		},
		"nobody answers": {
			func(e *Endpoint) { e.Server = nobody },
			func(err error) bool { var as *UnreachableError; return errors.As(err, &as) },
			[]string{nobody, "check that it runs"},
		},
		"a certificate that nobody vouches for is not trusted": {
			func(e *Endpoint) { e.Thumbprint = "" },
			func(err error) bool { var as *CertificateError; return errors.As(err, &as) },
			[]string{soap.ThumbprintSHA256(v.Certificate()), "set thumbprint"},
		},
		"another certificate than the pinned one is refused": {
			func(e *Endpoint) { e.Thumbprint = other },
			func(err error) bool { var as *ThumbprintError; return errors.As(err, &as) },
			[]string{other, soap.ThumbprintSHA1(v.Certificate())},
		},
		"a server without TLS is refused": {
			func(e *Endpoint) { e.Server = "http://" + e.Server },
			func(err error) bool { var as *InvalidError; return errors.As(err, &as) },
			[]string{"server"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pool, _ := newTestPool(t, Options{})
			e := endpoint(v)
			tc.change(&e)
			_, err := pool.Session(t.Context(), "default/cluster", e)
			if err == nil || !tc.want(err) {
				t.Fatalf("error is %T: %v", err, err)
			}
			for _, says := range tc.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("error %q does not say %q", err, says)
				}
			}
		})
	}
}

func TestThumbprintsAreTakenInEveryForm(t *testing.T) {
	v := vcentertest.Start(t)
	sha1, sha256 := soap.ThumbprintSHA1(v.Certificate()), soap.ThumbprintSHA256(v.Certificate())
	for name, thumbprint := range map[string]string{
		"SHA-1": sha1, "SHA-256": sha256, "lower case": strings.ToLower(sha1), "without colons": strings.ReplaceAll(sha256, ":", ""),
	} {
		t.Run(name, func(t *testing.T) {
			pool, _ := newTestPool(t, Options{})
			e := endpoint(v)
			e.Thumbprint = thumbprint
			if _, err := pool.Session(t.Context(), "default/cluster", e); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClustersWithTheSameCredentialsShareASession(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	before := v.Logins(t)
	one, err := pool.Session(t.Context(), "default/one", endpoint(v))
	if err != nil {
		t.Fatal(err)
	}
	two, err := pool.Session(t.Context(), "default/two", endpoint(v))
	if err != nil {
		t.Fatal(err)
	}
	if one != two || v.Logins(t) != before+1 {
		t.Errorf("sessions shared: %v, logins in vCenter: %d; want one for both", one == two, v.Logins(t)-before)
	}
	pool.Release("default/one")
	if err := two.usable(t.Context()); err != nil {
		t.Errorf("the session ended with its first user: %v", err)
	}
	pool.Release("default/two")
	eventually(t, "the session that nobody uses is logged out", func() bool { return v.Logins(t) == before })
}

func TestChangedCredentialsTakeEffectAtOnce(t *testing.T) {
	v := vcentertest.Start(t)
	pool, _ := newTestPool(t, Options{})
	wrong := endpoint(v)
	wrong.Password = "outdated"
	if _, err := pool.Session(t.Context(), "default/cluster", wrong); err == nil {
		t.Fatal("logged in with a wrong password")
	}
	if _, err := pool.Session(t.Context(), "default/cluster", endpoint(v)); err != nil {
		t.Fatal(err)
	}
	if n := pool.Sessions(); n != 1 {
		t.Errorf("%d sessions are kept; want the old one given up", n)
	}
}

func TestWhoeverWatchesASessionThatWasGivenUpIsTold(t *testing.T) {
	v := vcentertest.Start(t)
	pool, changes := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)
	pool.Release("default/cluster")
	<-s.done
	s.WatchVM("late", &VM{Ref: "vm-1"})
	for owner := range changes {
		if owner == "late" {
			return
		}
	}
}

func TestASessionThatVCenterEndedIsLoggedInAgain(t *testing.T) {
	v := vcentertest.Start(t)
	pool, changes := newTestPool(t, Options{})
	s := newTestSession(t, v, pool)
	vm := cloned(t, s, "default/a1", request("a1"))
	s.WatchVM("default/a1", vm)

	v.EndSessions(t)
	// Calls go on, and so does the watch. Reading properties without a session is no fault, it gives none.
	if _, err := s.FindVM(t.Context(), Identity{Ref: vm.Ref, InstanceUUID: vm.InstanceUUID}); err != nil {
		t.Fatalf("after the end of the session: %v", err)
	}
	drain(changes)
	if err := v.SetGuestIP(t.Context(), vmRef(vm.Ref), "127.1.2.3"); err != nil {
		t.Fatal(err)
	}
	if owner := <-changes; owner != "default/a1" {
		t.Errorf("change reported for %q", owner)
	}
	if _, err := s.PrepareClone(t.Context(), request("a2")); err != nil {
		t.Errorf("prepare after the end of the session: %v", err)
	}
}

func TestAVCenterThatReturns503IsFoundAgain(t *testing.T) {
	v := vcentertest.Start(t)
	front := frontOf(t, v)
	pool, _ := newTestPool(t, Options{})
	states := make(chan string, 100)
	pool.OnState(func(user string) { states <- user })
	e := endpoint(v)
	e.Server, e.Thumbprint = front.server.Listener.Addr().String(), soap.ThumbprintSHA256(front.server.Certificate())
	s, err := pool.Session(t.Context(), "default/cluster", e)
	if err != nil {
		t.Fatal(err)
	}
	if user := <-states; user != "default/cluster" {
		t.Errorf("told %q", user)
	}
	logins := v.Logins(t)

	front.down.Store(true)
	front.server.CloseClientConnections()
	<-states // lost
	_, err = pool.Session(t.Context(), "default/cluster", e)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) || !strings.Contains(err.Error(), "does not answer") {
		t.Fatalf("while it is down: %v", err)
	}
	front.down.Store(false)
	<-states // found
	if _, err := s.PrepareClone(t.Context(), request("a1")); err != nil {
		t.Errorf("after it came back: %v", err)
	}
	if n := v.Logins(t); n != logins {
		t.Errorf("%d sessions in vCenter, before %d; want the old one used again", n, logins)
	}
}

// front is a proxy before a vCenter that can be made to answer 503.
type front struct {
	server *httptest.Server
	down   atomic.Bool
}

func frontOf(t *testing.T, v *vcentertest.Server) *front {
	t.Helper()
	f := &front{}
	target := *v.URL
	target.User, target.Path = nil, ""
	proxy := httputil.NewSingleHostReverseProxy(&target)
	proxy.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	f.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.down.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	return f
}
