package diagnosis

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/graph"
)

// Facts are what a diagnosis is made from. What could not be read is left empty: a rule that needs it finds nothing.
type Facts struct {
	Graph *graph.Graph
	// Events are those of the cluster's namespace in the management cluster.
	Events   []corev1.Event
	Releases []addonsv1.AddonRelease
	Upgrades []lifecyclev1.ClusterUpgrade
	// KubeconfigMissing tells that there is no kubeconfig Secret.
	KubeconfigMissing bool
	// Workload is nil where nobody looked: no kubeconfig, or a control plane that never was.
	Workload *Workload

	Now time.Time
	// Patience is how long a machine may wait for an ordinary step (an address, a node) before it is called trouble.
	Patience time.Duration
}

// Workload is what was seen of the workload cluster.
type Workload struct {
	// Err is why nothing could be read.
	Err error
	// Server is the address that was asked.
	Server string
	// Version is the API server's: v1.37.2.
	Version  string
	Nodes    []corev1.Node
	Requests []certificatesv1.CertificateSigningRequest
	// CAHash is the hash of the cluster's CA as kubeadm writes it (sha256:…), and Tokens the ids of the bootstrap tokens
	// that are valid now.
	CAHash string
	Tokens []string
	// Pods are those that are not ready, of the whole cluster.
	Pods []corev1.Pod
	// Webhooks are those that refuse when they cannot be asked, and whose Service has no endpoint that is ready.
	Webhooks []Webhook
}

// Webhook is an admission webhook that nobody serves.
type Webhook struct {
	Configuration, Name string
	Service             admissionv1.ServiceReference
}

// old tells whether something has lasted longer than is ordinary.
func (f *Facts) old(since time.Time) bool { return !since.IsZero() && f.Now.Sub(since) > f.Patience }
