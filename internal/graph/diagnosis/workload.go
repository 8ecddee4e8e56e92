package diagnosis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// connection finds a workload cluster that cannot be asked.
func connection(f *Facts) []Finding {
	if !initializedControlPlane(f.Graph) || !f.Graph.Spec().DeletionTimestamp.IsZero() {
		return nil
	}
	name := f.Graph.Spec().Name
	if f.KubeconfigMissing {
		trouble := finding("KubeconfigMissing", layerConnection, f.Graph.Cluster, fmt.Sprintf("Secret %s-kubeconfig does not exist: neither controllers nor people reach the cluster", name))
		trouble.Remedy, trouble.wide = "The control plane's controller makes it anew from the cluster's CA. Of a control plane that nobody here reconciles, put its kubeconfig there.", true
		return []Finding{trouble}
	}
	if f.Workload == nil || f.Workload.Err == nil {
		return nil
	}
	trouble := finding("ControlPlaneUnreachable", layerConnection, f.Graph.Cluster, fmt.Sprintf("the API server at %s does not answer: %v", f.Workload.Server, f.Workload.Err))
	trouble.wide = true
	trouble.Remedy = "See that its address answers from here, and how the control-plane machines are: kubectl machines get " + name + "."
	text := f.Workload.Err.Error()
	switch {
	case strings.Contains(text, "certificate has expired"):
		trouble.Code, trouble.layer = "CertificateExpired", layerControlPlane
		trouble.Cause = fmt.Sprintf("a certificate of the control plane at %s has expired: %v", f.Workload.Server, f.Workload.Err)
		trouble.Remedy = "kubectl machines certs check " + name + " names it; kubectl machines certs rotate " + name + " rolls the control plane."
	case apierrors.IsUnauthorized(f.Workload.Err), strings.Contains(text, "certificate signed by unknown authority"):
		trouble.Code = "KubeconfigStale"
		trouble.Cause = fmt.Sprintf("the API server at %s does not take what Secret %s-kubeconfig says: %v", f.Workload.Server, name, f.Workload.Err)
		trouble.Remedy = "Something else answers at this address, or the cluster has another CA than its Secret: compare Secret " + name + "-ca with the cluster's."
	}
	return []Finding{trouble}
}

// workload returns what was seen, or something empty.
func (f *Facts) workload() *Workload { return cmp.Or(f.Workload, &Workload{}) }

// inWorkload is a finding about an object of the workload cluster.
func (f *Facts) inWorkload(code string, l layer, kind, namespace, name, cause string) Finding {
	return Finding{
		Code: code, layer: l, Cause: cause, of: f.Graph.Cluster,
		Object: Reference{Kind: kind, Namespace: namespace, Name: name, Cluster: f.Graph.Cluster.GetName()},
	}
}

// certificateRequests finds kubelets whose certificate nobody signs.
func certificateRequests(f *Facts) []Finding {
	var found []Finding
	for i := range f.workload().Requests {
		r := &f.workload().Requests[i]
		kubelets := r.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName || r.Spec.SignerName == certificatesv1.KubeletServingSignerName
		if !kubelets || len(r.Status.Certificate) > 0 || len(r.Status.Conditions) > 0 && denied(r) == "" || !f.old(r.CreationTimestamp.Time) {
			continue
		}
		cause := fmt.Sprintf("%s asks for a certificate (%s) and nobody has approved it", r.Spec.Username, r.Spec.SignerName)
		if reason := denied(r); reason != "" {
			cause = fmt.Sprintf("%s asked for a certificate (%s) and was denied: %s", r.Spec.Username, r.Spec.SignerName, reason)
		}
		l := layerBootstrap
		if r.Spec.SignerName == certificatesv1.KubeletServingSignerName {
			// The node is there; what is missing are logs, exec and metrics.
			l = layerNode
		}
		trouble := f.inWorkload("CSRPending", l, "CertificateSigningRequest", "", r.Name, cause).since(r.CreationTimestamp.Time)
		trouble.Remedy = "kubectl certificate approve " + r.Name + ", after a look at who asks; kube-controller-manager approves those of kubelets when bootstrap tokens are in the group that kubeadm binds."
		found = append(found, trouble)
	}
	return found
}

func denied(r *certificatesv1.CertificateSigningRequest) string {
	for _, c := range r.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return cmp.Or(c.Message, c.Reason, string(c.Type))
		}
	}
	return ""
}

