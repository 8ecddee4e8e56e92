package vcenter

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"

	"github.com/vmware/govmomi"
	_ "github.com/vmware/govmomi/pbm/simulator" // storage policies
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/simulator"
	_ "github.com/vmware/govmomi/vapi/simulator" // tags, cluster modules
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/soap"
)

// Port is where vCenter answers on the sandbox's address. The usual 443 needs
// privileges.
const Port = "8443"

// username is the one that vCenter's installer proposes.
const username = "administrator@vsphere.local"

// Server is a running vCenter.
type Server struct {
	// Address is host:port, as products take a vCenter server.
	Address            string
	Username, Password string
	// Thumbprint is the SHA-1 of the certificate, in vSphere's form.
	Thumbprint string

	model  *simulator.Model
	server *simulator.Server
	events *queue
}

// Start starts vCenter on host with its inventory below dir. The templates are
// those of the given Kubernetes versions.
func Start(ctx context.Context, host, dir string, kubernetesVersions []string) (*Server, error) {
	s := &Server{Address: net.JoinHostPort(host, Port), Username: username, Password: rand.Text(), events: newQueue()}
	cert, err := certificate(host)
	if err != nil {
		return nil, err
	}
	s.Thumbprint = soap.ThumbprintSHA1(cert.Leaf)

	// Everything of the model is made by inventory.go; this is the bare service.
	s.model = simulator.VPX()
	s.model.Datacenter, s.model.Datastore, s.model.Machine = 0, 0, 0
	if err := s.model.Create(); err != nil {
		return nil, fmt.Errorf("create the simulated vCenter: %w", err)
	}
	service := s.model.Service
	service.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	service.RegisterEndpoints = true
	service.Listen = &url.URL{Host: s.Address, User: url.UserPassword(s.Username, s.Password)}
	service.Context.Map.Handler = intercept
	service.Context.Map.Put(newAgent(s))

	if err := free(s.Address); err != nil {
		return nil, err
	}
	s.server = service.NewServer()
	if err := s.populate(ctx, dir, kubernetesVersions); err != nil {
		s.Close()
		return nil, fmt.Errorf("create vCenter's inventory: %w", err)
	}
	service.Context.Map.AddHandler(&watcher{queue: s.events})
	return s, nil
}

// free fails where the address cannot be listened at: the simulator would panic.
func free(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("vCenter: %w", err)
	}
	return l.Close()
}

// Close stops vCenter; its inventory is lost. It does not wait for requests:
// the simulator goes on waiting for updates on behalf of clients that are gone.
func (s *Server) Close() {
	s.events.close()
	s.server.Listener.Close()
	go s.server.CloseClientConnections()
	s.model.Remove()
}

// client logs in as a user would.
func (s *Server) client(ctx context.Context) (*govmomi.Client, error) {
	u := &url.URL{Scheme: "https", Host: s.Address, Path: vim25.Path, User: url.UserPassword(s.Username, s.Password)}
	transport := soap.NewClient(u, false)
	transport.SetThumbprint(s.Address, s.Thumbprint)
	client, err := vim25.NewClient(ctx, transport)
	if err != nil {
		return nil, err
	}
	c := &govmomi.Client{Client: client, SessionManager: session.NewManager(client)}
	return c, c.Login(ctx, u.User)
}

// context is for changes to the inventory that no request asked for.
func (s *Server) context() *simulator.Context {
	return &simulator.Context{
		Context: context.Background(),
		Session: &simulator.Session{Registry: simulator.NewRegistry()},
		Map:     s.model.Service.Context.Map,
	}
}

// certificate makes a self-signed certificate, as a new vCenter has.
func certificate(host string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "vcenter.sandbox", Organization: []string{"Millwright sandbox"}},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.ParseIP(host)},
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}
