package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/graph"
	"github.com/millwright-dev/millwright/internal/graph/diagnosis"
	"github.com/millwright-dev/millwright/internal/pki"
)

// workloadPatience is how long a cluster that may be down is asked altogether.
const workloadPatience = 10 * time.Second

// subjects finds what the user named; every cluster of the namespace where nothing was.
func (o *whyOptions) subjects(ctx context.Context) ([]subject, error) {
	if o.name == "" {
		var all []subject
		err := graph.Pages(ctx, o.client, &clusterv1.ClusterList{}, func(page client.ObjectList) error {
			for _, c := range page.(*clusterv1.ClusterList).Items {
				all = append(all, subject{cluster: client.ObjectKeyFromObject(&c), kind: clusterKind, name: c.Name})
			}
			return nil
		}, client.InNamespace(o.namespace))
		return all, err
	}
	key := client.ObjectKey{Namespace: o.namespace, Name: o.name}
	candidates := []struct {
		kind    string
		obj     client.Object
		cluster func() string
	}{
		{"Cluster", &clusterv1.Cluster{}, func() string { return o.name }},
		{"Machine", &clusterv1.Machine{}, nil},
		{"MachineDeployment", &clusterv1.MachineDeployment{}, nil},
	}
	for _, c := range candidates {
		if o.kind != "" && o.kind != c.kind {
			continue
		}
		err := o.client.Get(ctx, key, c.obj)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", c.kind, o.name, err)
		}
		cluster := o.name
		switch obj := c.obj.(type) {
		case *clusterv1.Machine:
			cluster = obj.Spec.ClusterName
		case *clusterv1.MachineDeployment:
			cluster = obj.Spec.ClusterName
		}
		kind := schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: c.kind}
		return []subject{{cluster: client.ObjectKey{Namespace: o.namespace, Name: cluster}, kind: kind, name: o.name}}, nil
	}
	if o.kind == "" || o.kind == "Cluster" {
		return nil, clusterNotFound(ctx, o.client, key)
	}
	return nil, fmt.Errorf("%s %q not found in namespace %s: kubectl machines tree CLUSTER shows what there is", o.kind, o.name, o.namespace)
}

// facts reads all that a diagnosis is made from. Only the cluster's own objects must be readable: of the rest, what the user
// may not read is told on stderr and left out.
func (o *whyOptions) facts(ctx context.Context, cluster client.ObjectKey) (*diagnosis.Facts, error) {
	g, err := graph.Load(ctx, o.client, cluster)
	if apierrors.IsNotFound(err) {
		return nil, clusterNotFound(ctx, o.client, cluster)
	}
	if err != nil {
		return nil, err
	}
	f := &diagnosis.Facts{Graph: g, Now: time.Now(), Patience: o.after}
	err = graph.Pages(ctx, o.client, &corev1.EventList{}, func(page client.ObjectList) error {
		f.Events = append(f.Events, page.(*corev1.EventList).Items...)
		return nil
	}, client.InNamespace(cluster.Namespace))
	o.leaveOut("events", err)
	err = graph.Pages(ctx, o.client, &addonsv1.AddonReleaseList{}, func(page client.ObjectList) error {
		for _, r := range page.(*addonsv1.AddonReleaseList).Items {
			if r.Spec.ClusterName == cluster.Name {
				f.Releases = append(f.Releases, r)
			}
		}
		return nil
	}, client.InNamespace(cluster.Namespace))
	o.leaveOut("add-ons", err)
	err = graph.Pages(ctx, o.client, &lifecyclev1.ClusterUpgradeList{}, func(page client.ObjectList) error {
		for _, u := range page.(*lifecyclev1.ClusterUpgradeList).Items {
			if u.Spec.ClusterName == cluster.Name {
				f.Upgrades = append(f.Upgrades, u)
			}
		}
		return nil
	}, client.InNamespace(cluster.Namespace))
	o.leaveOut("upgrades", err)
	if o.offline {
		return f, nil
	}
	config, err := workloadConfig(ctx, o.client, cluster)
	switch {
	case apierrors.IsNotFound(err):
		f.KubeconfigMissing = true
	case err != nil:
		o.leaveOut("the workload cluster", err)
	default:
		config.Timeout = workloadPatience
		workload, err := kubernetes.NewForConfig(config)
		if err != nil {
			o.leaveOut("the workload cluster", err)
			return f, nil
		}
		f.Workload = o.readWorkload(ctx, workload)
		f.Workload.Server = config.Host
		if hashes, err := pki.CertHashes(config.CAData); err == nil && len(hashes) > 0 {
			f.Workload.CAHash = hashes[0]
		}
	}
	return f, nil
}

