package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/millwright-dev/millwright/internal/pki"
)

// fakeMember answers as an etcd member would; it is the leader.
type fakeMember struct {
	etcdserverpb.UnimplementedClusterServer
	etcdserverpb.UnimplementedMaintenanceServer

	serverCA []byte

	mu      sync.Mutex
	members []*etcdserverpb.Member
	leader  uint64
	alarms  []*etcdserverpb.AlarmMember
}

func (m *fakeMember) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &etcdserverpb.MemberListResponse{Header: &etcdserverpb.ResponseHeader{}, Members: m.members}, nil
}

func (m *fakeMember) MemberRemove(_ context.Context, r *etcdserverpb.MemberRemoveRequest) (*etcdserverpb.MemberRemoveResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, member := range m.members {
		if member.ID == r.ID {
			m.members = append(m.members[:i:i], m.members[i+1:]...)
			return &etcdserverpb.MemberRemoveResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
		}
	}
	return nil, rpctypes.ErrGRPCMemberNotFound
}

func (m *fakeMember) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{}, Leader: m.leader}, nil
}

func (m *fakeMember) Alarm(context.Context, *etcdserverpb.AlarmRequest) (*etcdserverpb.AlarmResponse, error) {
	return &etcdserverpb.AlarmResponse{Header: &etcdserverpb.ResponseHeader{}, Alarms: m.alarms}, nil
}

func (m *fakeMember) MoveLeader(_ context.Context, r *etcdserverpb.MoveLeaderRequest) (*etcdserverpb.MoveLeaderResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leader = r.TargetID
	return &etcdserverpb.MoveLeaderResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// serve runs the member with mutual TLS under ca and returns how to dial it.
func (m *fakeMember) serve(t *testing.T, ca pki.KeyPair) DialFunc {
	t.Helper()
	return m.serveAs(t, ca, m)
}

// serveAs is serve with another maintenance service.
func (m *fakeMember) serveAs(t *testing.T, ca pki.KeyPair, maintenance etcdserverpb.MaintenanceServer) DialFunc {
	t.Helper()
	// A self-signed certificate that says localhost, as those of kubeadm's members do.
	server, err := pki.NewCA("localhost", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca.Cert)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	})))
	etcdserverpb.RegisterClusterServer(s, m)
	etcdserverpb.RegisterMaintenanceServer(s, maintenance)
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	m.serverCA = server.Cert
	return func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", listener.Addr().String())
	}
}

func ecdsaCA(t *testing.T) pki.KeyPair {
	t.Helper()
	ca, err := pki.NewCA("etcd-ca", pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func connect(t *testing.T, member *fakeMember, ca, signer pki.KeyPair) *Client {
	t.Helper()
	dial := member.serve(t, ca)
	client, err := pki.NewClientCert(signer, "millwright", nil, pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	config, err := ClientTLS(member.serverCA, client)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New("etcd-cp-1", dial, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func threeMembers() *fakeMember {
	return &fakeMember{
		members: []*etcdserverpb.Member{{ID: 1, Name: "cp-1"}, {ID: 2, Name: "cp-2"}, {ID: 3, IsLearner: true}},
		leader:  1,
		alarms:  []*etcdserverpb.AlarmMember{{MemberID: 2, Alarm: etcdserverpb.AlarmType_NOSPACE}},
	}
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestStatusTellsMembersLeaderAndAlarms(t *testing.T) {
	ca := ecdsaCA(t)
	got, err := connect(t, threeMembers(), ca, ca).Status(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Status{
		Leader:  1,
		Members: []Member{{ID: 1, Name: "cp-1"}, {ID: 2, Name: "cp-2", Alarms: []string{"NOSPACE"}}, {ID: 3, Learner: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Member("cp-2") == nil || got.Member("cp-9") != nil {
		t.Error("members are not found by their names")
	}
}

func TestLeadershipMovesAndAMemberLeavesOnce(t *testing.T) {
	ca, member := ecdsaCA(t), threeMembers()
	client, ctx := connect(t, member, ca, ca), soon(t)
	if err := client.MoveLeader(ctx, 2); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.RemoveMember(ctx, 1); err != nil {
			t.Fatalf("the second removal must find nothing to do: %v", err)
		}
	}
	got, err := client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.Leader != 2 || got.Member("cp-1") != nil || len(got.Members) != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestClusterWithoutLeaderIsToldAsSuch(t *testing.T) {
	ca, member := ecdsaCA(t), threeMembers()
	member.leader = 0
	if _, err := connect(t, member, ca, ca).Status(soon(t)); !errors.Is(err, ErrNoLeader) {
		t.Errorf("error %v, want ErrNoLeader", err)
	}
}

func TestForeignClientCertificateIsRefusedWithinTheDeadline(t *testing.T) {
	client := connect(t, threeMembers(), ecdsaCA(t), ecdsaCA(t))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := client.Status(ctx)
	if err == nil || !strings.Contains(err.Error(), `etcd member "etcd-cp-1"`) {
		t.Errorf("error %v, want one that names the member", err)
	}
}
