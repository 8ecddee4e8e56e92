package upgrade

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Checks of the preflight, besides those of a plan.
const (
	CheckControlPlane   = "ControlPlaneHealth"
	CheckEtcd           = "EtcdQuorum"
	CheckEtcdSpace      = "EtcdSpace"
	CheckCertificates   = "CertificateExpiry"
	CheckDeprecatedAPIs = "DeprecatedAPIs"
	CheckBudgets        = "DisruptionBudgets"
	CheckSurge          = "SurgeCapacity"
	CheckRollouts       = "RolloutUnderWay"
	CheckPaused         = "Paused"
	CheckReachable      = "WorkloadCluster"
	CheckAddonHealth    = "AddonHealth"
)

// Checks returns the names of all checks, for those who override one.
func Checks() []string {
	return []string{CheckVersion, CheckImage, CheckSkew, CheckAddon, CheckControlPlane, CheckEtcd, CheckEtcdSpace, CheckCertificates,
		CheckDeprecatedAPIs, CheckBudgets, CheckSurge, CheckRollouts, CheckPaused, CheckReachable, CheckAddonHealth}
}

// certificateMargin is how long certificates must last beyond now: no upgrade of a sane size takes longer, and machines
// that are replaced get new ones. authorityMargin is the same of authorities, which an upgrade does not renew.
const (
	certificateMargin = 24 * time.Hour
	authorityMargin   = 30 * 24 * time.Hour
)

// etcdQuota is the default of etcd's --quota-backend-bytes; etcdFull the part of it above which an upgrade, which writes
// every Node, Lease and Pod anew, must not begin.
const (
	etcdQuota = 2 << 30
	etcdFull  = 0.9
)

// Facts are what the preflight judges.
type Facts struct {
	Objects
	Now    time.Time
	Target *semver.Version
	// Others are the names of other upgrades of the cluster that are under way.
	Others []string
	// Authorities are the ends of the cluster's certificate authorities, by the name of their Secret.
	Authorities map[string]time.Time
	// UnreadyAddons tells what is wrong with the add-ons that are not ready, by their name.
	UnreadyAddons map[string]string
	// Workload is what the cluster itself says, nil where it does not answer; Unreachable is why.
	Workload    *Workload
	Unreachable string
}

// Workload is what the preflight asks the workload cluster.
type Workload struct {
	// Deprecated are the deprecated APIs that somebody still asks for, from the metric apiserver_requested_deprecated_apis.
	Deprecated []DeprecatedAPI
	Budgets    []policyv1.PodDisruptionBudget
	// EtcdBytes is the size of the database, from the metric apiserver_storage_size_bytes; 0 where it is not told.
	EtcdBytes int64
}

// DeprecatedAPI is a resource that is asked for in a version of its API that goes.
type DeprecatedAPI struct {
	Group, Version, Resource string
	// RemovedIn is the minor release that no longer has it, such as 1.37; empty where none is known.
	RemovedIn string
}

// Preflight judges whether an upgrade may begin. The findings come in the order of Checks.
func Preflight(f Facts) (blockers, warnings []Finding) {
	p := &preflight{Facts: f}
	p.checkControlPlane()
	p.checkEtcd()
	p.checkCertificates()
	p.checkSurge()
	p.checkRollouts()
	p.checkPaused()
	p.checkAddons()
	if f.Workload == nil {
		p.block(CheckReachable, p.cluster(), "its API server does not answer, so that nothing in it can be checked: %s", f.Unreachable)
	} else {
		p.checkEtcdSpace()
		p.checkDeprecated()
		p.checkBudgets()
	}
	order := Checks()
	byCheck := func(a, b Finding) int { return slices.Index(order, a.Check) - slices.Index(order, b.Check) }
	slices.SortStableFunc(p.blockers, byCheck)
	slices.SortStableFunc(p.warnings, byCheck)
	return p.blockers, p.warnings
}

type preflight struct {
	Facts
	blockers, warnings []Finding
}

func (p *preflight) block(check, object, format string, args ...any) {
	p.blockers = append(p.blockers, Finding{check, object, fmt.Sprintf(format, args...)})
}

func (p *preflight) warn(check, object, format string, args ...any) {
	p.warnings = append(p.warnings, Finding{check, object, fmt.Sprintf(format, args...)})
}

func (p *preflight) cluster() string { return fmt.Sprintf("cluster %q", p.Cluster.Name) }

