package endpoint

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// machine answers every connection with its name and then holds it open.
func machine(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(name))
			go func() { _, _ = io.Copy(io.Discard, conn); conn.Close() }()
		}
	}()
	return l.Addr().String()
}

// free returns an address that nobody listens at.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// dial connects and returns the connection and the name of who answered.
func dial(t *testing.T, address string) (net.Conn, string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	name := make([]byte, 2)
	if _, err := io.ReadFull(conn, name); err != nil {
		t.Fatal(err)
	}
	return conn, string(name)
}

func TestAVirtualAddressFollowsTheMachinesThatHoldIt(t *testing.T) {
	var last []string
	f := &Forwarder{Changed: func(_ string, backends []string) { last = backends }}
	vip, a, b := free(t), machine(t, "m1"), machine(t, "m2")
	for _, backend := range []string{a, b, b} {
		if err := f.Up(vip, backend); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{a, b}, last); diff != "" {
		t.Errorf("backends (-want +got):\n%s", diff)
	}
	conn, name := dial(t, vip)
	if name != "m1" {
		t.Fatalf("%s answered, want the first that came up", name)
	}

	f.Down(vip, a)
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection to a machine that lost the address goes on")
	} else if err, ok := err.(net.Error); ok && err.Timeout() {
		t.Error("the connection to a machine that lost the address was not cut")
	}
	if _, name := dial(t, vip); name != "m2" {
		t.Fatalf("%s answered, want the machine that is left", name)
	}

	f.Down(vip, b)
	if conn, err := net.Dial("tcp", vip); err == nil {
		conn.Close()
		t.Error("an address that nobody holds answers")
	}
}

func TestAMachineThatDoesNotAnswerIsPassedOver(t *testing.T) {
	f := &Forwarder{}
	vip, dead, alive := free(t), free(t), machine(t, "m2")
	for _, backend := range []string{dead, alive} {
		if err := f.Up(vip, backend); err != nil {
			t.Fatal(err)
		}
	}
	defer f.Down(vip, alive)
	if _, name := dial(t, vip); name != "m2" {
		t.Errorf("%s answered", name)
	}
}

func TestAnAddressThatIsTakenIsRefused(t *testing.T) {
	f := &Forwarder{}
	taken := machine(t, "m1")
	if err := f.Up(taken, "127.0.0.1:1"); err == nil {
		t.Error("two listen at one address")
	}
}
