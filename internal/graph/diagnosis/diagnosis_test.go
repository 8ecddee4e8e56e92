package diagnosis

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/graph"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ago is a time that is longer past than anybody's patience.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// world is a cluster as it is when all is well: one control-plane machine and one worker, each with its virtual machine.
type world struct {
	cluster         *clusterv1.Cluster
	infrastructure  *unstructured.Unstructured
	first, worker   *clusterv1.Machine
	firstVM, vm     *unstructured.Unstructured
	bootstrapConfig *unstructured.Unstructured
	more            []client.Object
	facts           Facts
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: ago(time.Hour)}
}

func provider(kind, name, owner string, conditions ...metav1.Condition) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	if kind == "KubeadmConfig" {
		u.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	}
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID(uid(kind + name))
	u.SetCreationTimestamp(ago(time.Hour))
	if owner != "" {
		u.SetOwnerReferences([]metav1.OwnerReference{{UID: uid(owner), Controller: ptr.To(true)}})
	}
	say(u, conditions...)
	return u
}

// say replaces the conditions of a provider's object.
func say(u *unstructured.Unstructured, conditions ...metav1.Condition) {
	var items []any
	for _, c := range conditions {
		item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
		if err != nil {
			panic(err)
		}
		items = append(items, item)
	}
	if err := unstructured.SetNestedSlice(u.Object, items, "status", "conditions"); err != nil {
		panic(err)
	}
}

func newWorld() *world {
	w := &world{}
	w.cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod", UID: uid("prod"), CreationTimestamp: ago(time.Hour)}}
	w.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	w.cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "VSphereCluster", Name: "prod"}
	w.cluster.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true), ControlPlaneInitialized: ptr.To(true)}
	w.cluster.Status.Conditions = []metav1.Condition{condition("Available", metav1.ConditionTrue, "Available", "")}
	w.infrastructure = provider("VSphereCluster", "prod", "prod", condition("VCenterAvailable", metav1.ConditionTrue, "Available", ""))
	machine := func(name string, labels map[string]string) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: uid(name), Labels: labels, CreationTimestamp: ago(time.Hour),
			OwnerReferences: []metav1.OwnerReference{{UID: uid("prod"), Controller: ptr.To(true)}},
		}}
		m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		m.Status.NodeRef.Name = name
		m.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Ready", ""), condition("InfrastructureReady", metav1.ConditionTrue, "Ready", "")}
		return m
	}
	w.first = machine("prod-cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""})
	w.worker = machine("prod-md", nil)
	w.worker.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: "prod-md"}
	ready := condition(provisioned, metav1.ConditionTrue, "Provisioned", "")
	w.firstVM = provider("VSphereMachine", "prod-cp", "prod-cp", ready)
	w.vm = provider("VSphereMachine", "prod-md", "prod-md", ready)
	w.bootstrapConfig = provider("KubeadmConfig", "prod-md", "prod-md", condition("DataSecretAvailable", metav1.ConditionTrue, "Available", ""))
	w.facts = Facts{Now: now, Patience: 3 * time.Minute, Workload: &Workload{Server: "https://10.0.0.1:6443", Version: "v1.37.2", Nodes: []corev1.Node{node("prod-cp"), node("prod-md")}}}
	return w
}

func node(name string) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(time.Hour)}}
	n.Spec.ProviderID = "vsphere://" + name
	n.Status.NodeInfo.KubeletVersion = "v1.37.2"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// joining makes the worker one whose node has not come.
func (w *world) joining() {
	w.worker.Status.NodeRef.Name = ""
	w.facts.Workload.Nodes = w.facts.Workload.Nodes[:1]
}

// beginning makes the cluster one whose control plane has never answered.
func (w *world) beginning() {
	w.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(false)
	w.first.Status.NodeRef.Name, w.worker.Status.NodeRef.Name = "", ""
	w.worker.Status.Initialization.InfrastructureProvisioned = nil
	w.facts.Workload = nil
}

func (w *world) diagnose(t *testing.T) []Finding {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := append([]client.Object{w.cluster, w.infrastructure, w.first, w.worker, w.firstVM, w.vm, w.bootstrapConfig}, w.more...)
	g, err := graph.Build(scheme, client.ObjectKeyFromObject(w.cluster), objects)
	if err != nil {
		t.Fatal(err)
	}
	w.facts.Graph = g
	return Diagnose(&w.facts)
}

