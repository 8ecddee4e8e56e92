package sandboxtest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// WantMembers waits until etcd has count members, all of which vote and answer, with the names of the Machines of the
// cluster's control plane. It asks etcd at the machines themselves, past the API server and the operator.
func (s *Sandbox) WantMembers(t *testing.T, cluster string, count int) {
	t.Helper()
	Eventually(t, 3*time.Minute, func() string {
		machines := s.Names(t, "machines.cluster.x-k8s.io", "-l", "cluster.x-k8s.io/control-plane,cluster.x-k8s.io/cluster-name="+cluster)
		slices.Sort(machines)
		if len(machines) != count {
			return fmt.Sprintf("want %d Machines, have %v", count, machines)
		}
		for _, machine := range machines {
			members, err := s.etcdMembers(t, machine)
			if err != nil {
				return fmt.Sprintf("etcd of %s: %v", machine, err)
			}
			if !slices.Equal(machines, members) {
				return fmt.Sprintf("etcd of %s has the members %v, the Machines are %v", machine, members, machines)
			}
		}
		return ""
	})
}

// etcdMembers lists the names of the voting members, as the member on the machine has them by quorum.
func (s *Sandbox) etcdMembers(t *testing.T, machine string) ([]string, error) {
	t.Helper()
	client, err := s.etcd(t, machine)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, member := range list.Members {
		if member.IsLearner {
			return nil, fmt.Errorf("member %q is a learner", member.Name)
		}
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names, nil
}

// etcd connects to the member on a machine with the machine's own client certificate; the caller closes.
func (s *Sandbox) etcd(t *testing.T, machine string) (*clientv3.Client, error) {
	t.Helper()
	for _, m := range s.status(t).Machines {
		if m.Name != machine || m.Address == "" {
			continue
		}
		pki := filepath.Join(s.Disk(t, machine), "etc", "kubernetes", "pki")
		certificate, err := tls.LoadX509KeyPair(filepath.Join(pki, "apiserver-etcd-client.crt"), filepath.Join(pki, "apiserver-etcd-client.key"))
		if err != nil {
			return nil, err
		}
		authority, err := os.ReadFile(filepath.Join(pki, "etcd", "ca.crt"))
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(authority) {
			return nil, errors.New("etcd/ca.crt holds no certificate")
		}
		return clientv3.New(clientv3.Config{
			Endpoints: []string{"https://" + m.Address + ":2379"}, DialTimeout: 5 * time.Second, Logger: zap.NewNop(),
			TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots, MinVersion: tls.VersionTLS12},
		})
	}
	return nil, fmt.Errorf("the sandbox has no virtual machine %q with an address", machine)
}
