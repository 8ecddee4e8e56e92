package controlplane

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/millwright-dev/millwright/internal/conditions"
	"github.com/millwright-dev/millwright/internal/etcd"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// prod returns a control plane of healthy machines cp-1, cp-2, ...: initialized as soon as it has one.
func prod(have, want int, changes ...func(*snapshot)) *snapshot {
	s := &snapshot{
		now: noon,
		controlPlane: &controlplanev1.KubeadmControlPlane{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod", UID: "uid"},
			Spec: controlplanev1.KubeadmControlPlaneSpec{
				Replicas: ptr.To(int32(want)), Version: "v1.37.2",
				MachineTemplate: controlplanev1.KubeadmControlPlaneMachineTemplate{Spec: controlplanev1.KubeadmControlPlaneMachineTemplateSpec{
					InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "VSphereMachineTemplate", Name: "prod"},
				}},
			},
		},
		cluster:  &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod"}},
		workload: inspection{connected: have > 0, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, failures: map[string]error{}},
	}
	if have > 0 {
		s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		s.workload.etcd = &etcd.Status{Leader: 1}
	}
	for i := 1; i <= have; i++ {
		name := fmt.Sprintf("cp-%d", i)
		machine := machineFor(s, newMachine{name: name})
		machine.CreationTimestamp = metav1.NewTime(noon.Add(time.Duration(i-100) * time.Hour))
		machine.Status.NodeRef.Name = name
		machine.Spec.ProviderID = "vsphere://" + name
		machine.Spec.Bootstrap.DataSecretName = ptr.To(name)
		s.replicas = append(s.replicas, &replica{
			machine:        machine,
			config:         configFor(s, machine, metav1.OwnerReference{}, i > 1),
			infrastructure: &unstructured.Unstructured{Object: map[string]any{}},
		})
		s.workload.nodes[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{controlPlaneRole: ""}}}
		for _, component := range components {
			s.workload.pods[podName(component.name, name)] = &corev1.Pod{Status: corev1.PodStatus{
				Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			}}
		}
		s.workload.etcd.Members = append(s.workload.etcd.Members, etcd.Member{ID: uint64(i), Name: name})
	}
	for _, change := range changes {
		change(s)
	}
	tellAll(s)
	return s
}

// tellAll does what a reconcile does before it plans.
func tellAll(s *snapshot) {
	for _, r := range s.replicas {
		for _, condition := range machineConditions(s, r) {
			conditions.Set(r.machine, condition)
		}
		conditions.Set(r.machine, upToDate(s, r))
	}
}

func machineLacksNode(i int) func(*snapshot) {
	return func(s *snapshot) {
		name := s.replicas[i].node()
		s.replicas[i].machine.Status.NodeRef.Name = ""
		dropMember(s, name)
	}
}

func dropMember(s *snapshot, name string) {
	if s.workload.etcd == nil {
		return
	}
	var rest []etcd.Member
	for _, m := range s.workload.etcd.Members {
		if m.Name != name {
			rest = append(rest, m)
		}
	}
	s.workload.etcd.Members = rest
}

func podFails(component string, i int) func(*snapshot) {
	return func(s *snapshot) {
		s.workload.pods[podName(component, s.replicas[i].node())].Status.Conditions = nil
	}
}

func disconnected(s *snapshot) {
	s.workload = inspection{lastSeen: noon.Add(-time.Minute)}
}

func uninitialized(s *snapshot) {
	s.controlPlane.Status.Initialization.ControlPlaneInitialized = nil
	disconnected(s)
	for _, r := range s.replicas {
		r.machine.Status.NodeRef.Name = ""
	}
}

// going marks a Machine as being deleted; atHook tells that its deletion has come to our hook.
func going(i int, atHook bool) func(*snapshot) {
	return func(s *snapshot) {
		machine := s.replicas[i].machine
		machine.DeletionTimestamp = &metav1.Time{Time: noon}
		reason := clusterv1.MachineDeletingDrainingNodeReason
		if atHook {
			reason = clusterv1.MachineDeletingWaitingForPreTerminateHookReason
		}
		conditions.Set(machine, conditions.True(clusterv1.MachineDeletingCondition, reason, ""))
	}
}

func clusterGoes(s *snapshot) { s.cluster.DeletionTimestamp = &metav1.Time{Time: noon} }

// letGo takes our hook from a Machine.
func letGo(i int) func(*snapshot) {
	return func(s *snapshot) { delete(s.replicas[i].machine.Annotations, hook) }
}