func TestAHealthyClusterHasNoFinding(t *testing.T) {
	if found := newWorld().diagnose(t); len(found) > 0 {
		t.Errorf("got %+v", found)
	}
}

// trouble is what is broken, and the code that must come first.
type trouble struct {
	name  string
	harm  func(*world)
	first string
	// behind are the codes that the first explains.
	behind []string
}

// troubles are one of each kind.
var troubles = []trouble{
	{"wrong password", func(w *world) {
		say(w.infrastructure, condition("VCenterAvailable", metav1.ConditionFalse, "LoginFailed", `login to vCenter "vc" refused`))
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "LoginFailed", `login to vCenter "vc" refused`))
	}, "VCenterLoginFailed", []string{"VCenterLoginFailed"}},
	{"vCenter away", func(w *world) {
		say(w.infrastructure, condition("VCenterAvailable", metav1.ConditionFalse, "VCenterUnreachable", "connection refused"))
	}, "VCenterUnreachable", nil},
	{"certificate of vCenter", func(w *world) {
		say(w.infrastructure, condition("VCenterAvailable", metav1.ConditionFalse, "ThumbprintMismatch", "thumbprint differs"))
	}, "VCenterNotTrusted", nil},
	{"identity missing", func(w *world) {
		say(w.infrastructure, condition("VCenterAvailable", metav1.ConditionFalse, "CredentialsNotAvailable", "Secret does not exist"))
	}, "VCenterCredentialsMissing", nil},
	{"template missing", inventory("template"), "TemplateNotFound", nil},
	{"network missing", inventory("network"), "NetworkNotFound", nil},
	{"folder missing", inventory("folder"), "FolderNotFound", nil},
	{"datastore missing", inventory("datastore"), "DatastoreNotFound", nil},
	{"resource pool missing", inventory("resource pool"), "ResourcePoolNotFound", nil},
	{"template of the wrong version", func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "TemplateVersionMismatch", "template holds v1.36.3"))
	}, "TemplateVersionMismatch", nil},
	{"datastore full", func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "TaskFailed", "Insufficient disk space on datastore ''."))
	}, "DatastoreFull", nil},
	{"clone failed, told by upstream's provider", func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "CloningFailed", "the host is in maintenance mode"))
	}, "VCenterTaskFailed", nil},
	{"no address", func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "WaitingForIPAllocation", "the guest reports no address"))
	}, "NoAddress", nil},
	{"pool exhausted", func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "WaitingForStaticIPAllocation", "claim is not bound"))
	}, "AddressPoolExhausted", nil},
	{"first control plane has no template", func(w *world) {
		w.beginning()
		w.first.Status.Initialization.InfrastructureProvisioned = nil
		say(w.firstVM, condition(provisioned, metav1.ConditionFalse, "InventoryNotFound", `template "x" not found in datacenter "DC0"`))
		say(w.bootstrapConfig, condition("DataSecretAvailable", metav1.ConditionFalse, "WaitingForControlPlaneInitialized", ""))
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "WaitingForBootstrapData", ""))
	}, "TemplateNotFound", nil},
	{"endpoint unset", func(w *world) {
		w.beginning()
		w.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
		w.cluster.Status.Initialization.InfrastructureProvisioned = nil
		w.first.Status.Initialization.InfrastructureProvisioned = nil
		say(w.infrastructure, condition("ControlPlaneEndpointSet", metav1.ConditionFalse, "NotSet", "spec.controlPlaneEndpoint.host is empty"))
	}, "EndpointUnset", nil},
	{"infrastructure missing", func(w *world) {
		w.beginning()
		w.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
		w.cluster.Status.Initialization.InfrastructureProvisioned = nil
		w.first.Status.Initialization.InfrastructureProvisioned = nil
		w.cluster.Spec.InfrastructureRef.Name = "other"
	}, "InfrastructureMissing", nil},
	{"kubeadm init failed", (*world).beginning, "ControlPlaneDidNotStart", nil},
	{"kubeadm config refused", func(w *world) {
		w.joining()
		w.worker.Status.Initialization.InfrastructureProvisioned = nil
		say(w.bootstrapConfig, condition("DataSecretAvailable", metav1.ConditionFalse, "InvalidSpec", "spec.files[0].encoding"))
	}, "BootstrapConfigRefused", nil},
	{"token expired", func(w *world) {
		w.joining()
		setDiscovery(w, "abcdef.0123456789abcdef", "")
		w.facts.Workload.Tokens = []string{"ghijkl"}
	}, "JoinTokenExpired", nil},
	{"wrong CA hash", func(w *world) {
		w.joining()
		setDiscovery(w, "abcdef.0123456789abcdef", "sha256:bad")
		w.facts.Workload.Tokens, w.facts.Workload.CAHash = []string{"abcdef"}, "sha256:good"
	}, "CAHashWrong", nil},
	{"kubelet does not register", (*world).joining, "NodeNotRegistered", nil},
	{"no provider id", func(w *world) {
		w.joining()
		n := node("prod-md")
		n.Spec.ProviderID = ""
		w.facts.Workload.Nodes = append(w.facts.Workload.Nodes, n)
	}, "ProviderIDMissing", nil},
	{"another provider id", func(w *world) {
		w.joining()
		w.facts.Workload.Nodes = append(w.facts.Workload.Nodes, node("prod-md"))
		w.worker.Spec.ProviderID = "vsphere://other"
	}, "ProviderIDMismatch", nil},
	{"request for a certificate pending", func(w *world) {
		r := certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "csr-1", CreationTimestamp: ago(time.Hour)}}
		r.Spec.SignerName, r.Spec.Username = certificatesv1.KubeAPIServerClientKubeletSignerName, "system:bootstrap:abcdef"
		w.facts.Workload.Requests = []certificatesv1.CertificateSigningRequest{r}
	}, "CSRPending", nil},
	{"kubelet too new", func(w *world) {
		w.facts.Workload.Nodes[1].Status.NodeInfo.KubeletVersion = "v1.38.0"
	}, "KubeletTooNew", nil},
	{"image not pullable", func(w *world) {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "p", CreationTimestamp: ago(time.Hour)}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "registry.test/x:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		w.facts.Workload.Pods = []corev1.Pod{p}
	}, "ImageNotPullable", nil},
	{"no CNI", func(w *world) {
		for i := range w.facts.Workload.Nodes {
			w.facts.Workload.Nodes[i].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Message: "container runtime network not ready: cni plugin not initialized", LastTransitionTime: ago(time.Hour)}}
		}
		w.facts.Releases = []addonsv1.AddonRelease{release(addonsv1.UnhealthyReason)}
	}, "CNIMissing", []string{"AddOnFailing"}},
	{"no cloud provider", func(w *world) {
		for i := range w.facts.Workload.Nodes {
			w.facts.Workload.Nodes[i].Spec.Taints = []corev1.Taint{{Key: uninitialized}}
		}
	}, "CloudProviderMissing", nil},
	{"budget blocks a drain", func(w *world) {
		w.worker.DeletionTimestamp, w.worker.Finalizers = ptr.To(ago(time.Hour)), []string{"machine"}
		w.worker.Status.Conditions = []metav1.Condition{condition("Deleting", metav1.ConditionTrue, "DrainingNode", "Pod default/web: cannot evict, it would violate the pod's disruption budget web")}
	}, "DrainBlockedByBudget", nil},
	{"volume does not detach", func(w *world) {
		w.worker.DeletionTimestamp, w.worker.Finalizers = ptr.To(ago(time.Hour)), []string{"machine"}
		w.worker.Status.Conditions = []metav1.Condition{condition("Deleting", metav1.ConditionTrue, "WaitingForVolumeDetach", "PersistentVolume pv-1")}
	}, "VolumeNotDetached", nil},
	{"finalizer nobody removes", func(w *world) {
		w.vm.SetDeletionTimestamp(ptr.To(ago(time.Hour)))
		w.vm.SetFinalizers([]string{"foreign/finalizer"})
	}, "FinalizerStuck", nil},
	{"cluster paused", func(w *world) {
		w.cluster.Spec.Paused = ptr.To(true)
		w.cluster.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "clusterctl", Time: ptr.To(ago(time.Hour)), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}}
	}, "Paused", nil},
	{"health check short-circuited", func(w *world) {
		w.more = append(w.more, &clusterv1.MachineHealthCheck{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mhc", UID: uid("mhc"), CreationTimestamp: ago(time.Hour)},
			Status: clusterv1.MachineHealthCheckStatus{Conditions: []metav1.Condition{
				condition(clusterv1.MachineHealthCheckRemediationAllowedCondition, metav1.ConditionFalse, "TooManyUnhealthy", "2 of 3 are unhealthy"),
			}},
		})
	}, "HealthCheckShortCircuited", nil},
	{"retries used up", func(w *world) {
		w.worker.Status.Conditions = append(w.worker.Status.Conditions, condition("OwnerRemediated", metav1.ConditionFalse, "CannotBeRemediated", "the maximum number of retries (3) is used up"))
	}, "RemediationExhausted", nil},
	{"certificate expired", func(w *world) {
		w.facts.Workload = &Workload{Server: "https://10.0.0.1:6443", Err: errors.New("tls: failed to verify certificate: x509: certificate has expired or is not yet valid")}
	}, "CertificateExpired", nil},
	{"cluster does not answer", func(w *world) {
		w.facts.Workload = &Workload{Server: "https://10.0.0.1:6443", Err: errors.New("connection refused")}
		w.facts.Releases = []addonsv1.AddonRelease{release(addonsv1.ClusterUnreachableReason)}
	}, "ControlPlaneUnreachable", []string{"AddOnFailing"}},
	{"kubeconfig missing", func(w *world) { w.facts.KubeconfigMissing, w.facts.Workload = true, nil }, "KubeconfigMissing", nil},
	{"provider lacks a permission", func(w *world) {
		w.worker.Status.Conditions = append(w.worker.Status.Conditions, condition("InfrastructureReady", metav1.ConditionUnknown, "InternalError",
			`foomachines.infrastructure.foo.test is forbidden: User "system:serviceaccount:millwright-system:millwright-operator" cannot get resource`))
	}, "ControllerForbidden", nil},
	{"contract label missing", func(w *world) {
		w.worker.Status.Conditions = append(w.worker.Status.Conditions, condition("InfrastructureReady", metav1.ConditionUnknown, "InternalError",
			`CRD "foos.foo.test" has no label cluster.x-k8s.io/v1beta2`))
	}, "ContractLabelMissing", nil},
	{"quota exceeded", func(w *world) {
		w.facts.Events = []corev1.Event{{
			InvolvedObject: corev1.ObjectReference{Kind: "Machine", Namespace: "default", Name: "prod-md"}, Type: corev1.EventTypeWarning,
			Reason: "FailedCreate", Message: `secrets "x" is forbidden: exceeded quota: team`, LastTimestamp: ago(time.Minute),
		}}
	}, "QuotaExceeded", nil},
	{"nobody reconciles", func(w *world) {
		say(w.vm)
	}, "NoController", nil},
	{"webhook without endpoints", func(w *world) {
		w.facts.Workload.Webhooks = []Webhook{{Configuration: "ValidatingWebhookConfiguration", Name: "deny.test"}}
	}, "WebhookWithoutEndpoints", nil},
	{"etcd has no quorum", func(w *world) {
		w.more = append(w.more, provider("KubeadmControlPlane", "prod", "prod", condition("EtcdClusterHealthy", metav1.ConditionFalse, "NotHealthy", "etcd has lost its quorum: 1 of 3 members answer")))
		w.facts.Workload = &Workload{Server: "https://10.0.0.1:6443", Err: errors.New("connection refused")}
	}, "EtcdQuorumLost", []string{"ControlPlaneUnreachable"}},
	{"upgrade is blocked", func(w *world) {
		u := lifecyclev1.ClusterUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod"}}
		u.Status.Conditions = []metav1.Condition{condition("Preflight", metav1.ConditionFalse, lifecyclev1.BlockedReason, "2 checks block it")}
		w.facts.Upgrades = []lifecyclev1.ClusterUpgrade{u}
	}, "UpgradeBlocked", nil},
	{"release in conflict", func(w *world) {
		w.facts.Releases = []addonsv1.AddonRelease{release(addonsv1.ConflictReason)}
	}, "AddOnConflict", nil},
	{"version skew blocks a set", func(w *world) {
		w.more = append(w.more, &clusterv1.MachineSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "ms", UID: uid("ms"), CreationTimestamp: ago(time.Hour)},
			Status: clusterv1.MachineSetStatus{Conditions: []metav1.Condition{
				condition(clusterv1.ScalingUpCondition, metav1.ConditionTrue, "ScalingUp", "blocked by the preflight check KubernetesVersionSkew"),
			}},
		})
	}, "VersionSkew", nil},
	{"template changed in place", func(w *world) {
		w.more = append(w.more, &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "md", UID: uid("md"), CreationTimestamp: ago(time.Hour)},
			Status: clusterv1.MachineDeploymentStatus{Conditions: []metav1.Condition{
				condition("TemplateContentChanged", metav1.ConditionTrue, "ContentChanged", "VSphereMachineTemplate/md was changed"),
			}},
		})
	}, "TemplateChangedInPlace", nil},
	{"rollout paused", func(w *world) {
		w.more = append(w.more, &clusterv1.MachineDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "md", UID: uid("md"), CreationTimestamp: ago(time.Hour)},
			Spec:       clusterv1.MachineDeploymentSpec{Paused: ptr.To(true)},
			Status:     clusterv1.MachineDeploymentStatus{Conditions: []metav1.Condition{condition("Available", metav1.ConditionTrue, "Available", "")}},
		})
	}, "RolloutPaused", nil},
}

