package release

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/transport"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	"github.com/millwright-dev/millwright/internal/addon"
	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/bundle"
	"github.com/millwright-dev/millwright/internal/contract"
	"github.com/millwright-dev/millwright/internal/workload"
)

// establishTimeout is how long a CRD or a Namespace may take to be usable before the reconcile ends and is tried again:
// a worker that waits serves no other cluster.
const establishTimeout = 5 * time.Second

// installer is the field manager under which kubeadm writes CoreDNS and kube-proxy. It only ever installs what an add-on
// replaces.
const installer = "kubeadm"

// newEngine returns the engine for a cluster, which acts as the release's service account.
func newEngine(release *addonsv1.AddonRelease, connection *workload.Connection) (*apply.Engine, error) {
	requests := connection.Requests
	if account := release.Spec.ServiceAccount; account.Name != "" {
		requests = &http.Client{
			Transport: transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{UserName: account.Username()}, requests.Transport),
			Timeout:   requests.Timeout,
		}
	}
	c, err := client.NewWithWatch(connection.Config, client.Options{HTTPClient: requests, Scheme: clientgoscheme.Scheme, Mapper: connection.Mapper})
	if err != nil {
		return nil, fmt.Errorf("make a client for cluster %q: %w", release.Spec.ClusterName, err)
	}
	return &apply.Engine{
		Client: c,
		Policy: apply.Policy{
			ForceConflicts: release.Spec.Conflicts == addonsv1.ConflictsForce,
			// Planning writes nothing; whether drift is corrected is decided on the plan.
			CorrectDrift: true,
			TakeFrom:     append([]string{installer}, release.Spec.AdoptFrom...),
		},
		EstablishTimeout: establishTimeout,
	}, nil
}

// place is what is known of a cluster.
type place struct {
	connection *workload.Connection
	generation int64
	kubernetes string
	facts      bundle.Facts
}

// places keeps the facts of clusters, which do not change while these stay the same.
type places struct {
	mu       sync.Mutex
	clusters map[client.ObjectKey]place
}

func (p *places) forget(cluster client.ObjectKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.clusters, cluster)
}

// place reads the facts of a cluster. All releases of a cluster ask once.
func (r *Reconciler) place(ctx context.Context, cluster *clusterv1.Cluster, connection *workload.Connection) (place, error) {
	key := client.ObjectKeyFromObject(cluster)
	kubernetes, err := r.controlPlaneVersion(ctx, cluster)
	if err != nil {
		return place{}, err
	}
	r.places.mu.Lock()
	known, ok := r.places.clusters[key]
	r.places.mu.Unlock()
	if ok && known.connection == connection && known.generation == cluster.Generation && (kubernetes == "" || known.kubernetes == kubernetes) {
		return known, nil
	}
	if kubernetes == "" {
		info, err := connection.Clientset.Discovery().ServerVersion()
		if err != nil {
			return place{}, fmt.Errorf("ask cluster %q for its version: %w", key, err)
		}
		kubernetes = info.GitVersion
	}
	facts, err := addon.Place{
		Client: connection.Client, Name: fmt.Sprintf("cluster %q", key), Host: connection.Config.Host, Version: kubernetes, Cluster: cluster,
	}.Facts(ctx)
	if err != nil {
		return place{}, err
	}
	known = place{connection: connection, generation: cluster.Generation, kubernetes: kubernetes, facts: addon.WithDefaults(facts)}
	r.places.mu.Lock()
	r.places.clusters[key] = known
	r.places.mu.Unlock()
	return known, nil
}

// controlPlaneVersion is the lowest version that a machine of the control plane runs: an add-on that is good for it may
// be installed. It is empty where no object tells it.
func (r *Reconciler) controlPlaneVersion(ctx context.Context, cluster *clusterv1.Cluster) (string, error) {
	ref := cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
		return "", nil
	}
	controlPlane, err := r.resolver.Get(ctx, cluster.Namespace, ref)
	if err != nil {
		return "", err
	}
	if err := r.watch(controlPlane.GroupVersionKind()); err != nil {
		return "", err
	}
	version := contract.StatusVersion(controlPlane)
	if version != "" {
		version = "v" + strings.TrimPrefix(version, "v")
	}
	return version, nil
}