// webhooks finds admission webhooks that stop everything since nobody answers.
func webhooks(f *Facts) []Finding {
	var found []Finding
	for _, w := range f.workload().Webhooks {
		trouble := f.inWorkload("WebhookWithoutEndpoints", layerCluster, w.Configuration, "", w.Name,
			fmt.Sprintf("webhook %q must be asked before objects are written, and its Service %s/%s has no endpoint that is ready", w.Name, w.Service.Namespace, w.Service.Name))
		trouble.Remedy = "Bring the pods of that Service up, or remove the webhook's configuration while they cannot run."
		found = append(found, trouble)
	}
	return found
}

// network finds nodes that wait for a CNI.
func network(f *Facts) []Finding {
	var without []string
	var since time.Time
	var said string
	for i := range f.workload().Nodes {
		n := &f.workload().Nodes[i]
		for _, c := range n.Status.Conditions {
			text := strings.ToLower(c.Message)
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue && (strings.Contains(text, "cni") || strings.Contains(text, "network plugin")) {
				without = append(without, n.Name)
				if since.IsZero() || c.LastTransitionTime.Time.Before(since) {
					since, said = c.LastTransitionTime.Time, c.Message
				}
			}
		}
	}
	if len(without) == 0 {
		return nil
	}
	all := len(without) == len(f.workload().Nodes)
	trouble := f.inWorkload("CNIMissing", layerCluster, "Node", "", without[0], fmt.Sprintf("%s no pod network: %s", nodesHave(without), said)).since(since)
	trouble.Remedy = fmt.Sprintf("Install one: kubectl addons install calico --cluster %s. Where one is installed, look at its pods on these nodes.", f.Graph.Cluster.GetName())
	trouble.wide = all
	return []Finding{trouble.because("condition Ready of Node/"+without[0], said)}
}

func nodesHave(names []string) string {
	if len(names) == 1 {
		return "node " + names[0] + " has"
	}
	return fmt.Sprintf("%d nodes have (%s)", len(names), strings.Join(names[:min(3, len(names))], ", "))
}

const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// cloudProvider finds nodes that wait for a cloud controller manager.
func cloudProvider(f *Facts) []Finding {
	var without []string
	var since time.Time
	for i := range f.workload().Nodes {
		n := &f.workload().Nodes[i]
		tainted := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == uninitialized })
		if tainted && f.old(n.CreationTimestamp.Time) {
			without = append(without, n.Name)
			if since.IsZero() || n.CreationTimestamp.Time.Before(since) {
				since = n.CreationTimestamp.Time
			}
		}
	}
	if len(without) == 0 {
		return nil
	}
	trouble := f.inWorkload("CloudProviderMissing", layerCluster, "Node", "", without[0],
		fmt.Sprintf("%s the taint %s: no cloud controller manager has initialized them, so they have no provider id and take no pods", nodesHave(without), uninitialized)).since(since)
	trouble.Remedy = fmt.Sprintf("kubectl addons install vsphere-cpi --cluster %s, or take --cloud-provider=external from the kubelets' arguments.", f.Graph.Cluster.GetName())
	trouble.wide, trouble.Likely = len(without) == len(f.workload().Nodes), true
	return []Finding{trouble}
}

// images finds images that no node can pull.
func images(f *Facts) []Finding {
	var found []Finding
	seen := map[string]bool{}
	for i := range f.workload().Pods {
		p := &f.workload().Pods[i]
		for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			waiting := status.State.Waiting
			if waiting == nil || seen[status.Image] || !slices.Contains([]string{"ImagePullBackOff", "ErrImagePull", "InvalidImageName"}, waiting.Reason) {
				continue
			}
			seen[status.Image] = true
			trouble := f.inWorkload("ImageNotPullable", layerNode, "Pod", p.Namespace, p.Name, fmt.Sprintf("image %q cannot be pulled on node %s: %s", status.Image, p.Spec.NodeName, cmp.Or(waiting.Message, waiting.Reason)))
			trouble.Remedy = "See that the image exists and that the nodes reach its registry and may pull from it; add-ons take --registry for a mirror."
			found = append(found, trouble.since(p.CreationTimestamp.Time))
		}
	}
	return found
}

// kubeletVersions finds kubelets that are newer than the API server.
func kubeletVersions(f *Facts) []Finding {
	var found []Finding
	for i := range f.workload().Nodes {
		n := &f.workload().Nodes[i]
		if newerMinor(n.Status.NodeInfo.KubeletVersion, f.workload().Version) {
			trouble := f.inWorkload("KubeletTooNew", layerNode, "Node", "", n.Name, fmt.Sprintf("its kubelet is %s, newer than the API server's %s: Kubernetes supports no such pair", n.Status.NodeInfo.KubeletVersion, f.workload().Version))
			trouble.Remedy = "Upgrade the control plane, or replace the node's machine by one of an older version."
			found = append(found, trouble.since(n.CreationTimestamp.Time))
		}
	}
	return found
}