func TestEachTroubleIsNamedFirst(t *testing.T) {
	for _, trouble := range troubles {
		t.Run(trouble.name, func(t *testing.T) {
			w := newWorld()
			trouble.harm(w)
			found := w.diagnose(t)
			if len(found) == 0 {
				t.Fatal("nothing was found")
			}
			var behind []string
			for _, b := range found[0].Behind {
				behind = append(behind, b.Code)
			}
			if found[0].Code != trouble.first || !cmp.Equal(behind, trouble.behind) {
				t.Errorf("first is %s before %v, want %s before %v; all: %+v", found[0].Code, behind, trouble.first, trouble.behind, found)
			}
			if len(found) > 1 {
				t.Errorf("%d causes, want one: %+v", len(found), found)
			}
			if found[0].Cause == "" || found[0].Object.Kind == "" {
				t.Errorf("incomplete: %+v", found[0])
			}
		})
	}
}

func TestOfManyTroublesTheOneThatOthersWaitForIsFirst(t *testing.T) {
	w := newWorld()
	say(w.infrastructure, condition("VCenterAvailable", metav1.ConditionFalse, "LoginFailed", "refused"))
	inventory("template")(w)
	w.facts.Releases = []addonsv1.AddonRelease{release(addonsv1.UnhealthyReason)}
	found := w.diagnose(t)
	if len(found) != 1 || found[0].Code != "VCenterLoginFailed" || len(found[0].Behind) != 2 {
		t.Errorf("got %+v", found)
	}
}

