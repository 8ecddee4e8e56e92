package bootstrap

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lockKey holds the lock's content in its ConfigMap, in the format of upstream's controllers, which
// may have begun the cluster.
const lockKey = "lock-information"

type lockInformation struct {
	MachineName string `json:"machineName"`
}

// initLock lets exactly one machine of a cluster run kubeadm init. It is a ConfigMap whose creation
// decides; it outlives a crash of its holder's reconcile, which finds it as its own, and is removed
// once others join.
type initLock struct {
	client client.Client
	// live reads past the cache: ConfigMaps are not cached, and a lock must not be.
	live client.Reader
}

// lockMove is what to do about a lock.
type lockMove string

const (
	take  lockMove = "take"
	keep  lockMove = "keep"
	yield lockMove = "yield"
	// seize takes a lock whose holder is gone for good.
	seize lockMove = "seize"
)

// moveFor decides on a lock for the named machine: holder is empty when nobody holds it.
func moveFor(machine, holder string, holderExists bool) lockMove {
	switch {
	case holder == "":
		return take
	case holder == machine:
		return keep
	case holderExists:
		return yield
	default:
		return seize
	}
}

// acquire returns an empty string when machine holds the lock now, else the name of its holder.
func (l initLock) acquire(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine) (string, error) {
	configMap, holder, err := l.read(ctx, cluster)
	if err != nil {
		return "", err
	}
	exists := false
	if holder != "" && holder != machine.Name {
		if exists, err = l.machineExists(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: holder}); err != nil {
			return "", err
		}
	}
	switch moveFor(machine.Name, holder, exists) {
	case keep:
		return "", nil
	case yield:
		return holder, nil
	case seize:
		// Only the very lock that was read: somebody else may have seized it meanwhile.
		preconditions := client.Preconditions{UID: &configMap.UID, ResourceVersion: &configMap.ResourceVersion}
		if err := l.client.Delete(ctx, configMap, preconditions); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("release the init lock of Machine %q, which is gone: %w", holder, err)
		}
	}
	return l.create(ctx, cluster, machine)
}

// release removes the lock, if there is one.
func (l initLock) release(ctx context.Context, cluster *clusterv1.Cluster) error {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: lockName(cluster)}}
	if err := l.client.Delete(ctx, configMap); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release the init lock: %w", err)
	}
	return nil
}

func (l initLock) read(ctx context.Context, cluster *clusterv1.Cluster) (*corev1.ConfigMap, string, error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: lockName(cluster)}
	configMap := &corev1.ConfigMap{}
	err := l.live.Get(ctx, key, configMap)
	if apierrors.IsNotFound(err) {
		return configMap, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the init lock: %w", err)
	}
	var information lockInformation
	if err := json.Unmarshal([]byte(configMap.Data[lockKey]), &information); err != nil || information.MachineName == "" {
		return nil, "", fmt.Errorf("ConfigMap %q, the init lock, names no machine in %s: delete it if no control plane machine is starting", key, lockKey)
	}
	return configMap, information.MachineName, nil
}

func (l initLock) machineExists(ctx context.Context, key client.ObjectKey) (bool, error) {
	err := l.live.Get(ctx, key, &clusterv1.Machine{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("get Machine %q, which holds the init lock: %w", key, err)
	}
	return err == nil, nil
}

func (l initLock) create(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine) (string, error) {
	// A struct with one string always encodes.
	information, _ := json.Marshal(lockInformation{MachineName: machine.Name})
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       cluster.Namespace,
			Name:            lockName(cluster),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{clusterReference(cluster)},
		},
		Data: map[string]string{lockKey: string(information)},
	}
	err := l.client.Create(ctx, configMap)
	if apierrors.IsAlreadyExists(err) {
		_, holder, err := l.read(ctx, cluster)
		if err == nil && holder == machine.Name {
			holder = ""
		}
		return holder, err
	}
	if err != nil {
		return "", fmt.Errorf("take the init lock: %w", err)
	}
	return "", nil
}

func clusterReference(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: cluster.Name, UID: cluster.UID}
}

func lockName(cluster *clusterv1.Cluster) string {
	return cluster.Name + "-lock"
}
