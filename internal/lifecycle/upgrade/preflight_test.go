package upgrade

import (
	"slices"
	"strings"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// sound are the facts of a cluster that can be upgraded: three control planes and a deployment of two.
func sound() Facts {
	three := map[string]any{"replicas": int64(3), "upToDateReplicas": int64(3), "readyReplicas": int64(3), "availableReplicas": int64(3), "observedGeneration": int64(1)}
	f := Facts{Now: noon, Target: version("1.37.2"), Workload: &Workload{EtcdBytes: 100 << 20}, Authorities: map[string]time.Time{"prod-ca": noon.AddDate(5, 0, 0)}}
	f.Cluster = &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}
	f.ControlPlane = &unstructured.Unstructured{Object: map[string]any{
		"kind": "KubeadmControlPlane", "metadata": map[string]any{"name": "prod", "generation": int64(1)},
		"spec": map[string]any{"replicas": int64(3), "version": "v1.36.3"}, "status": three}}
	for _, name := range []string{"cp-a", "cp-b", "cp-c"} {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
		m.Status.CertificatesExpiryDate = metav1.NewTime(noon.AddDate(0, 6, 0))
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionTrue}, {Type: "EtcdMemberHealthy", Status: metav1.ConditionTrue}}
		f.Machines = append(f.Machines, m)
	}
	d := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "md-0", Generation: 1}}
	two := int32(2)
	d.Spec.Replicas = &two
	d.Status = clusterv1.MachineDeploymentStatus{ObservedGeneration: 1, Replicas: &two, UpToDateReplicas: &two, ReadyReplicas: &two, AvailableReplicas: &two}
	f.Deployments = []*clusterv1.MachineDeployment{d}
	return f
}

func budget(expected, allowed int32, change func(*policyv1.PodDisruptionBudgetSpec)) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Status = policyv1.PodDisruptionBudgetStatus{ExpectedPods: expected, DisruptionsAllowed: allowed, CurrentHealthy: expected, DesiredHealthy: expected}
	change(&b.Spec)
	return b
}