func (p *preflight) checkControlPlane() {
	for _, m := range p.ControlPlaneMachines() {
		object := fmt.Sprintf("machine %q", m.Name)
		if !m.DeletionTimestamp.IsZero() {
			p.block(CheckControlPlane, object, "it is being deleted: wait until it is gone and replaced")
			continue
		}
		ready := condition(m, clusterv1.MachineReadyCondition)
		if ready == nil || ready.Status != metav1.ConditionTrue {
			p.block(CheckControlPlane, object, "the control plane is not healthy: %s; mend it, an upgrade takes one machine away at a time", because(ready))
		}
	}
}

// checkEtcd wants a quorum with one to spare: an upgrade takes one member away at a time.
func (p *preflight) checkEtcd() {
	machines := p.ControlPlaneMachines()
	if len(machines) == 0 {
		return
	}
	healthy, told := 0, 0
	for _, m := range machines {
		c := condition(m, "EtcdMemberHealthy")
		if c == nil {
			continue
		}
		told++
		if c.Status == metav1.ConditionTrue {
			healthy++
		}
	}
	switch quorum := told/2 + 1; {
	case told == 0:
	case told <= 2 && healthy == told:
		// One member is never to spare; the rollout adds one before it takes one.
	case healthy <= quorum-1:
		p.block(CheckEtcd, p.cluster(), "%d of %d etcd members are healthy, fewer than a quorum: restore etcd first", healthy, told)
	case healthy < told && healthy-1 < quorum:
		p.block(CheckEtcd, p.cluster(), "%d of %d etcd members are healthy, which leaves none to spare: mend the others first", healthy, told)
	case healthy < told:
		p.warn(CheckEtcd, p.cluster(), "%d of %d etcd members are healthy", healthy, told)
	}
}

func (p *preflight) checkEtcdSpace() {
	if used := float64(p.Workload.EtcdBytes); used > etcdFull*etcdQuota {
		p.block(CheckEtcdSpace, p.cluster(), "the database of etcd has %d MiB and may have %d, unless its quota was raised: compact and defragment it with kubectl machines etcd defrag %s",
			p.Workload.EtcdBytes>>20, int64(etcdQuota)>>20, p.Cluster.Name)
	}
}

func (p *preflight) checkCertificates() {
	for _, m := range p.ControlPlaneMachines() {
		expiry := m.Status.CertificatesExpiryDate.Time
		if expiry.IsZero() {
			continue
		}
		if left := expiry.Sub(p.Now); left < certificateMargin {
			p.block(CheckCertificates, fmt.Sprintf("machine %q", m.Name), "its certificates %s: renew them with kubectl machines certs rotate %s", ends(left, expiry), p.Cluster.Name)
		}
	}
	for _, secret := range sortedKeys(p.Authorities) {
		if left := p.Authorities[secret].Sub(p.Now); left < authorityMargin {
			p.block(CheckCertificates, fmt.Sprintf("secret %q", secret), "the certificate authority in it %s: replace it, an upgrade does not", ends(left, p.Authorities[secret]))
		}
	}
}

func ends(left time.Duration, expiry time.Time) string {
	if left <= 0 {
		return "expired on " + expiry.UTC().Format(time.RFC3339)
	}
	return "expire on " + expiry.UTC().Format(time.RFC3339)
}

func (p *preflight) checkDeprecated() {
	for _, api := range p.Workload.Deprecated {
		object := strings.TrimPrefix(fmt.Sprintf("%s/%s %s", api.Group, api.Version, api.Resource), "/")
		removed, err := semver.NewVersion(api.RemovedIn)
		switch {
		case api.RemovedIn == "" || err != nil:
			p.warn(CheckDeprecatedAPIs, object, "somebody asks for it, and it is deprecated")
		case removed.Major() < p.Target.Major() || removed.Minor() <= p.Target.Minor():
			p.block(CheckDeprecatedAPIs, object, "somebody asks for it, and Kubernetes %s no longer has it: find who with the audit log, or the user agent in the API server's metrics, and move them to its successor", api.RemovedIn)
		}
	}
}

func (p *preflight) checkBudgets() {
	for _, b := range p.Workload.Budgets {
		if b.Status.ExpectedPods == 0 || b.Status.DisruptionsAllowed > 0 {
			continue
		}
		object := fmt.Sprintf("poddisruptionbudget %q", b.Namespace+"/"+b.Name)
		if never := neverAllows(b); never != "" {
			p.block(CheckBudgets, object, "it can never allow an eviction (%s), and no machine with its pods can be drained: raise the replicas or lower the budget", never)
			continue
		}
		p.warn(CheckBudgets, object, "it allows no eviction now: %d of %d pods are healthy, %d must be", b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DesiredHealthy)
	}
}

