package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
	"github.com/millwright-dev/millwright/internal/pki"
	"github.com/millwright-dev/millwright/internal/workload"
)

// memberWithin is what one etcd member may take: one that does not answer must leave time for the next.
const memberWithin = 3 * time.Second

// member is what we use of an etcd client.
type member interface {
	Status(context.Context) (etcd.Status, error)
	MoveLeader(ctx context.Context, to uint64) error
	RemoveMember(ctx context.Context, id uint64) error
	Close()
}

// reach prepares a client of the etcd member on a Node.
type reach func(node string) (member, error)

// dialMember prepares a client of the etcd member on a Node.
type dialMember func(connection *workload.Connection, node string, config *tls.Config) (member, error)

func forwardToMember(connection *workload.Connection, node string, config *tls.Config) (member, error) {
	pod := podName("etcd", node)
	forwarder, err := etcd.NewForwarder(connection.Config, connection.Clientset, metav1.NamespaceSystem, pod, etcd.Port)
	if err != nil {
		return nil, err
	}
	return etcd.New(pod, forwarder.Dial, config, forwarder.Close)
}

// members returns how to reach the members of a control plane in one reconcile.
func (r *Reconciler) members(ctx context.Context, s *snapshot, ca pki.KeyPair) (reach, error) {
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return nil, err
	}
	config, err := r.etcdTLS(ca)
	if err != nil {
		return nil, err
	}
	return func(node string) (member, error) { return r.dial(connection, node, config) }, nil
}

// askEtcd asks the members, the one that was healthy last first, until one answers. Both results are
// nil while there is no member to ask.
func (r *Reconciler) askEtcd(ctx context.Context, s *snapshot, ca pki.KeyPair) (*etcd.Status, error) {
	nodes := memberNodes(s, nil)
	if len(nodes) == 0 {
		return nil, nil
	}
	members, err := r.members(ctx, s, ca)
	if err != nil {
		return nil, err
	}
	var status etcd.Status
	err = members.first(ctx, nodes, func(ctx context.Context, m member) (err error) {
		status, err = m.Status(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &status, nil
}

// memberNodes returns the Nodes that should run a member, without that of one replica, in the order in
// which to ask them.
func memberNodes(s *snapshot, without *replica) []string {
	var first, then, last []string
	for _, r := range s.replicas {
		switch {
		case r == without || r.node() == "":
		case r.deleting():
			last = append(last, r.node())
		case conditions.IsTrue(r.machine, memberCondition):
			first = append(first, r.node())
		default:
			then = append(then, r.node())
		}
	}
	return append(append(first, then...), last...)
}

// etcdTLS makes a client certificate for one reconcile.
func (r *Reconciler) etcdTLS(ca pki.KeyPair) (*tls.Config, error) {
	pair, err := pki.NewClientCert(ca, "millwright-operator", nil, pki.Options{Algorithm: pki.ECDSAP256, Validity: time.Hour, Now: r.Now})
	if err != nil {
		return nil, fmt.Errorf("make a certificate for etcd: %w", err)
	}
	return etcd.ClientTLS(ca.Cert, pair)
}

// leaveEtcd takes the member of a Machine out of etcd, having moved the leadership if it leads. Each
// step finds what the one before it, or a try that was cut short, has done already.
func leaveEtcd(ctx context.Context, s *snapshot, leaving *replica, members reach) error {
	gone := memberOf(s, leaving)
	if gone == nil {
		return nil
	}
	if err := confirmQuorum(ctx, s, gone.ID, members); err != nil {
		return fmt.Errorf("remove etcd member %s: %w", memberName(*gone), err)
	}
	if s.workload.etcd.Leader == gone.ID {
		next := successor(s, leaving)
		err := members.first(ctx, []string{gone.Name}, func(ctx context.Context, m member) error {
			return m.MoveLeader(ctx, next.ID)
		})
		if err != nil {
			return fmt.Errorf("move etcd's leadership from Machine %q to Node %q: %w", leaving.machine.Name, next.Name, err)
		}
	}
	return removeMember(ctx, s, leaving, *gone, members)
}

// removeMember asks another member than the one to be removed; leaving may be nil.
func removeMember(ctx context.Context, s *snapshot, leaving *replica, gone etcd.Member, members reach) error {
	err := members.first(ctx, memberNodes(s, leaving), func(ctx context.Context, m member) error {
		return m.RemoveMember(ctx, gone.ID)
	})
	if err != nil {
		return fmt.Errorf("remove etcd member %s: %w", memberName(gone), err)
	}
	return nil
}

// confirmQuorum asks each member that the plan counts on once more. It was counted by what its kubelet said last, and a
// host that has just died is silent for a while before anybody says so.
func confirmQuorum(ctx context.Context, s *snapshot, without uint64, members reach) error {
	var wg sync.WaitGroup
	answers := make(chan error, len(s.workload.etcd.Members))
	voters := 0
	for _, m := range s.workload.etcd.Members {
		if m.ID == without || m.Learner {
			continue
		}
		voters++
		if of := machineOf(s, m); of == nil || !memberHealthy(of) {
			continue
		}
		wg.Go(func() {
			answers <- members.first(ctx, []string{m.Name}, func(ctx context.Context, m member) error {
				_, err := m.Status(ctx)
				return err
			})
		})
	}
	wg.Wait()
	close(answers)
	var failures []error
	answered := 0
	for err := range answers {
		if err == nil {
			answered++
		} else {
			failures = append(failures, err)
		}
	}
	if answered < quorum(voters) {
		return fmt.Errorf("%d of the %d members that would be left answer, %d must: %w", answered, voters, quorum(voters), errors.Join(failures...))
	}
	return nil
}

// first calls do with the first member of nodes for which it succeeds.
func (r reach) first(ctx context.Context, nodes []string, do func(context.Context, member) error) error {
	failures := []error{}
	for _, node := range nodes {
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, memberWithin)
			defer cancel()
			m, err := r(node)
			if err != nil {
				return err
			}
			defer m.Close()
			return do(ctx, m)
		}()
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	if len(failures) == 0 {
		return errors.New("there is no member to ask")
	}
	return errors.Join(failures...)
}
