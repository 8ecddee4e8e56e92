package incluster

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/kubeadm"
)

// configMapName and configMapKey are where kubeadm keeps the configuration that machines join with.
const (
	configMapName = "kubeadm-config"
	configMapKey  = "ClusterConfiguration"
)

// Outcome is what was done and what was not.
type Outcome struct {
	// Changes tell what was written, one object a line.
	Changes []string
	// Problems tell what a person has to put right first, one a line: the object, the cause, the remedy.
	Problems []string
}

func (o *Outcome) change(format string, args ...any) {
	o.Changes = append(o.Changes, fmt.Sprintf(format, args...))
}

func (o *Outcome) problem(format string, args ...any) {
	o.Problems = append(o.Problems, fmt.Sprintf(format, args...))
}

// Prepare makes a cluster ready for machines of the control plane's version and configuration. No such machine may be
// made while there are problems or an error: it would not join, or not work. workload is a client of the cluster that
// the control plane is of; it must read past caches.
func Prepare(ctx context.Context, workload client.Client, controlPlane *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster) (Outcome, error) {
	var out Outcome
	version, err := semver.NewVersion(controlPlane.Spec.Version)
	if err != nil {
		out.problem("spec.version %q: %s: give it as v1.37.2", controlPlane.Spec.Version, err)
		return out, nil
	}
	// Before the configuration: to a machine of the old version more rights do no harm.
	for _, want := range grants(version) {
		if err := ensureGrant(ctx, workload, want, &out); err != nil {
			return out, err
		}
	}
	if len(out.Problems) > 0 {
		return out, nil
	}
	return out, updateConfig(ctx, workload, controlPlane, cluster, &out)
}

// ensureGrant creates a Role or binding, or adds what an existing one lacks.
func ensureGrant(ctx context.Context, workload client.Client, want client.Object, out *Outcome) error {
	name := describe(workload, want)
	live := want.DeepCopyObject().(client.Object)
	err := workload.Get(ctx, client.ObjectKeyFromObject(want), live)
	if apierrors.IsNotFound(err) {
		if err := workload.Create(ctx, want); err != nil {
			// One that was made meanwhile is looked at by the next try.
			return fmt.Errorf("create %s: %w", name, err)
		}
		out.change("created %s", name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s: %w", name, err)
	}
	before := live.DeepCopyObject().(client.Object)
	changed, problem := grant(live, want)
	if problem != "" {
		out.problem("%s", problem)
		return nil
	}
	if !changed {
		return nil
	}
	if err := write(ctx, workload, live, before); err != nil {
		return err
	}
	out.change("completed %s", name)
	return nil
}

func updateConfig(ctx context.Context, workload client.Client, controlPlane *controlplanev1.KubeadmControlPlane, cluster *clusterv1.Cluster, out *Outcome) error {
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: configMapName}
	if err := workload.Get(ctx, key, config); apierrors.IsNotFound(err) {
		out.problem("ConfigMap %s does not exist in the cluster, and kubeadm join reads it: put it back with kubeadm init phase upload-config kubeadm", key)
		return nil
	} else if err != nil {
		return fmt.Errorf("get ConfigMap %q: %w", key, err)
	}
	text, err := kubeadm.UpdateClusterConfiguration(config.Data[configMapKey], controlPlane.Spec.KubeadmConfigSpec, cluster, controlPlane.Spec.Version)
	if err != nil {
		out.problem("ConfigMap %s: %s", key, err)
		return nil
	}
	if text == config.Data[configMapKey] {
		return nil
	}
	before := config.DeepCopy()
	config.Data[configMapKey] = text
	if err := write(ctx, workload, config, before); err != nil {
		return err
	}
	out.change("updated ConfigMap %s for %s", key, controlPlane.Spec.Version)
	return nil
}

// write changes an object if it is still the one that was judged.
func write(ctx context.Context, workload client.Client, object, before client.Object) error {
	name := describe(workload, object)
	if err := workload.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("update %s: %w", name, err)
	}
	return nil
}

func describe(c client.Client, object client.Object) string {
	kind := "object"
	if gvk, err := c.GroupVersionKindFor(object); err == nil {
		kind = gvk.Kind
	}
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + object.GetNamespace() + "/" + object.GetName()
}