// neverAllows says why a budget allows no eviction however healthy its pods are; empty when it may.
func neverAllows(b policyv1.PodDisruptionBudget) string {
	pods := int(b.Status.ExpectedPods)
	if u := b.Spec.MaxUnavailable; u != nil {
		// Rounded up, as the disruption controller does.
		if n, err := intstr.GetScaledValueFromIntOrPercent(u, pods, true); err == nil && n <= 0 {
			return "maxUnavailable is " + u.String()
		}
	}
	if m := b.Spec.MinAvailable; m != nil {
		if n, err := intstr.GetScaledValueFromIntOrPercent(m, pods, true); err == nil && n >= pods {
			return fmt.Sprintf("minAvailable is %s of %d pods", m.String(), pods)
		}
	}
	return ""
}

func (p *preflight) checkSurge() {
	for _, d := range p.Deployments {
		strategy := d.Spec.Rollout.Strategy.RollingUpdate
		if zero(strategy.MaxSurge) && zero(strategy.MaxUnavailable) {
			p.block(CheckSurge, fmt.Sprintf("machinedeployment %q", d.Name), "maxSurge and maxUnavailable are both 0, so that no machine can be replaced: allow one of them")
		}
	}
}

func zero(value *intstr.IntOrString) bool {
	if value == nil {
		return false
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true)
	return err == nil && n == 0
}

func (p *preflight) checkRollouts() {
	for _, name := range p.Others {
		p.block(CheckRollouts, fmt.Sprintf("clusterupgrade %q", name), "it upgrades the same cluster and is under way: wait for it, or abort it")
	}
	for _, d := range p.Deployments {
		if !d.DeletionTimestamp.IsZero() {
			continue
		}
		if why := Unsettled(p.Objects, d); why != "" {
			p.block(CheckRollouts, fmt.Sprintf("machinedeployment %q", d.Name), "%s: wait until it is done", why)
		}
	}
	if p.ControlPlane != nil {
		if why := ControlPlaneUnsettled(p.Objects); why != "" {
			p.block(CheckRollouts, fmt.Sprintf("%s %q", strings.ToLower(p.ControlPlane.GetKind()), p.ControlPlane.GetName()), "%s: wait until it is done", why)
		}
	}
}

func (p *preflight) checkPaused() {
	object, paused := p.cluster(), p.Cluster.Spec.Paused != nil && *p.Cluster.Spec.Paused
	if paused {
		p.block(CheckPaused, object, "it is paused: set spec.paused to false")
	}
	if p.ControlPlane != nil {
		if _, paused := p.ControlPlane.GetAnnotations()[clusterv1.PausedAnnotation]; paused {
			p.block(CheckPaused, fmt.Sprintf("%s %q", strings.ToLower(p.ControlPlane.GetKind()), p.ControlPlane.GetName()), "it is paused: remove the annotation %s", clusterv1.PausedAnnotation)
		}
	}
	for _, d := range p.Deployments {
		object := fmt.Sprintf("machinedeployment %q", d.Name)
		if _, paused := d.Annotations[clusterv1.PausedAnnotation]; paused {
			p.block(CheckPaused, object, "it is paused: remove the annotation %s", clusterv1.PausedAnnotation)
		} else if d.Spec.Paused != nil && *d.Spec.Paused {
			p.block(CheckPaused, object, "its rollout is paused: resume it with kubectl machines rollout resume %s", d.Name)
		}
	}
}

// checkAddons wants what new machines need to become Nodes, and what tells whether an upgrade broke something, to work.
func (p *preflight) checkAddons() {
	if p.Workload == nil {
		// The cluster does not answer, and that is told.
		return
	}
	for _, name := range sortedKeys(p.UnreadyAddons) {
		p.block(CheckAddonHealth, fmt.Sprintf("addon %q", name), "it is not ready: %s: mend it first, or nobody can tell what the upgrade did to it", p.UnreadyAddons[name])
	}
}

// Forced parts the blockers that a user overrides from those that remain. Nobody can override that there is no version or
// no image to go to: there is nothing to move to then.
func Forced(blockers []Finding, force []string) (remain, forced []Finding) {
	for _, f := range blockers {
		if slices.Contains(force, f.Check) && f.Check != CheckImage && f.Check != CheckVersion {
			forced = append(forced, f)
			continue
		}
		remain = append(remain, f)
	}
	return remain, forced
}
