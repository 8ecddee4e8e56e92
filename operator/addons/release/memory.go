package release

import (
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/members"
	"github.com/millwright-dev/millwright/internal/workload"
)

// knowledge is what this process found out about a release and need not ask again. It is replaced, never changed.
type knowledge struct {
	// connection is the one by which it was found out.
	connection *workload.Connection
	// digest is that of what was rendered.
	digest string
	// record is the cluster's own, as it was left.
	record *apply.Parent
	// objects are the members with their health, by their last look.
	objects []apply.Judgement
	// unpruned is how many objects of the version before wait for health.
	unpruned int
	// drift are members that are not as they were applied, where that is only reported.
	drift []apply.ID
}

// unhealthy lists the members that are not as they should be.
func (k *knowledge) unhealthy() []apply.Judgement {
	var list []apply.Judgement
	for _, object := range k.objects {
		if !object.Healthy() {
			list = append(list, object)
		}
	}
	return list
}

// fingerprint of a member as it was applied.
func (k *knowledge) fingerprint(id apply.ID) (string, bool) {
	i := slices.IndexFunc(k.record.Members, func(m apply.Member) bool { return m.ID == id })
	if i < 0 {
		return "", false
	}
	return k.record.Members[i].Owned, true
}

// news tells what the state of a member, nil when it is gone, means to what is known.
func (k *knowledge) news(id apply.ID, state *members.State) news {
	fingerprint, member := k.fingerprint(id)
	switch {
	case !member:
		return noNews
	case (state == nil || state.Deleting || state.Fingerprint != fingerprint) != slices.Contains(k.drift, id):
		return drifted
	case state == nil:
		return noNews
	case slices.ContainsFunc(k.objects, func(o apply.Judgement) bool { return o.ID == id && o.ResourceVersion == state.ResourceVersion }):
		return noNews
	case neverIll(id):
		return noNews
	}
	return changed
}

// news is what a change of a member comes to.
type news int

const (
	noNews news = iota
	// changed says that a member's health has to be looked at.
	changed
	// drifted says that a member is not as it was applied, or is again.
	drifted
)

// neverIll holds the kinds that have no status to judge.
func neverIll(id apply.ID) bool {
	switch id.Group {
	case "":
		return id.Kind == "ConfigMap" || id.Kind == "Secret" || id.Kind == "ServiceAccount"
	case "rbac.authorization.k8s.io", "admissionregistration.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "node.k8s.io":
		return true
	}
	return false
}

// memory holds the knowledge of all releases.
type memory struct {
	mu       sync.Mutex
	releases map[client.ObjectKey]*knowledge
	// owners find a release by the cluster and membership of an object.
	owners map[membership]client.ObjectKey
}

type membership struct {
	cluster client.ObjectKey
	value   string
}

func newMemory() *memory {
	return &memory{releases: map[client.ObjectKey]*knowledge{}, owners: map[membership]client.ObjectKey{}}
}

func (m *memory) get(release client.ObjectKey) *knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.releases[release]
}

func (m *memory) put(release, cluster client.ObjectKey, k *knowledge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.releases[release] = k
	m.owners[membership{cluster, apply.Membership(k.record.Name)}] = release
}

// forget drops a release and returns the cluster that it was on, if it was known.
func (m *memory) forget(release client.ObjectKey) []client.ObjectKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.releases, release)
	var clusters []client.ObjectKey
	for key, owner := range m.owners {
		if owner == release {
			delete(m.owners, key)
			clusters = append(clusters, key.cluster)
		}
	}
	return clusters
}

// owner finds the release of an object, and what is known of it.
func (m *memory) owner(cluster client.ObjectKey, value string) (client.ObjectKey, *knowledge) {
	m.mu.Lock()
	defer m.mu.Unlock()
	release, ok := m.owners[membership{cluster, value}]
	if !ok {
		return release, nil
	}
	return release, m.releases[release]
}

// ofCluster lists what is known of the releases of a cluster.
func (m *memory) ofCluster(cluster client.ObjectKey) map[client.ObjectKey]*knowledge {
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[client.ObjectKey]*knowledge{}
	for key, release := range m.owners {
		if key.cluster == cluster && m.releases[release] != nil {
			found[release] = m.releases[release]
		}
	}
	return found
}
