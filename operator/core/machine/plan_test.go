package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestDefaultsAreThoseOfUpstreamsWebhook(t *testing.T) {
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "1"}}
	clusterRef := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "1"}
	restored := clusterRef
	restored.UID = "0"
	set := metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "MachineSet", Name: "s", UID: "2", Controller: new(true)}

	for name, tc := range map[string]struct {
		cluster     *clusterv1.Cluster
		version     string
		timeout     *int32
		owners      []metav1.OwnerReference
		wantVersion string
		wantTimeout int32
		wantOwners  []metav1.OwnerReference
	}{
		"everything is missing":          {cluster: cluster, wantTimeout: 10, wantOwners: []metav1.OwnerReference{clusterRef}},
		"values are kept":                {cluster: cluster, version: "v1.37.2", timeout: new(int32(0)), wantVersion: "v1.37.2", wantOwners: []metav1.OwnerReference{clusterRef}},
		"a version without a v":          {cluster: cluster, version: "1.37.2", wantVersion: "v1.37.2", wantTimeout: 10, wantOwners: []metav1.OwnerReference{clusterRef}},
		"a Machine of a set":             {cluster: cluster, owners: []metav1.OwnerReference{set}, wantTimeout: 10, wantOwners: []metav1.OwnerReference{set}},
		"a Cluster that was restored":    {cluster: cluster, owners: []metav1.OwnerReference{restored}, wantTimeout: 10, wantOwners: []metav1.OwnerReference{clusterRef}},
		"a Cluster that does not exist":  {wantTimeout: 10},
		"the Cluster is an owner before": {cluster: cluster, owners: []metav1.OwnerReference{clusterRef}, wantTimeout: 10, wantOwners: []metav1.OwnerReference{clusterRef}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", OwnerReferences: tc.owners}}
			m.Spec.ClusterName, m.Spec.Version, m.Spec.Deletion.NodeDeletionTimeoutSeconds = "c", tc.version, tc.timeout
			applyDefaults(m, tc.cluster)
			if m.Labels[clusterv1.ClusterNameLabel] != "c" || m.Spec.Version != tc.wantVersion || *m.Spec.Deletion.NodeDeletionTimeoutSeconds != tc.wantTimeout {
				t.Errorf("labels %v, version %q, timeout %d", m.Labels, m.Spec.Version, *m.Spec.Deletion.NodeDeletionTimeoutSeconds)
			}
			if d := cmp.Diff(tc.wantOwners, m.OwnerReferences); d != "" {
				t.Errorf("owners (-want +got):\n%s", d)
			}
		})
	}
}

func TestSystemUUIDsAllowForSwappedBytes(t *testing.T) {
	for name, tc := range map[string]struct {
		providerID string
		want       []string
	}{
		"a vSphere machine":         {"vsphere://4201D7A3-1B2C-3D4E-5F60-718293A4B5C6", []string{"4201d7a3-1b2c-3d4e-5f60-718293a4b5c6", "a3d70142-2c1b-4e3d-5f60-718293a4b5c6"}},
		"a bare UUID":               {"4201d7a3-1b2c-3d4e-5f60-718293a4b5c6", []string{"4201d7a3-1b2c-3d4e-5f60-718293a4b5c6", "a3d70142-2c1b-4e3d-5f60-718293a4b5c6"}},
		"the same both ways":        {"x://11111111-2222-3333-4444-555555555555", []string{"11111111-2222-3333-4444-555555555555"}},
		"a name":                    {"in-memory://machine-1", nil},
		"a UUID with a wrong digit": {"x://4201d7g3-1b2c-3d4e-5f60-718293a4b5c6", nil},
		"nothing":                   {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, systemUUIDs(tc.providerID)); d != "" {
				t.Errorf("UUIDs (-want +got):\n%s", d)
			}
		})
	}
}

