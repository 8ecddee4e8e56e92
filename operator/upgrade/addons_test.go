package upgrade

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/millwright-dev/millwright/api/addons/v1alpha1"
	lifecyclev1 "github.com/millwright-dev/millwright/api/lifecycle/v1alpha1"
	"github.com/millwright-dev/millwright/internal/conditions"
)

// install gives the world an add-on, ready.
func (w *world) install(bundle, version string) *addonsv1.AddonRelease {
	release := &addonsv1.AddonRelease{ObjectMeta: metav1.ObjectMeta{Name: addonsv1.AddonReleaseName("prod", bundle)}}
	release.Spec.ClusterName, release.Spec.Bundle = "prod", bundle
	w.releases = append(w.releases, release)
	w.apply(release, version)
	return release
}

// apply does what the add-ons' controller does with a version.
func (w *world) apply(release *addonsv1.AddonRelease, version string) {
	release.Status.Version, release.Status.TargetVersion = version, version
	for _, kind := range []string{addonsv1.ResolvedCondition, addonsv1.AppliedCondition, addonsv1.HealthyCondition, addonsv1.ReadyCondition} {
		conditions.Set(release, conditions.True(kind, kind, ""))
	}
}

// story steps until the upgrade is over and tells what was moved, in order.
func (w *world) story(t *testing.T) []string {
	t.Helper()
	var story []string
	for range 60 {
		d := w.step(t)
		for _, h := range d.holds {
			if h.moves {
				story = append(story, "addon "+h.name+" "+h.version)
			}
		}
		for _, m := range d.moves {
			story = append(story, strings.TrimSpace(m.name+" "+m.version))
		}
		if d.phase.Over() {
			return story
		}
		w.reconcileAll()
	}
	t.Fatalf("the upgrade is %s: %s", w.upgrade.Status.Phase, w.upgrade.Status.Message)
	return nil
}

func TestAddonsMoveInTheirPlacesAndAreLetGoAtTheEnd(t *testing.T) {
	w := newWorld("v1.35.4", "a")
	w.install("coredns", "1.13.1")
	w.install("kube-proxy", "1.35.0")
	w.install("calico", "3.31.7")
	want := []string{
		"addon calico 3.32.1", "v1.36.3", "addon kube-proxy 1.36.0", "addon coredns 1.14.2",
		"v1.37.2", "addon kube-proxy 1.37.0", "addon coredns 1.14.6", "a v1.37.2",
	}
	if diff := cmp.Diff(want, w.story(t)); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
	for _, release := range w.releases {
		if len(release.Annotations) > 0 {
			t.Errorf("%s keeps the annotations %v", release.Name, release.Annotations)
		}
	}
	if w.upgrade.Status.FromVersion != "v1.35.4" {
		t.Errorf("fromVersion is %q", w.upgrade.Status.FromVersion)
	}
}

func TestAPinnedAddonThatDoesNotFitIsToldBeforeAnythingMoves(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	w.install("coredns", "1.14.2").Spec.Version = "1.14.2"
	d := w.step(t)
	if d.phase != lifecyclev1.UpgradeBlocked || len(d.holds)+len(d.moves) > 0 || !strings.Contains(d.message, `addon "coredns": 1.14.2 is not stated for v1.37.2, and it is pinned or to stay`) {
		t.Errorf("phase %s, message %q", d.phase, d.message)
	}
}

func TestAnAddonIsHeldBeforeTheControlPlaneMoves(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	dns := w.install("coredns", "1.14.2")
	d := w.step(t)
	if diff := cmp.Diff([]hold{{name: "coredns", version: "1.14.2"}}, d.holds, cmp.AllowUnexported(hold{})); diff != "" || len(d.moves) != 1 {
		t.Errorf("moves %v, holds (-want +got):\n%s", d.moves, diff)
	}
	if got := dns.Annotations[addonsv1.HeldVersionAnnotation]; got != "1.14.2" {
		t.Errorf("it is held at %q", got)
	}
}

func TestWorkersWaitForAnAddonThatIsNotHealthy(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	dns := w.install("coredns", "1.14.2")
	w.step(t)
	w.reconcileAll()
	w.step(t)
	conditions.Set(dns, conditions.False(addonsv1.HealthyCondition, addonsv1.ProgressingReason, "1 of 9 objects is not healthy"))
	dns.Status.Version, dns.Status.TargetVersion = "1.14.6", "1.14.6"
	d := w.step(t)
	if state := w.upgrade.Status.Steps[1].State; state != lifecyclev1.StepRunning {
		t.Errorf("its step is %s", state)
	}
	if len(d.moves) > 0 || !strings.Contains(d.message, `addon "coredns" to 1.14.6: 1 of 9`) {
		t.Fatalf("moves %v, message %q; want none, and what is waited for", d.moves, d.message)
	}
	w.apply(dns, "1.14.6")
	w.step(t)
	if d = w.step(t); len(d.moves) > 0 && d.moves[0].name != "a" || w.objects.Deployments[0].Spec.Template.Spec.Version != "v1.37.2" {
		t.Errorf("the workers do not move: %s", d.message)
	}
}

func TestAnAddonThatIsRefusedHaltsTheUpgradeUntilItIsMended(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	dns := w.install("coredns", "1.14.2")
	w.step(t)
	w.reconcileAll()
	w.step(t)
	dns.Status.TargetVersion = "1.14.6"
	conditions.Set(dns, conditions.False(addonsv1.AppliedCondition, addonsv1.ConflictReason, "somebody owns spec.replicas"))
	if d := w.step(t); d.phase != lifecyclev1.UpgradeFailed || !strings.Contains(d.message, "somebody owns spec.replicas") {
		t.Fatalf("phase %s, message %q", d.phase, d.message)
	}
	w.apply(dns, "1.14.6")
	if got := w.story(t); len(got) != 1 || got[0] != "a v1.37.2" {
		t.Errorf("then it moves %v", got)
	}
}

func TestAnAddonThatSomebodyPinsMeanwhileHoldsNobodyUp(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	dns := w.install("coredns", "1.14.2")
	w.step(t)
	w.reconcileAll()
	w.step(t)
	dns.Spec.Version = "1.14.6"
	dns.Status.Version, dns.Status.TargetVersion = "1.14.6", "1.14.2"
	if d := w.step(t); len(d.moves) != 1 || d.moves[0].name != "a" {
		t.Errorf("moves %v, %s: %s; want the workers'", d.moves, d.phase, d.message)
	}
}

func TestAddonsThatAreToStayAreHeldToTheEnd(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	w.upgrade.Spec.Addons = lifecyclev1.AddonsStay
	w.upgrade.Spec.Force = []string{"AddonVersion"}
	w.install("coredns", "1.14.2")
	if diff := cmp.Diff([]string{"v1.37.2", "a v1.37.2"}, w.story(t)); diff != "" {
		t.Errorf("moves (-want +got):\n%s", diff)
	}
}

func TestAnAbortedUpgradeLetsAddonsGo(t *testing.T) {
	w := newWorld("v1.36.3", "a")
	dns := w.install("coredns", "1.14.2")
	w.step(t)
	w.reconcileAll()
	abort := true
	w.upgrade.Spec.Abort = &abort
	w.story(t)
	if len(dns.Annotations) > 0 {
		t.Errorf("it keeps the annotations %v", dns.Annotations)
	}
}