func TestTroubleOfOneMachineIsNoAnothers(t *testing.T) {
	w := newWorld()
	inventory("template")(w)
	found := w.diagnose(t)
	if got := Concerning(found, w.facts.Graph.Find(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), "prod-cp")); len(got) > 0 {
		t.Errorf("the control plane is told of %+v", got)
	}
	if got := Concerning(found, w.facts.Graph.Find(clusterv1.GroupVersion.WithKind("Machine").GroupKind(), "prod-md")); len(got) != 1 {
		t.Errorf("the worker is told of %+v", got)
	}
}

func TestWhatIsOrdinaryAtFirstIsNoTrouble(t *testing.T) {
	w := newWorld()
	w.facts.Patience = 2 * time.Hour
	say(w.vm, condition(provisioned, metav1.ConditionFalse, "WaitingForIPAllocation", ""))
	w.joining()
	if found := w.diagnose(t); len(found) > 0 {
		t.Errorf("got %+v", found)
	}
}

func TestWhoPausedIsEvidence(t *testing.T) {
	w := newWorld()
	i := slices.IndexFunc(troubles, func(t trouble) bool { return t.name == "cluster paused" })
	troubles[i].harm(w)
	found := w.diagnose(t)
	want := []Evidence{{Source: "field manager", Text: "clusterctl"}}
	if len(found) != 1 || !cmp.Equal(found[0].Evidence, want) || found[0].Since == nil {
		t.Errorf("got %+v", found)
	}
}

// inventory makes the worker's virtual machine lack something.
func inventory(kind string) func(*world) {
	return func(w *world) {
		say(w.vm, condition(provisioned, metav1.ConditionFalse, "InventoryNotFound", kind+` "x" not found in datacenter "DC0"; there is no `+kind+` there`))
	}
}

func setDiscovery(w *world, token, hash string) {
	bootstrapToken := map[string]any{"token": token}
	if hash != "" {
		bootstrapToken["caCertHashes"] = []any{hash}
	}
	if err := unstructured.SetNestedMap(w.bootstrapConfig.Object, bootstrapToken, "spec", "joinConfiguration", "discovery", "bootstrapToken"); err != nil {
		panic(err)
	}
}

func release(reason string) addonsv1.AddonRelease {
	r := addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "prod-calico"}}
	r.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, reason, "it is not")}
	return r
}

func uid(name string) types.UID { return types.UID(name) }