func TestMatchNodePrefersTheProviderID(t *testing.T) {
	node := func(name, providerID string) corev1.Node {
		return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
	}
	for name, tc := range map[string]struct {
		byProviderID, byUUID []corev1.Node
		want                 string
		wantByUUID, wantErr  bool
	}{
		"none":                                  {},
		"by provider id":                        {byProviderID: []corev1.Node{node("a", "x://1")}, want: "a"},
		"by UUID while nobody set the id":       {byUUID: []corev1.Node{node("b", "")}, want: "b", wantByUUID: true},
		"not by UUID when another id is set":    {byUUID: []corev1.Node{node("b", "y://9")}},
		"the id wins":                           {byProviderID: []corev1.Node{node("a", "x://1")}, byUUID: []corev1.Node{node("b", "")}, want: "a"},
		"two with one id":                       {byProviderID: []corev1.Node{node("a", "x://1"), node("b", "x://1")}, wantErr: true},
		"two with one UUID, one of them stale":  {byUUID: []corev1.Node{node("a", ""), node("b", "")}, wantErr: true},
		"one without an id, one with another's": {byUUID: []corev1.Node{node("a", "y://9"), node("b", "")}, want: "b", wantByUUID: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, byUUID, err := matchNode("x://1", tc.byProviderID, tc.byUUID)
			if (err != nil) != tc.wantErr {
				t.Fatalf("error: %v", err)
			}
			if (got == nil) != (tc.want == "") || (got != nil && got.Name != tc.want) || byUUID != tc.wantByUUID {
				t.Errorf("node %v by UUID %v, want %q by UUID %v", got, byUUID, tc.want, tc.wantByUUID)
			}
		})
	}
}

func TestANodeOfTheSameNameMayBeAnothers(t *testing.T) {
	const uuid = "4201d7a3-1b2c-3d4e-5f60-718293a4b5c6"
	for name, tc := range map[string]struct {
		machineID, nodeID, nodeUUID string
		want                        bool
	}{
		"the same provider id":                   {"x://" + uuid, "x://" + uuid, "", true},
		"another provider id":                    {"x://" + uuid, "x://other", uuid, false},
		"no provider id, the same UUID":          {"x://" + uuid, "", strings.ToUpper(uuid), true},
		"no provider id, another UUID":           {"x://" + uuid, "", "11111111-2222-3333-4444-555555555555", false},
		"no provider id, and none that helps":    {"x://name", "", uuid, true},
		"the Machine has lost its own":           {"", "x://" + uuid, uuid, true},
		"no provider id, no UUID so far":         {"x://" + uuid, "", "", false},
		"no provider id, bytes swapped, is ours": {"x://" + uuid, "", "a3d70142-2c1b-4e3d-5f60-718293a4b5c6", true},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: tc.nodeID}}
			node.Status.NodeInfo.SystemUUID = tc.nodeUUID
			if got := isNodeOf(node, tc.machineID); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestPhaseFollowsWhatIsThere(t *testing.T) {
	done := clusterv1.MachineInitializationStatus{InfrastructureProvisioned: new(true), BootstrapDataSecretCreated: new(true)}
	now := metav1.Now()
	for name, tc := range map[string]struct {
		status   clusterv1.MachineStatus
		deleting *metav1.Time
		deletion *waiting
		want     clusterv1.MachinePhase
	}{
		"nothing":                  {want: clusterv1.MachinePhasePending},
		"bootstrap data":           {status: clusterv1.MachineStatus{Initialization: clusterv1.MachineInitializationStatus{BootstrapDataSecretCreated: new(true)}}, want: clusterv1.MachinePhaseProvisioning},
		"infrastructure":           {status: clusterv1.MachineStatus{Initialization: done}, want: clusterv1.MachinePhaseProvisioned},
		"a Node":                   {status: clusterv1.MachineStatus{Initialization: done, NodeRef: clusterv1.MachineNodeReference{Name: "n"}}, want: clusterv1.MachinePhaseRunning},
		"being deleted":            {status: clusterv1.MachineStatus{Initialization: done}, deleting: &now, want: clusterv1.MachinePhaseDeleting},
		"everything of it is gone": {deleting: &now, deletion: &waiting{done: true}, want: clusterv1.MachinePhaseDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			m := &clusterv1.Machine{Status: tc.status}
			m.DeletionTimestamp = tc.deleting
			if got := phase(&snapshot{machine: m, deletion: tc.deletion}); got != tc.want {
				t.Errorf("phase %s, want %s", got, tc.want)
			}
		})
	}
}

func TestTimeLeftOfATimeout(t *testing.T) {
	since := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		seconds *int32
		passed  time.Duration
		left    time.Duration
		limited bool
	}{
		"unset is for ever":  {passed: time.Hour},
		"zero is for ever":   {seconds: new(int32(0)), passed: time.Hour},
		"some is left":       {seconds: new(int32(60)), passed: 20 * time.Second, left: 40 * time.Second, limited: true},
		"it passed long ago": {seconds: new(int32(60)), passed: 2 * time.Minute, left: -time.Minute, limited: true},
	} {
		t.Run(name, func(t *testing.T) {
			left, limited := timeLeft(tc.seconds, since, since.Add(tc.passed))
			if left != tc.left || limited != tc.limited {
				t.Errorf("%s, %v; want %s, %v", left, limited, tc.left, tc.limited)
			}
		})
	}
}
