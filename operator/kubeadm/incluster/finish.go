package incluster

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-dev/millwright/internal/apply"
)

// Annotations of a KubeadmControlPlane whose owner looks after kube-proxy or CoreDNS himself; their value does not matter.
const (
	skipKubeProxy = controlplanev1.SkipKubeProxyAnnotation
	skipCoreDNS   = controlplanev1.SkipCoreDNSAnnotation
)

// Finish brings kube-proxy and CoreDNS to the control plane's version, when all of its machines have it. What the
// cluster does not have, what the annotations exempt and what an add-on owns is left alone. Problems hold up nothing
// else: the cluster works with the old ones.
func Finish(ctx context.Context, workload client.Client, controlPlane *controlplanev1.KubeadmControlPlane) (Outcome, error) {
	var out Outcome
	version, err := semver.NewVersion(controlPlane.Spec.Version)
	if err != nil {
		out.problem("spec.version %q: %s: give it as v1.37.2", controlPlane.Spec.Version, err)
		return out, nil
	}
	if _, skip := controlPlane.Annotations[skipKubeProxy]; !skip {
		if err := finishProxy(ctx, workload, controlPlane, &out); err != nil {
			return out, err
		}
	}
	if _, skip := controlPlane.Annotations[skipCoreDNS]; !skip {
		return out, finishDNS(ctx, workload, controlPlane, version, &out)
	}
	return out, nil
}

func finishProxy(ctx context.Context, workload client.Client, controlPlane *controlplanev1.KubeadmControlPlane, out *Outcome) error {
	live := &appsv1.DaemonSet{}
	found, err := get(ctx, workload, proxyName, live)
	if !found || err != nil || apply.InSet(live) {
		return err
	}
	before := live.DeepCopy()
	changed, problem := moveProxy(live, controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration, controlPlane.Spec.Version)
	if problem != "" {
		out.problem("%s", problem)
	}
	if !changed {
		return nil
	}
	if err := write(ctx, workload, live, before); err != nil {
		return err
	}
	out.change("moved kube-proxy to %s", containerOf(&live.Spec.Template.Spec, proxyName).Image)
	return nil
}

func finishDNS(ctx context.Context, workload client.Client, controlPlane *controlplanev1.KubeadmControlPlane, version *semver.Version, out *Outcome) error {
	deployment := &appsv1.Deployment{}
	found, err := get(ctx, workload, dnsName, deployment)
	if !found || err != nil || apply.InSet(deployment) {
		return err
	}
	container := containerOf(&deployment.Spec.Template.Spec, dnsName)
	if container == nil {
		out.problem("Deployment kube-system/coredns has no container coredns: its image stays: if it is not kubeadm's, set the annotation %s on the control plane", skipCoreDNS)
		return nil
	}
	now := parseImage(container.Image)
	to, problem := dnsTarget(now, controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration, version)
	if problem != "" {
		out.problem("%s", problem)
		return nil
	}
	if source := sourceOf(deployment); to == now && (source == nil || source.Key == corefileKey) {
		return nil
	}
	return moveDNS(ctx, workload, deployment, to, out)
}

// moveDNS goes the way to another image; it begins wherever a try that was cut short has left it.
func moveDNS(ctx context.Context, workload client.Client, deployment *appsv1.Deployment, to image, out *Outcome) error {
	if err := grantDNS(ctx, workload, out); err != nil {
		return err
	}
	d := dns{deployment: deployment, config: &corev1.ConfigMap{}}
	if _, err := get(ctx, workload, dnsName, d.config); err != nil {
		return err
	}
	if apply.InSet(d.config) {
		return nil
	}
	for {
		before := dns{deployment: d.deployment.DeepCopy(), config: d.config.DeepCopy()}
		step, err := d.next(to)
		if err != nil {
			out.problem("CoreDNS stays at %s: %s: put it right, or set the annotation %s on the control plane and move it by hand",
				containerOf(&before.deployment.Spec.Template.Spec, dnsName).Image, err, skipCoreDNS)
			return nil
		}
		switch step {
		case nil:
			out.change("moved CoreDNS to %s", to)
			return nil
		case d.config:
			err = write(ctx, workload, d.config, before.config)
		default:
			err = write(ctx, workload, d.deployment, before.deployment)
		}
		if err != nil {
			return err
		}
	}
}

// grantDNS lets CoreDNS read what newer releases need. A cluster whose CoreDNS has another role has its own ways.
func grantDNS(ctx context.Context, workload client.Client, out *Outcome) error {
	live := &rbacv1.ClusterRole{}
	const name = "system:coredns"
	if err := workload.Get(ctx, client.ObjectKey{Name: name}, live); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("get ClusterRole %s: %w", name, err)
	}
	before := live.DeepCopy()
	changed, _ := grant(live, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{dnsGrants}})
	if !changed {
		return nil
	}
	if err := write(ctx, workload, live, before); err != nil {
		return err
	}
	out.change("completed ClusterRole %s", name)
	return nil
}

// get reads an object of kube-system; one that is not there is no error.
func get(ctx context.Context, workload client.Client, name string, object client.Object) (found bool, err error) {
	err = workload.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s: %w", describe(workload, object), err)
	}
	return true, nil
}