// summary tells a plan in one word and a name.
func summary(p plan) string {
	var out []string
	for _, r := range p.complete {
		out = append(out, "complete "+r.machine.Name)
	}
	if p.create != nil {
		verb := "init "
		if p.create.join {
			verb = "join "
		}
		out = append(out, verb+p.create.name+" "+p.create.failureDomain)
	}
	for verb, r := range map[string]*replica{"remove ": p.remove, "release ": p.release} {
		if r != nil {
			out = append(out, verb+r.machine.Name)
		}
	}
	if p.evict != nil {
		out = append(out, fmt.Sprintf("evict %d", p.evict.ID))
	}
	if len(p.blocked) > 0 {
		out = append(out, "blocked")
	}
	return strings.TrimSpace(strings.Join(out, ", "))
}

func TestPlanIsOneSafeStep(t *testing.T) {
	first, second := "prod-"+slotSuffix("uid", 0), "prod-"+slotSuffix("uid", 1)
	tests := map[string]struct {
		s    *snapshot
		want string
		// because is in what is told when the plan is blocked.
		because string
	}{
		"the first machine initializes":                      {prod(0, 3), "init " + first, ""},
		"the second joins the first":                         {prod(1, 3), "join " + first, ""},
		"a name that is taken is skipped":                    {prod(1, 3, func(s *snapshot) { s.replicas[0].machine.Name = first }), "join " + second, ""},
		"the number is reached":                              {prod(3, 3), "", ""},
		"nothing joins before kubeadm init":                  {prod(1, 3, uninitialized), "blocked", "Machine cp-1 has not initialized"},
		"nothing joins a machine without a Node":             {prod(2, 3, machineLacksNode(1)), "blocked", "Machine cp-2 has no Node"},
		"nothing joins while an API server starts":           {prod(2, 3, podFails("kube-apiserver", 1)), "blocked", "APIServerPodHealthy is False"},
		"nothing joins while a member learns":                {prod(2, 3, func(s *snapshot) { s.workload.etcd.Members[1].Learner = true }), "blocked", "EtcdMemberHealthy is False"},
		"nothing joins an unreachable cluster":               {prod(1, 3, disconnected), "blocked", "does not answer"},
		"nothing joins while etcd is silent":                 {prod(1, 3, func(s *snapshot) { s.workload.etcd, s.workload.etcdErr = nil, errors.New("no route") }), "blocked", "no route"},
		"nothing joins while a machine goes":                 {prod(2, 3, going(0, false)), "blocked", "being deleted"},
		"an initialized control plane cannot begin anew":     {prod(0, 1, func(s *snapshot) { s.controlPlane.Status.Initialization.ControlPlaneInitialized = ptr.To(true) }), "blocked", "begin anew or from a snapshot"},
		"the oldest goes first":                              {prod(3, 1), "remove cp-1", ""},
		"the one that the user marked goes first":            {prod(3, 1, func(s *snapshot) { s.replicas[2].machine.Annotations[clusterv1.DeleteMachineAnnotation] = "" }), "remove cp-3", ""},
		"an outdated one goes before an older one":           {prod(3, 1, func(s *snapshot) { s.replicas[1].machine.Spec.Version = "v1.36.3" }), "remove cp-2", ""},
		"one in the fullest domain goes before":              {prod(3, 1, domains("a", "b", "b")), "remove cp-2", ""},
		"nothing goes while another is unhealthy":            {prod(3, 1, podFails("etcd", 2)), "blocked", "cp-3"},
		"the next waits for the last to be gone":             {prod(3, 1, going(0, false)), "blocked", "Machine cp-1 is being deleted"},
		"a drained machine is let go":                        {prod(3, 1, going(0, true)), "release cp-1", ""},
		"the last machine stays until another is there":      {prod(1, 1, going(0, true)), "join " + first, ""},
		"the last machine is not replaced before it must go": {prod(1, 1, going(0, false)), "", ""},
		"the last machine goes when another is there":        {prod(2, 1, going(0, true)), "release cp-1", ""},
		"the last machine stays while another learns":        {prod(2, 1, going(0, true), func(s *snapshot) { s.workload.etcd.Members[1].Learner = true }), "blocked", "0 etcd members"},
		"the last machine stays when it is dead":             {prod(1, 1, going(0, true), disconnected), "blocked", "does not answer"},
		"the last machine goes with its Cluster":             {prod(1, 1, going(0, true), disconnected, clusterGoes), "release cp-1", ""},
		"the last API server stays until another is there":   {prod(1, 1, externalEtcd, going(0, true)), "join " + first, ""},
		"the last API server stays until another runs":       {prod(2, 1, externalEtcd, going(0, true), machineLacksNode(1)), "blocked", "no other machine"},
		"before kubeadm init nothing keeps a machine":        {prod(1, 1, uninitialized, going(0, true)), "release cp-1", ""},
		"one that never joined is let go without etcd":       {prod(3, 3, machineLacksNode(2), going(2, true)), "release cp-3", ""},
		"one whose member has left already is let go":        {prod(3, 3, going(2, true), func(s *snapshot) { dropMember(s, "cp-3") }), "release cp-3", ""},
		"none is let go at the price of quorum":              {prod(3, 3, going(0, true), podFails("etcd", 1)), "blocked", "2 etcd members would be left, 1 of them healthy; 2 must be"},
		"two members of five may be lost":                    {prod(5, 5, going(0, true), podFails("etcd", 1)), "release cp-1", ""},
		"none is let go of an unreachable cluster":           {prod(3, 3, going(0, true), disconnected), "blocked", "does not answer"},
		"other hooks come before ours": {prod(3, 3, going(0, true), func(s *snapshot) {
			s.replicas[0].machine.Annotations[clusterv1.PreTerminateDeleteHookAnnotationPrefix+"/x"] = ""
		}), "", ""},
		"only one at a time is let go":                            {prod(5, 5, going(0, true), going(1, true), letGo(0)), "", ""},
		"two that are deleted at once do not wait for each other": {prod(3, 3, going(0, true), going(1, true)), "release cp-1", ""},
		"a dead one goes before one that has to stay for it":      {prod(3, 3, going(0, true), going(1, true), podFails("etcd", 1)), "release cp-2", ""},
		"a member that is left over goes before one that has to stay for it": {
			prod(2, 3, going(0, true), stranger(9, "cp-9")), "evict 9, blocked", "1 of them healthy",
		},
		"a member whose Node has not been seen counts": {prod(3, 3, going(2, true), podFails("etcd", 1), func(s *snapshot) {
			s.replicas[2].machine.Status.NodeRef.Name = ""
		}), "blocked", "2 etcd members would be left, 1 of them healthy"},
		"a member without a Machine is removed":  {prod(3, 3, stranger(9, "cp-9")), "evict 9", ""},
		"a stranger may be a machine that joins": {prod(3, 3, machineLacksNode(2), stranger(9, "")), "", ""},
		"a feature gate that kubeadm lacks is refused": {prod(1, 3, func(s *snapshot) {
			s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.FeatureGates = map[string]bool{"RootlessControlPlain": true}
		}), "blocked", `spec.kubeadmConfigSpec.clusterConfiguration.featureGates: kubeadm v1.37.2 has no gate "RootlessControlPlain": remove it`},
		"an even number is refused":                       {prod(1, 2), "blocked", "ask for 1 or 3"},
		"an even number is fine with an external etcd":    {prod(1, 2, externalEtcd), "join " + first, ""},
		"none at all is refused":                          {prod(1, 0), "blocked", "at least one machine"},
		"a version that is none is refused":               {prod(1, 3, func(s *snapshot) { s.controlPlane.Spec.Version = "vlatest" }), "blocked", "spec.version"},
		"the emptiest failure domain is filled":           {prod(2, 3, domains("a", "b"), clusterDomains("a", "b", "c")), "join " + first + " c", ""},
		"a machine without its objects is completed":      {prod(3, 3, func(s *snapshot) { lacks(s.replicas[1]) }), "complete cp-2", ""},
		"a machine that ran is not given another VM":      {prod(3, 3, func(s *snapshot) { s.replicas[1].infrastructure = nil }), "", ""},
		"a cluster that is being deleted does not grow":   {prod(1, 3, clusterGoes), "blocked", "being deleted"},
		"external etcd needs no members to let one go":    {prod(3, 3, externalEtcd, going(0, true)), "release cp-1", ""},
		"no one is let go to leave etcd without a leader": {prod(2, 3, going(0, true), func(s *snapshot) { s.workload.etcd.Members[1].Learner = true }), "blocked", "0 etcd members would be left"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := makePlan(tc.s)
			if diff := cmp.Diff(tc.want, summary(p)); diff != "" {
				t.Errorf("(-want +got):\n%s\nblocked: %v", diff, p.blocked)
			}
			if because := strings.Join(p.blocked, "\n"); tc.because != "" && !strings.Contains(because, tc.because) {
				t.Errorf("told %q, want %q in it", because, tc.because)
			}
		})
	}
}