// leaveOut tells what could not be read; kinds that the server does not have are nothing to tell.
func (o *whyOptions) leaveOut(what string, err error) {
	if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return
	}
	fmt.Fprintf(o.ErrOut, "Warning: %s are left out: %v\n", what, err)
}

// readWorkload reads what rules need of the workload cluster. The first failure of a cluster that does not answer is the last.
func (o *whyOptions) readWorkload(ctx context.Context, c kubernetes.Interface) *diagnosis.Workload {
	w := &diagnosis.Workload{}
	ctx, cancel := context.WithTimeout(ctx, workloadPatience)
	defer cancel()
	version, err := c.Discovery().ServerVersion()
	if err != nil {
		w.Err = err
		return w
	}
	w.Version = version.GitVersion
	nodes, err := c.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		w.Err = fmt.Errorf("list its nodes: %w", err)
		return w
	}
	w.Nodes = nodes.Items
	requests, err := c.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{})
	o.leaveOut("requests for certificates", err)
	if err == nil {
		w.Requests = requests.Items
	}
	// Pods that run are of no interest, and there may be many of them.
	pods, err := c.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Pending"})
	o.leaveOut("pods", err)
	if err == nil {
		w.Pods = pods.Items
	}
	tokens, err := c.CoreV1().Secrets(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	o.leaveOut("bootstrap tokens", err)
	if err == nil {
		for _, s := range tokens.Items {
			expires, err := time.Parse(time.RFC3339, string(s.Data["expiration"]))
			if err != nil || time.Now().Before(expires) {
				w.Tokens = append(w.Tokens, string(s.Data["token-id"]))
			}
		}
	}
	w.Webhooks, err = deadWebhooks(ctx, c)
	o.leaveOut("admission webhooks", err)
	return w
}

// deadWebhooks finds webhooks that must be asked and whose Service nobody serves.
func deadWebhooks(ctx context.Context, c kubernetes.Interface) ([]diagnosis.Webhook, error) {
	var must []diagnosis.Webhook
	add := func(configuration, name string, config admissionv1.WebhookClientConfig, policy *admissionv1.FailurePolicyType) {
		if config.Service != nil && (policy == nil || *policy == admissionv1.Fail) {
			must = append(must, diagnosis.Webhook{Configuration: configuration, Name: name, Service: *config.Service})
		}
	}
	validating, err := c.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, configuration := range validating.Items {
		for _, w := range configuration.Webhooks {
			add("ValidatingWebhookConfiguration", cmp.Or(w.Name, configuration.Name), w.ClientConfig, w.FailurePolicy)
		}
	}
	mutating, err := c.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, configuration := range mutating.Items {
		for _, w := range configuration.Webhooks {
			add("MutatingWebhookConfiguration", cmp.Or(w.Name, configuration.Name), w.ClientConfig, w.FailurePolicy)
		}
	}
	var dead []diagnosis.Webhook
	for _, w := range must {
		slices, err := c.DiscoveryV1().EndpointSlices(w.Service.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + w.Service.Name})
		if err != nil {
			return dead, err
		}
		if !served(slices.Items) {
			dead = append(dead, w)
		}
	}
	return dead, nil
}

func served(slices []discoveryv1.EndpointSlice) bool {
	for _, s := range slices {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return true
			}
		}
	}
	return false
}
