package etcd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/internal/pki"
)

// Port is where an etcd static pod of kubeadm serves its clients.
const Port = 2379

// serverName is in every etcd server certificate that kubeadm makes, wherever the member runs. It
// also is the host of the endpoint, by which the library checks the certificate; it is never
// resolved, since dialers know where to go.
const serverName = "localhost"

// ErrNoLeader says that the members cannot agree on anything: quorum is lost, or an election is on.
var ErrNoLeader = errors.New("etcd has no leader")

// Member of an etcd cluster. kubeadm names a member after its Node.
type Member struct {
	ID uint64
	// Name is empty until the member has started for the first time.
	Name string
	// Learner members receive data but have no vote yet.
	Learner bool
	// Alarms that the member has raised, such as NOSPACE.
	Alarms []string
}

// Status is what one member tells of the whole cluster. It went through consensus: to have it
// means that the cluster had quorum.
type Status struct {
	Members []Member
	Leader  uint64
}

// Member returns the member of that name, nil when there is none.
func (s Status) Member(name string) *Member {
	for i := range s.Members {
		if s.Members[i].Name == name {
			return &s.Members[i]
		}
	}
	return nil
}

// DialFunc opens a connection to a member; address is ignored by dialers that know their member.
type DialFunc func(ctx context.Context, address string) (net.Conn, error)

// Client of one member.
type Client struct {
	member   string
	endpoint string
	client   *clientv3.Client
	close    func()
}

// ClientTLS returns the TLS configuration for members whose certificates ca has signed; client is a
// certificate of the same authority.
func ClientTLS(ca []byte, client pki.KeyPair) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("etcd authority has no certificate in PEM form")
	}
	certificate, err := tls.X509KeyPair(client.Cert, client.Key)
	if err != nil {
		return nil, fmt.Errorf("read etcd client certificate: %w", err)
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}, ServerName: serverName, MinVersion: tls.VersionTLS12}, nil
}

// New returns a client of the named member. It connects with the first request; the deadline of a
// request's context bounds everything. done, if not nil, is called by Close.
func New(member string, dial DialFunc, config *tls.Config, done func()) (*Client, error) {
	endpoint := fmt.Sprintf("https://%s:%d", serverName, Port)
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   []string{endpoint},
		TLS:         config,
		DialOptions: []grpc.DialOption{grpc.WithContextDialer(dial)},
		DialTimeout: 5 * time.Second,
		// The default of 100 hides the cause of a failure behind "deadline exceeded".
		MaxUnaryRetries: 2,
		Logger:          zap.NewNop(),
	})
	if err != nil {
		return nil, fmt.Errorf("prepare client of etcd member %q: %w", member, err)
	}
	if done == nil {
		done = func() {}
	}
	return &Client{member: member, endpoint: endpoint, client: client, close: done}, nil
}

// Close ends the connection.
func (c *Client) Close() {
	// The only error is that of a context that is cancelled: closed is closed.
	_ = c.client.Close()
	c.close()
}

// Status reads members, leader and alarms.
func (c *Client) Status(ctx context.Context) (Status, error) {
	list, err := c.client.MemberList(ctx)
	if err != nil {
		return Status{}, c.explain("list members", err)
	}
	status, err := c.client.Status(ctx, c.endpoint)
	if err != nil {
		return Status{}, c.explain("read status", err)
	}
	if status.Leader == 0 {
		return Status{}, c.explain("read status", ErrNoLeader)
	}
	alarms, err := c.client.AlarmList(ctx)
	if err != nil {
		return Status{}, c.explain("list alarms", err)
	}
	out := Status{Leader: status.Leader}
	for _, member := range list.Members {
		m := Member{ID: member.ID, Name: member.Name, Learner: member.IsLearner}
		for _, alarm := range alarms.Alarms {
			if alarm.MemberID == member.ID && alarm.Alarm != etcdserverpb.AlarmType_NONE {
				m.Alarms = append(m.Alarms, alarm.Alarm.String())
			}
		}
		out.Members = append(out.Members, m)
	}
	return out, nil
}

// MoveLeader makes another member the leader. Only the leader itself can do that.
func (c *Client) MoveLeader(ctx context.Context, to uint64) error {
	if _, err := c.client.MoveLeader(ctx, to); err != nil {
		return c.explain(fmt.Sprintf("move the leadership to member %x", to), err)
	}
	return nil
}

// RemoveMember takes a member out of the cluster. One that is gone already is no error.
func (c *Client) RemoveMember(ctx context.Context, id uint64) error {
	_, err := c.client.MemberRemove(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotFound) {
		return nil
	}
	if err != nil {
		return c.explain(fmt.Sprintf("remove member %x", id), err)
	}
	return nil
}

// explain tells an answer that never came as the lack of a leader, which it nearly always is, apart
// from a member that could not be reached.
func (c *Client) explain(verb string, err error) error {
	if errors.Is(err, rpctypes.ErrNoLeader) || strings.Contains(err.Error(), rpctypes.ErrNoLeader.Error()) {
		err = ErrNoLeader
	}
	return fmt.Errorf("etcd member %q: %s: %w", c.member, verb, err)
}
