package controlplane

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/operator/kubeadm/incluster"
)

// prepareJoin brings what kubeadm join reads from the workload cluster in line with the machine that is to join next, and
// returns what a person has to put right before. A machine that finds an older version there runs the older version's
// control plane.
func (r *Reconciler) prepareJoin(ctx context.Context, s *snapshot) (problems []string, err error) {
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return nil, fmt.Errorf("prepare Cluster %q for machines of %s: %w", s.cluster.Name, s.controlPlane.Spec.Version, err)
	}
	// As the new machine is told, which is not all that was written: kubeadm's gates come and go with its versions.
	asked := s.controlPlane.DeepCopy()
	asked.Spec.KubeadmConfigSpec = kubeadmConfigSpec(asked.Spec.KubeadmConfigSpec, asked.Spec.Version, true)
	outcome, err := incluster.Prepare(ctx, connection.Client, asked, s.cluster)
	r.tellChanges(s, outcome)
	if err != nil {
		return nil, fmt.Errorf("prepare Cluster %q for machines of %s: %w", s.cluster.Name, s.controlPlane.Spec.Version, err)
	}
	return outcome.Problems, nil
}

// finish brings kube-proxy and CoreDNS to the version that all machines have, once for each version and configuration,
// and returns what a person has to put right for it.
func (r *Reconciler) finish(ctx context.Context, s *snapshot) (problems []string, err error) {
	connection, err := r.Workload.Get(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return nil, err
	}
	key, state := client.ObjectKeyFromObject(s.controlPlane), finishedState(s.controlPlane)
	if r.finished.is(key, state) {
		return nil, nil
	}
	outcome, err := incluster.Finish(ctx, connection.Client, s.controlPlane)
	r.tellChanges(s, outcome)
	if err != nil {
		return nil, fmt.Errorf("bring Cluster %q to %s: %w", s.cluster.Name, s.controlPlane.Spec.Version, err)
	}
	if len(outcome.Problems) == 0 {
		r.finished.set(key, state)
	}
	return outcome.Problems, nil
}

// atRest tells whether a control plane is what is asked for, so that kube-proxy and CoreDNS may follow.
func atRest(s *snapshot) bool {
	moving := slices.ContainsFunc(s.replicas, func(r *replica) bool { return r.deleting() || r.outdated() })
	return s.initialized() && !moving && len(s.replicas) == s.desired() && len(unhealthy(s, nil)) == 0
}

func (r *Reconciler) tellChanges(s *snapshot, outcome incluster.Outcome) {
	for _, change := range outcome.Changes {
		r.Recorder.Eventf(s.controlPlane, nil, corev1.EventTypeNormal, "ClusterUpdated", "Update", "Cluster %s: %s", s.cluster.Name, change)
	}
}

// finishes remembers for which state of each control plane kube-proxy and CoreDNS were looked at: they are not watched,
// and a cluster at rest costs nothing. A new operator looks once.
type finishes struct {
	mu sync.Mutex
	at map[client.ObjectKey]string
}

// finishedState is what Finish depends on.
func finishedState(cp *controlplanev1.KubeadmControlPlane) string {
	_, skipProxy := cp.Annotations[controlplanev1.SkipKubeProxyAnnotation]
	_, skipDNS := cp.Annotations[controlplanev1.SkipCoreDNSAnnotation]
	return fmt.Sprintf("%s/%d/%t/%t", cp.UID, cp.Generation, skipProxy, skipDNS)
}

func (f *finishes) is(controlPlane client.ObjectKey, state string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[controlPlane] == state
}

func (f *finishes) set(controlPlane client.ObjectKey, state string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at == nil {
		f.at = map[client.ObjectKey]string{}
	}
	f.at[controlPlane] = state
}

func (f *finishes) forget(controlPlane client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, controlPlane)
}
