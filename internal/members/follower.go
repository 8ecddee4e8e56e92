package members

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
	"github.com/millwright-dev/millwright/internal/workload"
)

// State is what is known of a live object.
type State struct {
	// Fingerprint is that of package apply: another one than the record's means that somebody changed what was applied.
	Fingerprint string
	// ResourceVersion tells one state of the object from another.
	ResourceVersion string
	// Deleting is set while the object is on its way out.
	Deleting bool
}

// Change is word of an object that was added, changed or deleted.
type Change struct {
	Cluster client.ObjectKey
	// Membership tells whose the object is, as apply.Membership does.
	Membership string
	ID         apply.ID
	// State is nil when the object is gone, or no member any more.
	State *State
}

// Follower watches the members of all sets of the clusters that it is given.
type Follower struct {
	// changed is called from the watches, one at a time for each kind of a cluster.
	changed func(Change)
	// begun is called when the watch of a kind has begun and its objects are known.
	begun func(cluster client.ObjectKey)

	mu       sync.Mutex
	clusters map[client.ObjectKey]*following
}

// NewFollower returns a Follower that tells changed of each change, and begun of each watch that has begun: what was
// deleted before is no change.
func NewFollower(changed func(Change), begun func(cluster client.ObjectKey)) *Follower {
	return &Follower{changed: changed, begun: begun, clusters: map[client.ObjectKey]*following{}}
}

// following is one cluster by one connection.
type following struct {
	connection *workload.Connection
	client     metadata.Interface
	ctx        context.Context
	stop       context.CancelFunc
	informers  map[schema.GroupKind]cache.SharedIndexInformer
}

// Follow makes sure that the kinds are watched on a cluster, until Forget or until it is called with another
// connection. It does not wait for the watches to begin. Kinds that the cluster does not serve are left out.
func (f *Follower) Follow(cluster client.ObjectKey, connection *workload.Connection, kinds []schema.GroupKind) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.clusters[cluster]
	if c == nil || c.connection != connection {
		if c != nil {
			c.stop()
		}
		config := rest.CopyConfig(connection.Config)
		config.Timeout = 0
		metadataClient, err := metadata.NewForConfigAndClient(config, connection.Watches)
		if err != nil {
			return fmt.Errorf("watch the add-ons of cluster %q: %w", cluster, err)
		}
		c = &following{connection: connection, client: metadataClient, informers: map[schema.GroupKind]cache.SharedIndexInformer{}}
		c.ctx, c.stop = context.WithCancel(context.Background())
		f.clusters[cluster] = c
	}
	for _, kind := range kinds {
		if c.informers[kind] != nil {
			continue
		}
		if err := f.watch(cluster, c, kind); err != nil {
			return fmt.Errorf("watch %s of cluster %q: %w", kind, cluster, err)
		}
	}
	return nil
}

// Forget ends the watches of a cluster.
func (f *Follower) Forget(cluster client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.clusters[cluster]; c != nil {
		c.stop()
		delete(f.clusters, cluster)
	}
}

// Close ends all watches.
func (f *Follower) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for cluster, c := range f.clusters {
		c.stop()
		delete(f.clusters, cluster)
	}
}

// Get tells what is known of an object, nil when it is gone or no member. It is not known while the watch of its kind
// has not begun.
func (f *Follower) Get(cluster client.ObjectKey, id apply.ID) (state *State, known bool) {
	f.mu.Lock()
	var informer cache.SharedIndexInformer
	if c := f.clusters[cluster]; c != nil {
		informer = c.informers[id.GroupKind()]
	}
	f.mu.Unlock()
	if informer == nil || !informer.HasSynced() {
		return nil, false
	}
	name := types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
	object, exists, err := informer.GetIndexer().GetByKey(key(name))
	if err != nil || !exists {
		return nil, err == nil
	}
	live := object.(*metav1.PartialObjectMetadata)
	return stateOf(live), true
}

// key is how the index of an informer calls an object.
func key(name types.NamespacedName) string {
	if name.Namespace == "" {
		return name.Name
	}
	return name.String()
}

func (f *Follower) watch(cluster client.ObjectKey, c *following, kind schema.GroupKind) error {
	mapping, err := c.connection.Mapper.RESTMapping(kind)
	if err != nil {
		return ignoreNoMatch(err)
	}
	informer := metadatainformer.NewFilteredMetadataInformer(c.client, mapping.Resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = apply.MembershipLabel }).Informer()
	if err := informer.SetTransform(strip); err != nil {
		return err
	}
	tell := func(object any, gone bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		live, ok := object.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		change := Change{
			Cluster: cluster, Membership: live.Labels[apply.MembershipLabel],
			ID: apply.ID{Group: kind.Group, Kind: kind.Kind, Namespace: live.Namespace, Name: live.Name},
		}
		if !gone {
			change.State = stateOf(live)
		}
		f.changed(change)
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(object, false) },
		UpdateFunc: func(_, object any) { tell(object, false) },
		DeleteFunc: func(object any) { tell(object, true) },
	}); err != nil {
		return err
	}
	go informer.RunWithContext(c.ctx)
	go func() {
		if cache.WaitForCacheSync(c.ctx.Done(), informer.HasSynced) {
			f.begun(cluster)
		}
	}()
	c.informers[kind] = informer
	return nil
}