func TestEachThingThatStandsInTheWayOfAnUpgradeIsToldWithItsObjectAndItsRemedy(t *testing.T) {
	zero, all, half := intstr.FromInt32(0), intstr.FromString("100%"), intstr.FromString("50%")
	unhealthy := func(f *Facts, count int, kind, message string) {
		for _, m := range f.Machines[:count] {
			for i := range m.Status.Conditions {
				if m.Status.Conditions[i].Type == kind {
					m.Status.Conditions[i].Status, m.Status.Conditions[i].Message = metav1.ConditionFalse, message
				}
			}
		}
	}
	cases := map[string]struct {
		change          func(*Facts)
		check, object   string
		message, remedy string
		// warns says that it does not block.
		warns bool
	}{
		"a control-plane machine is not ready": {change: func(f *Facts) { unhealthy(f, 1, clusterv1.MachineReadyCondition, "the kubelet is silent") },
			check: CheckControlPlane, object: `machine "cp-a"`, message: "the kubelet is silent", remedy: "mend it"},
		"a control-plane machine goes": {change: func(f *Facts) { f.Machines[0].DeletionTimestamp = &metav1.Time{Time: noon} },
			check: CheckControlPlane, object: `machine "cp-a"`, message: "being deleted", remedy: "wait until"},
		"etcd has no member to spare": {change: func(f *Facts) { unhealthy(f, 1, "EtcdMemberHealthy", "") },
			check: CheckEtcd, object: `cluster "prod"`, message: "2 of 3 etcd members", remedy: "mend the others"},
		"etcd has no quorum": {change: func(f *Facts) { unhealthy(f, 2, "EtcdMemberHealthy", "") },
			check: CheckEtcd, object: `cluster "prod"`, message: "fewer than a quorum", remedy: "restore etcd"},
		"an add-on is not ready": {change: func(f *Facts) { f.UnreadyAddons = map[string]string{"calico": "1 of 9 objects is not healthy"} },
			check: CheckAddonHealth, object: `addon "calico"`, message: "1 of 9 objects", remedy: "mend it"},
		"etcd is almost full": {change: func(f *Facts) { f.Workload.EtcdBytes = 2000 << 20 },
			check: CheckEtcdSpace, object: `cluster "prod"`, message: "2000 MiB", remedy: "etcd defrag prod"},
		"certificates are about to expire": {change: func(f *Facts) { f.Machines[1].Status.CertificatesExpiryDate = metav1.NewTime(noon.Add(time.Hour)) },
			check: CheckCertificates, object: `machine "cp-b"`, message: "expire on 2026-12-01T13:00:00Z", remedy: "certs rotate prod"},
		"an authority has expired": {change: func(f *Facts) { f.Authorities["prod-ca"] = noon.Add(-time.Hour) },
			check: CheckCertificates, object: `secret "prod-ca"`, message: "expired on 2026-12-01T11:00:00Z", remedy: "replace it"},
		"an API that goes is in use": {change: func(f *Facts) {
			f.Workload.Deprecated = []DeprecatedAPI{{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", RemovedIn: "1.37"}}
		}, check: CheckDeprecatedAPIs, object: "flowcontrol.apiserver.k8s.io/v1beta3 flowschemas", message: "1.37 no longer has it", remedy: "move them to its successor"},
		"an API that goes later is in use": {change: func(f *Facts) {
			f.Workload.Deprecated = []DeprecatedAPI{{Version: "v1", Resource: "endpoints"}}
		}, check: CheckDeprecatedAPIs, object: "v1 endpoints", message: "deprecated", warns: true},
		"a budget allows no eviction ever, by maxUnavailable": {change: func(f *Facts) {
			f.Workload.Budgets = []policyv1.PodDisruptionBudget{budget(3, 0, func(s *policyv1.PodDisruptionBudgetSpec) { s.MaxUnavailable = &zero })}
		}, check: CheckBudgets, object: `poddisruptionbudget "shop/web"`, message: "maxUnavailable is 0", remedy: "lower the budget"},
		"a budget allows no eviction ever, by minAvailable": {change: func(f *Facts) {
			f.Workload.Budgets = []policyv1.PodDisruptionBudget{budget(3, 0, func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = &all })}
		}, check: CheckBudgets, object: `poddisruptionbudget "shop/web"`, message: "minAvailable is 100% of 3 pods", remedy: "lower the budget"},
		"a budget allows no eviction now": {change: func(f *Facts) {
			f.Workload.Budgets = []policyv1.PodDisruptionBudget{budget(3, 0, func(s *policyv1.PodDisruptionBudgetSpec) { s.MinAvailable = &half })}
		}, check: CheckBudgets, object: `poddisruptionbudget "shop/web"`, message: "allows no eviction now", warns: true},
		"no machine may surge and none be missing": {change: func(f *Facts) {
			f.Deployments[0].Spec.Rollout.Strategy.RollingUpdate.MaxSurge, f.Deployments[0].Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = &zero, &zero
		}, check: CheckSurge, object: `machinedeployment "md-0"`, message: "both 0", remedy: "allow one of them"},
		"a rollout is under way": {change: func(f *Facts) { one := int32(1); f.Deployments[0].Status.UpToDateReplicas = &one },
			check: CheckRollouts, object: `machinedeployment "md-0"`, message: "1 of 2 machines are up to date", remedy: "wait until it is done"},
		"another upgrade is under way": {change: func(f *Facts) { f.Others = []string{"earlier"} },
			check: CheckRollouts, object: `clusterupgrade "earlier"`, message: "under way", remedy: "abort it"},
		"the cluster is paused": {change: func(f *Facts) { yes := true; f.Cluster.Spec.Paused = &yes },
			check: CheckPaused, object: `cluster "prod"`, message: "paused", remedy: "set spec.paused to false"},
		"the control plane is paused": {change: func(f *Facts) { f.ControlPlane.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""}) },
			check: CheckPaused, object: `kubeadmcontrolplane "prod"`, message: "paused", remedy: "remove the annotation"},
		"a rollout is paused": {change: func(f *Facts) { yes := true; f.Deployments[0].Spec.Paused = &yes },
			check: CheckPaused, object: `machinedeployment "md-0"`, message: "rollout is paused", remedy: "rollout resume md-0"},
		"the cluster does not answer": {change: func(f *Facts) { f.Workload, f.Unreachable = nil, "connection refused" },
			check: CheckReachable, object: `cluster "prod"`, message: "connection refused"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := sound()
			if blockers, warnings := Preflight(facts); len(blockers)+len(warnings) > 0 {
				t.Fatalf("a sound cluster has blockers %v and warnings %v", blockers, warnings)
			}
			tc.change(&facts)
			blockers, warnings := Preflight(facts)
			found := blockers
			if tc.warns {
				found = warnings
				if len(blockers) > 0 {
					t.Errorf("it blocks: %v", blockers)
				}
			}
			// A machine on its way out is also a rollout under way; the cause comes first.
			if len(found) == 0 || found[0].Check != tc.check || found[0].Object != tc.object || !strings.Contains(found[0].Message, tc.message) || !strings.Contains(found[0].Message, tc.remedy) {
				t.Fatalf("found %v; want one of %s about %s that says %q and %q", found, tc.check, tc.object, tc.message, tc.remedy)
			}
			remain, _ := Forced(blockers, []string{tc.check})
			if slices.ContainsFunc(remain, func(f Finding) bool { return f.Check == tc.check }) {
				t.Errorf("forced, %v remain", remain)
			}
		})
	}
}

func TestAllChecksHaveANameThatCanBeForced(t *testing.T) {
	names := Checks()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a check is listed twice in %v", names)
	}
	for _, check := range []string{CheckVersion, CheckImage} {
		if remain, _ := Forced([]Finding{{Check: check}}, names); len(remain) != 1 {
			t.Errorf("%s can be overridden, though there is nothing to move to then", check)
		}
	}
}