func domains(names ...string) func(*snapshot) {
	return func(s *snapshot) {
		for i, name := range names {
			s.replicas[i].machine.Spec.FailureDomain = name
		}
	}
}

func clusterDomains(names ...string) func(*snapshot) {
	return func(s *snapshot) {
		for _, name := range names {
			s.cluster.Status.FailureDomains = append(s.cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: name, ControlPlane: ptr.To(true)})
		}
		s.cluster.Status.FailureDomains = append(s.cluster.Status.FailureDomains, clusterv1.FailureDomain{Name: "0-workers-only"})
	}
}

func stranger(id uint64, name string) func(*snapshot) {
	return func(s *snapshot) {
		s.workload.etcd.Members = append(s.workload.etcd.Members, etcd.Member{ID: id, Name: name, Learner: name == ""})
	}
}

func externalEtcd(s *snapshot) {
	s.controlPlane.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External = bootstrapv1.ExternalEtcd{Endpoints: []string{"https://10.0.0.9:2379"}}
	s.workload.etcd = nil
}

func lacks(r *replica) {
	r.config, r.infrastructure = nil, nil
	r.machine.Spec.Bootstrap.DataSecretName, r.machine.Spec.ProviderID = nil, ""
}

func TestQuorumIsNeverGivenUp(t *testing.T) {
	for members := 1; members <= 7; members++ {
		for healthy := 0; healthy <= members; healthy++ {
			s := prod(members, members)
			for i := healthy; i < members; i++ {
				podFails("etcd", i)(s)
			}
			tellAll(s)
			// The first is healthy unless none is; taking it leaves one healthy member less.
			left := max(healthy-1, 0)
			safe := keepsQuorum(s, 1) == ""
			if want := left >= (members-1)/2+1; safe != want {
				t.Errorf("%d members, %d healthy: removing one is said to be safe: %t, want %t", members, healthy, safe, want)
			}
		}
	}
}

func TestLeadershipGoesToAHealthyMember(t *testing.T) {
	tests := map[string]struct {
		s    *snapshot
		want string
	}{
		"the oldest other":                      {prod(3, 3), "cp-2"},
		"not to one that is failing":            {prod(3, 3, podFails("etcd", 1)), "cp-3"},
		"not to one that is leaving":            {prod(3, 3, going(1, false)), "cp-3"},
		"to one that is leaving, where all are": {prod(3, 3, going(1, false), going(2, true), letGo(2)), "cp-2"},
		"not to one that learns":                {prod(3, 3, func(s *snapshot) { s.workload.etcd.Members[1].Learner = true }), "cp-3"},
		"to nobody":                             {prod(1, 1), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if member := successor(tc.s, tc.s.replicas[0]); member != nil {
				got = member.Name
			}
			if got != tc.want {
				t.Errorf("successor = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNamesAreThoseOfFreeSlots(t *testing.T) {
	first, second := slotSuffix("uid", 0), slotSuffix("uid", 1)
	naming := func(template string, taken ...string) func(*snapshot) {
		return func(s *snapshot) {
			s.controlPlane.Spec.MachineNaming.Template = template
			for i, name := range taken {
				s.replicas[i].machine.Name = name
			}
		}
	}
	long := strings.Repeat("x", 80)
	tests := map[string]struct {
		s         *snapshot
		want, err string
	}{
		"by upstream's default":          {prod(0, 1), "prod-" + first, ""},
		"a name that is taken":           {prod(1, 3, naming("", "prod-"+first)), "prod-" + second, ""},
		"a slot that has become free":    {prod(1, 3, naming("", "prod-"+second)), "prod-" + first, ""},
		"by a template of one's own":     {prod(0, 1, naming("{{ .cluster.name }}-cp-{{ .random }}")), "prod-cp-" + first, ""},
		"one that is too long":           {prod(0, 1, naming(long+"{{ .random }}")), long[:58] + first, ""},
		"the same name for all":          {prod(1, 3, naming("fixed", "fixed")), "", "put {{ .random }} into it"},
		"a template that cannot be read": {prod(0, 1, naming("{{ .random")), "", "spec.machineNaming.template"},
		"a variable that does not exist": {prod(0, 1, naming("{{ .rnadom }}")), "", "rnadom"},
		"what is no host name":           {prod(0, 1, naming("CP_{{ .random }}")), "", `gives the name "CP_`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := freeName(tc.s)
			if got != tc.want || (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("freeName = %q, %v; want %q, error with %q", got, err, tc.want, tc.err)
			}
		})
	}
	if slotSuffix("uid", 0) == slotSuffix("other", 0) {
		t.Error("a control plane of the same name that was made anew takes the names of the old one")
	}
}
